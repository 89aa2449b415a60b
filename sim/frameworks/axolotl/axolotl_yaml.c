// axolotl's YAML (0.19, utils/schemas): the same ParallelismConfig underneath, context parallelism by ring-flash-attn.
// Its setup_fsdp_envs passes reshard_after_forward on only when it is true, and accelerate's default is true, so false
// would be lost: the table refuses it.

#include "sim/base/escape.h"
#include "sim/frameworks/axolotl/axolotl_files.h"

static const char *axolotl_refuse(const ConfigJob *job) {
    const int cp = export_axis(job, AXIS_CP);
    const TrainPlan *plan = job->plan;
    if (cp > 1 && plan->attention != ATTENTION_FLASH) {
        return arena_format(job->arena, "axolotl's cp=%d needs flash attention: use --attention flash, not %s", cp,
                            attention_names[plan->attention]);
    }
    if (cp > 1 && plan->micro_batch > 1) {
        return arena_format(job->arena,
                            "axolotl takes cp=%d with micro-batches of one sequence: use --micro-batch 1, not %d", cp,
                            plan->micro_batch);
    }
    return NULL;
}

static void write_mesh(const ConfigJob *job, FILE *out) {
    fprintf(out,
            "dp_replicate_size: %d\n"
            "dp_shard_size: %d\n"
            "context_parallel_size: %d\n"
            "tensor_parallel_size: %d\n",
            export_axis(job, AXIS_DP_REPLICATE), export_axis(job, AXIS_DP_SHARD), export_axis(job, AXIS_CP),
            export_axis(job, AXIS_TP));
    if (export_axis(job, AXIS_CP) > 1) {  // the packed sequences of varlen_llama3 gather, batch_ring passes on
        fprintf(out, "ring_attn_func: %s\nheads_k_stride: 1\n",
                job->plan->cp_rotate == CP_ROTATE_RING ? "batch_ring" : "varlen_llama3");
    }
}

static void write_fsdp(const ConfigJob *job, FILE *out) {
    fprintf(out,
            "fsdp_version: 2\n"
            "fsdp_config:\n"
            "  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
            "  transformer_layer_cls_to_wrap: %s\n"
            "  reshard_after_forward: true\n"
            "  activation_checkpointing: %s\n"
            "  offload_params: false\n"
            "  state_dict_type: SHARDED_STATE_DICT\n",
            export_layer_class(job->model), export_bool(job->plan->recompute == RECOMPUTE_FULL));
}

static void axolotl_write(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    bool known = false;
    fputs("base_model: ", out);
    escape_quoted(export_model_path(job, &known), out);
    fprintf(out,
            "\nsequence_len: %d\n"
            "micro_batch_size: %d\n"
            "gradient_accumulation_steps: %d\n"
            "sample_packing: %s\n"
            "pad_to_sequence_len: true\n"
            "bf16: %s\nfp16: %s\n"
            "attn_implementation: %s\n",
            plan->seq, plan->micro_batch, plan->grad_accum,
            export_bool(!(export_axis(job, AXIS_CP) > 1 && plan->cp_rotate == CP_ROTATE_RING) &&
                        plan->attention == ATTENTION_FLASH),
            export_bool(plan->precision == DTYPE_BF16), export_bool(plan->precision == DTYPE_FP16),
            plan->attention == ATTENTION_EAGER ? "eager" : "flash_attention_2");
    if (plan->fused == FUSED_COMPILED) {
        fputs("torch_compile: true\n", out);
    }
    write_mesh(job, out);
    if (export_shards(job)) {
        write_fsdp(job, out);
    } else if (plan->recompute == RECOMPUTE_FULL) {
        fputs("gradient_checkpointing: true\n", out);
    }
    fputs("# Yours: data, optimizer, learning rate.\n"
          "datasets:\n  - path: your/dataset\n    type: completion\n"
          "optimizer: adamw_torch_fused\nlearning_rate: 0.0001\nnum_epochs: 1\noutput_dir: ./outputs\n",
          out);
}

const ExportFormat export_axolotl_yaml = {
    .name = "axolotl",
    .target = "axolotl",
    .file_name = "axolotl.yaml",
    .versions = "axolotl 0.19",
    .comment = "# ",
    .precisions = EXPORT_BF16 | EXPORT_FP16 | EXPORT_FP32,
    .recomputes = EXPORT_NONE | EXPORT_FULL,
    .attentions = EXPORT_FLASH | EXPORT_BIT(ATTENTION_EAGER),
    .fuseds = EXPORT_EAGER | EXPORT_COMPILED,
    .refuse = axolotl_refuse,
    .write = axolotl_write,
    .launch = launch_torchrun,
    .program = "-m axolotl.cli.train %s",
};
