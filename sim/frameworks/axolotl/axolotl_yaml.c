// axolotl's YAML (0.19, utils/schemas; sim/SOURCES.md P5): its keys, and how it is written. Underneath is accelerate's
// ParallelismConfig, with context parallelism by ring-flash-attn. Its setup_fsdp_envs passes reshard_after_forward on
// only when it is true, and accelerate's default is true, so false would be lost: the row refuses it.

#include "sim/frameworks/axolotl/axolotl_files.h"
#include "sim/frameworks/hf_optimizers.h"
#include "sim/frameworks/peft.h"

// ---- the keys

static const char *model_path(const ConfigJob *job) {
    bool known = false;
    return export_model_path(job, &known);
}

static const char *packs(const ConfigJob *job) {
    const bool passes_on = export_axis(job, AXIS_CP) > 1 && job->plan->cp_rotate == CP_ROTATE_RING;
    return export_bool(job->plan->pack > 0 || (!passes_on && job->plan->attention == ATTENTION_FLASH));
}

static bool never(const ConfigJob *job) {
    (void)job;
    return false;
}

static const char *kernel(const ConfigJob *job) {
    return job->plan->attention == ATTENTION_EAGER    ? "eager"
           : job->plan->attention == ATTENTION_FLASH3 ? "flash_attention_3"
                                                      : "flash_attention_2";
}

// The packed sequences of varlen_llama3 gather, batch_ring passes on.
static const ImportWord rings[] = {{"batch_ring", CP_ROTATE_RING}, {"varlen_llama3", CP_ROTATE_ALLGATHER}, {NULL, 0}};

const ConfigKey axolotl_keys[AXOLOTL_KEYS + 1] = {
    [AXOLOTL_MODEL] = {"base_model", .text = model_path, .quoted = true},
    [AXOLOTL_SEQUENCE_LEN] = {"sequence_len", KEY_SEQ},
    [AXOLOTL_MICRO_BATCH] = {"micro_batch_size", KEY_MICRO_BATCH},
    [AXOLOTL_ACCUMULATION] = {"gradient_accumulation_steps", KEY_ACCUMULATION},
    [AXOLOTL_PACKING] = {"sample_packing", .text = packs},
    [AXOLOTL_PADDING] = {"pad_to_sequence_len", .literal = "true"},
    [AXOLOTL_BF16] = {"bf16", .text = export_in_bf16},
    [AXOLOTL_FP16] = {"fp16", .text = export_in_fp16},
    [AXOLOTL_ATTENTION] = {"attn_implementation", .text = kernel},
    [AXOLOTL_COMPILE] = {"torch_compile", .literal = "true", .when = export_compiles},
    [AXOLOTL_REPLICATE] = {"dp_replicate_size", KEY_AXIS, AXIS_DP_REPLICATE},
    [AXOLOTL_SHARD] = {"dp_shard_size", KEY_AXIS, AXIS_DP_SHARD, .text = axolotl_shards_beside},
    [AXOLOTL_CONTEXT] = {"context_parallel_size", KEY_AXIS, AXIS_CP},
    [AXOLOTL_TENSOR] = {"tensor_parallel_size", KEY_AXIS, AXIS_TP},
    [AXOLOTL_RING] = {"ring_attn_func", KEY_CHOICE, PLAN_CP_ROTATE, rings, .when = export_cuts_sequences},
    [AXOLOTL_STRIDE] = {"heads_k_stride", .literal = "1", .when = export_cuts_sequences},
    [AXOLOTL_VERSION] = {"fsdp_version", .literal = "2", .when = export_shards},
    [AXOLOTL_WRAP] = {"fsdp_config.auto_wrap_policy", .literal = "TRANSFORMER_BASED_WRAP", .when = export_shards},
    [AXOLOTL_LAYER] = {"fsdp_config.transformer_layer_cls_to_wrap", .text = export_wrapped_layer,
                       .when = export_shards},
    [AXOLOTL_RESHARD] = {"fsdp_config.reshard_after_forward", .literal = "true", .when = export_shards},
    [AXOLOTL_FSDP_CHECKPOINT] = {"fsdp_config.activation_checkpointing", .when = never},  // only read: it wraps twice
    [AXOLOTL_OFFLOAD] = {"fsdp_config.offload_params", .text = export_offloads_parameters, .when = export_shards},
    [AXOLOTL_STATE_DICT] = {"fsdp_config.state_dict_type", .literal = "SHARDED_STATE_DICT", .when = export_shards},
    [AXOLOTL_CHECKPOINT] = {"gradient_checkpointing", .text = export_checkpoints},
};

// Handed on to transformers' AcceleratorConfig (axolotl core/builders/base.py).
const ConfigKey axolotl_sync[] = {{"accelerator_config.gradient_accumulation_kwargs.sync_each_batch", KEY_SWITCH,
                                   PLAN_GRAD_SYNC, .on = GRAD_SYNC_EACH, .off = GRAD_SYNC_LAST},
                                  {NULL}};

// ---- the format

const ImportFormat import_axolotl = {
    .name = "axolotl",
    .marks = "base_model sequence_len micro_batch_size datasets num_epochs dp_shard_size fsdp_version",
    .keys = {.mesh = "dp_replicate_size, dp_shard_size, context_parallel_size, tensor_parallel_size, "
                     "expert_parallel_size",
             .micro_batch = "micro_batch_size, gradient_accumulation_steps",
             .reshard = "fsdp_config.reshard_after_forward",
             .recompute = "gradient_checkpointing, fsdp_config.activation_checkpointing",
             .rotate = "ring_attn_func",
             .zero = "fsdp_version",
             .sync = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch",
             .kernels = "torch_compile",
             .loss = "liger_fused_linear_cross_entropy"},
    .read = axolotl_read,
};

// ---- writing

static const char *axolotl_refuse(const ConfigJob *job) {
    const int cp = export_axis(job, AXIS_CP);
    const TrainPlan *plan = job->plan;
    REFUSE_IF(job->arena, cp > 1 && plan->attention != ATTENTION_FLASH,
              "axolotl's cp=%d needs flash attention: use --attention flash, not %s", cp,
              attention_names[plan->attention]);
    REFUSE_IF(job->arena, cp > 1 && plan->micro_batch > 1,
              "axolotl takes cp=%d with micro-batches of one sequence: use --micro-batch 1, not %d", cp,
              plan->micro_batch);
    if (plan->bf16_master != (plan->precision == DTYPE_BF16)) {
        return plan->bf16_master ? "axolotl has bf16 weights with bf16: true only: use --master-weights fp32"
                                 : "axolotl loads weights in bf16 and keeps no fp32 copy: use --master-weights bf16";
    }
    return NULL;
}

static void write_adapters(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    if (!plan_has_adapters(plan)) {
        return;
    }
    const int rank = plan_lora_rank(plan);
    fprintf(out, "adapter: %s\nlora_r: %d\nlora_alpha: %d\n", plan->finetune == FINETUNE_QLORA ? "qlora" : "lora", rank,
            LORA_SCALING * rank);
    if (plan->lora_targets == LORA_ALL) {
        fputs("lora_target_linear: true\n", out);
    } else {
        fputs("lora_target_modules: [", out);
        peft_write_modules(job, "", out);
        fputs("]\n", out);
    }
    fputs(plan->finetune == FINETUNE_QLORA       ? "load_in_4bit: true\n"
          : plan->finetune == FINETUNE_LORA_INT8 ? "load_in_8bit: true\n"
                                                 : "",
          out);
}

static void axolotl_write(const ConfigJob *job, FILE *out) {
    config_write(job, axolotl_keys, CONFIG_YAML, out);
    PRINT_IF(export_syncs_each(job), out,
             "accelerator_config:\n  gradient_accumulation_kwargs:\n    sync_each_batch: true\n");
    axolotl_write_tiles(job, out);
    write_adapters(job, out);
    axolotl_write_plugins(job, out);
    const bool own = job->plan->optimizer == OPTIMIZER_TARGET;
    fprintf(out,
            "# Yours: data, %slearning rate.\n"
            "datasets:\n  - path: your/dataset\n    type: completion\n"
            "optimizer: %s\nlearning_rate: 0.0001\nnum_epochs: 1\noutput_dir: ./outputs\n",
            own ? "optimizer, " : "", hf_optimizer_name(own ? OPTIMIZER_ADAMW_FUSED : job->plan->optimizer));
}

const ExportFormat export_axolotl_yaml = {
    .name = "axolotl",
    .target = "axolotl",
    .file_name = "axolotl.yaml",
    .versions = "axolotl 0.19",
    .comment = "# ",
    EXPORT_HAS(EXPORT_BF16 | EXPORT_FP16 | EXPORT_FP32, EXPORT_NONE | EXPORT_FULL,
               EXPORT_FLASH | EXPORT_BIT(ATTENTION_EAGER), EXPORT_EAGER | EXPORT_COMPILED),
    .takes = PLAN_BIT(PLAN_MASTER_WEIGHTS) | PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_LOSS) | PLAN_BIT(PLAN_FINETUNE) |
             PLAN_BIT(PLAN_OPTIMIZER) | PLAN_BIT(PLAN_PACK) | PLAN_BIT(PLAN_MLP_TILES),
    .refuse = axolotl_refuse,
    .write = axolotl_write,
    .launch = launch_torchrun,
    .program = "-m axolotl.cli.train %s",
};
