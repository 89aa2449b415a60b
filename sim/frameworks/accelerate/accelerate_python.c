// The same as objects of accelerate, in a module that a training script imports: ParallelismConfig and the FSDP plugin
// are built on import, the Accelerator when train.py requests it.

#include "sim/base/escape.h"
#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/peft.h"

// Trainer, launcher and Python alike: context parallelism is SDPA's; fp16 is scaled (torch/amp/grad_scaler.py);
// get_peft_model makes adapters fp32 (autocast_adapter_dtype=True, peft 0.21.2 mapping_func.py).
const char *accelerate_python_refuse(const ConfigJob *job) {
    const bool by_sdpa = job->plan->attention == ATTENTION_FLASH || job->plan->attention == ATTENTION_CUDNN;
    REFUSE_IF(job->arena, export_axis(job, AXIS_CP) > 1 && !by_sdpa,
              "accelerate's cp=%d is that of SDPA: use --attention flash or cudnn, not %s", export_axis(job, AXIS_CP),
              attention_names[job->plan->attention]);
    REFUSE_IF(job->arena, job->plan->bf16_master && job->plan->precision == DTYPE_FP16,
              "PyTorch's GradScaler unscales no gradients that are fp16 themselves: use --master-weights fp32");
    REFUSE_IF(job->arena, job->plan->bf16_master && plan_has_adapters(job->plan),
              "peft's get_peft_model makes adapters fp32, whatever the model is loaded in: use --master-weights fp32");
    return NULL;
}

void parallelism_config_write(const ConfigJob *job, FILE *out) {
    fprintf(out,
            "\nparallelism_config = ParallelismConfig(\n"
            "    dp_replicate_size=%d,\n"
            "    dp_shard_size=%d,\n"
            "    cp_size=%d,\n"
            "    tp_size=%d,\n",
            export_axis(job, AXIS_DP_REPLICATE), export_axis(job, AXIS_DP_SHARD), export_axis(job, AXIS_CP),
            export_axis(job, AXIS_TP));
    PRINT_IF(export_axis(job, AXIS_CP) > 1, out,
             "    cp_handler=TorchContextParallelConfig(cp_comm_strategy=\"%s\"),\n",
             job->plan->cp_rotate == CP_ROTATE_RING ? "alltoall" : "allgather");
    fputs(")\n", out);
}

static const char *torch_dtype(Dtype dtype) {
    return dtype == DTYPE_FP32 ? "torch.float32" : dtype == DTYPE_FP16 ? "torch.float16" : "torch.bfloat16";
}

static void write_plugin(const ConfigJob *job, FILE *out) {
    if (!export_shards(job)) {
        fputs("\nfsdp_plugin = None  # nothing to shard over\n", out);
        return;
    }
    fprintf(out,
            "\nfsdp_plugin = FullyShardedDataParallelPlugin(\n"
            "    fsdp_version=2,\n"
            "    auto_wrap_policy=\"transformer_based_wrap\",\n"
            "    transformer_cls_names_to_wrap=[\"%s\"],\n"
            "    reshard_after_forward=%s,\n"
            "    activation_checkpointing=%s,\n%s"
            "    state_dict_type=\"SHARDED_STATE_DICT\",\n",
            export_layer_class(job->model), job->plan->reshard == RESHARD_ALWAYS ? "True" : "False",
            job->plan->recompute == RECOMPUTE_FULL ? "True" : "False",
            export_offloads_inputs(job) ? "    activation_checkpointing_offload=True,\n" : "");
    if (job->plan->reduce_dtype != REDUCE_DTYPE_TARGET) {
        const char *param = torch_dtype(job->plan->precision);
        fprintf(out,
                "    mixed_precision_policy=MixedPrecisionPolicy(param_dtype=%s, reduce_dtype=%s, output_dtype=%s),\n",
                param, torch_dtype(job->plan->reduce_dtype == REDUCE_DTYPE_FP32 ? DTYPE_FP32 : DTYPE_BF16), param);
    }
    fputs(")\n", out);
}

static void accelerate_python_write(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    bool known = false;
    PRINT_IF(plan->reduce_dtype != REDUCE_DTYPE_TARGET, out,
             "\nimport torch\nfrom torch.distributed.fsdp import MixedPrecisionPolicy");
    fputs("\nfrom accelerate import Accelerator\n"
          "from accelerate.parallelism_config import ParallelismConfig\n"
          "from accelerate.utils import FullyShardedDataParallelPlugin, ",
          out);
    fputs(export_syncs_each(job) ? "GradientAccumulationPlugin, " : "", out);
    fputs(plan->fused == FUSED_COMPILED ? "TorchContextParallelConfig, TorchDynamoPlugin"
                                        : "TorchContextParallelConfig",
          out);
    fputs("\n\nMODEL = ", out);
    escape_quoted(export_model_path(job, &known), out);
    fprintf(out,
            "\nSEQUENCE_LENGTH = %d\n"
            "MICRO_BATCH = %d  # sequences of one DataLoader batch\n"
            "ACCUMULATION = %d\n"
            "GLOBAL_BATCH = %lld\n",
            plan->seq, plan->micro_batch, plan->grad_accum, (long long)plan_global_batch(plan));
    parallelism_config_write(job, out);
    write_plugin(job, out);
    fprintf(out,
            "\n\ndef make_accelerator():\n"
            "    return Accelerator(\n"
            "        mixed_precision=\"%s\",\n"
            "        %s,\n"
            "        parallelism_config=%s,\n"
            "        fsdp_plugin=fsdp_plugin,\n"
            "%s"
            "    )\n",
            export_mixed_precision(job),
            export_syncs_each(job) ? "gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=ACCUMULATION, "
                                     "sync_each_batch=True)"
                                   : "gradient_accumulation_steps=ACCUMULATION",
            mesh_world(&plan->mesh) > 1 ? "parallelism_config" : "None",
            plan->fused == FUSED_COMPILED ? "        dynamo_plugin=TorchDynamoPlugin(backend=\"inductor\"),\n" : "");
    model_arguments_begin(job, "accelerator", out);
    PRINT_IF(export_axis(job, AXIS_TP) > 1, out,
             "    arguments.update(tp_plan=\"auto\", device_mesh=accelerator.torch_device_mesh)\n");
    peft_write_bits(job, out);
    fputs("    return arguments\n", out);
    peft_write_python(job, out);
    PRINT_IF(plan->recompute == RECOMPUTE_FULL && !export_shards(job), out,
             "\n# No FSDP to recompute activations: call model.gradient_checkpointing_enable() before prepare().\n");
}

const ExportFormat export_accelerate_python = {
    .name = "accelerate-python",
    .target = "accelerate@1.15",
    .also = "1.14 1.13",
    EXPORT_OF_ACCELERATE,
    .file_name = "parallel_accelerate.py",
    .versions = "accelerate >= 1.12 (checked with 1.15); torch >= 2.6",
    .takes = PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_MASTER_WEIGHTS) | PLAN_BIT(PLAN_REDUCE_DTYPE) |
             PLAN_BIT(PLAN_LOSS) | PLAN_BIT(PLAN_FINETUNE) | PLAN_BIT(PLAN_OPTIMIZER) | PLAN_BIT(PLAN_PACK),
    .refuse = accelerate_python_refuse,
    .notes = accelerate_notes,
    .write = accelerate_python_write,
    .launch = launch_torchrun,
    .program = "train.py  # which imports %s",
};
