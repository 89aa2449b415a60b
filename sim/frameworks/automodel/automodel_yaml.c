// NeMo Automodel's YAML (0.7, recipes/_dist_utils.py). Plans of accelerate, whose modules it shares, are written too;
// the ring cannot be chosen there (components/distributed/context_parallel/sharder.py).

#include <string.h>

#include "sim/base/escape.h"
#include "sim/frameworks/automodel/automodel_files.h"

static const char *automodel_refuse(const ConfigJob *job) {
    const int cp = export_axis(job, AXIS_CP);
    REFUSE_IF(job->arena, cp > 1 && job->plan->cp_rotate == CP_ROTATE_RING,
              "nemo-automodel's cp=%d gathers keys and values: use --cp-rotate allgather", cp);
    return automodel_refuse_mesh(&job->plan->mesh, job->arena);
}

static void automodel_notes(const ConfigJob *job, FILE *out) {
    PRINT_IF(strcmp(job->target->name, "automodel") != 0, out,
             "The figures are those of %s, whose modules it shares: --target automodel has its own.\n",
             job->target->name);
}

static const char *reduce_dtype(const ConfigJob *job) {
    const bool fp32 = job->plan->reduce_dtype == REDUCE_DTYPE_FP32 ||
                      (job->plan->reduce_dtype == REDUCE_DTYPE_TARGET && job->target->reduce_dtype_bf16 == DTYPE_FP32);
    return fp32 ? "float32" : "bfloat16";
}

// Of its own layers of experts (components/models/common/utils.py); other models of it are transformers'.
static void write_backend(const ConfigJob *job, FILE *out) {
    PRINT_IF(export_axis(job, AXIS_EP) > 1, out,
             "  backend:\n"
             "    _target_: nemo_automodel.components.models.common.BackendConfig\n"
             "    attn: sdpa\n"
             "    linear: torch\n"
             "    experts: torch_mm\n"
             "    dispatcher: %s\n",
             dispatch_names[target_dispatch(job->target, job->plan)]);
}

static void automodel_write(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const int replicate = export_axis(job, AXIS_DP_REPLICATE);
    bool known = false;
    fprintf(out,
            "step_scheduler:\n"
            "  global_batch_size: %lld\n"
            "  local_batch_size: %d\n"
            "  max_steps: 100  # yours, as dataset, optimizer and loss_fn\n",
            (long long)plan_global_batch(plan), plan->micro_batch);
    fputs("model:\n"
          "  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"
          "  pretrained_model_name_or_path: ",
          out);
    escape_quoted(export_model_path(job, &known), out);
    fprintf(out, "\n  attn_implementation: %s\n  torch_dtype: float32  # master weights\n", export_attention(job));
    write_backend(job, out);
    fprintf(out,
            "distributed:\n"
            "  strategy: fsdp2\n"
            "  dp_size: %d\n"
            "  dp_replicate_size: %d\n"
            "  tp_size: %d\n"
            "  cp_size: %d\n"
            "%s"
            "  sequence_parallel: false\n"
            "  activation_checkpointing: %s\n"
            "  reshard_after_forward: %s\n"
            "%s"
            "%s%s"
            "  mp_policy:\n"
            "    param_dtype: bfloat16\n"
            "    reduce_dtype: %s\n"
            "dataset:\n"
            "  seq_length: %d\n",
            replicate * export_axis(job, AXIS_DP_SHARD), replicate, export_axis(job, AXIS_TP),
            export_axis(job, AXIS_CP),
            export_axis(job, AXIS_EP) > 1 ? arena_format(job->arena, "  ep_size: %d\n", export_axis(job, AXIS_EP)) : "",
            export_bool(plan->recompute == RECOMPUTE_FULL), export_bool(plan->reshard == RESHARD_ALWAYS),
            export_syncs_each(job) ? "  defer_fsdp_grad_sync: false\n" : "",
            plan->fused == FUSED_COMPILED ? "  enable_compile: true\n" : "",
            plan->offload == OFFLOAD_PARAMETERS
                ? "  offload_policy:\n    _target_: torch.distributed.fsdp.CPUOffloadPolicy\n"
                : "",
            reduce_dtype(job), plan->seq);
}

const ExportFormat export_automodel_yaml = {
    .name = "automodel",
    .target = "automodel@0.7",
    .also = "accelerate@1.15 accelerate@1.14 accelerate@1.13",
    .file_name = "automodel.yaml",
    .versions = "nemo-automodel 0.7",
    .comment = "# ",
    EXPORT_HAS(EXPORT_BF16, EXPORT_NONE | EXPORT_FULL, EXPORT_SDPA, EXPORT_EAGER | EXPORT_COMPILED),
    .takes = PLAN_BIT(PLAN_REDUCE_DTYPE) | PLAN_BIT(PLAN_DISPATCH) | PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_RESHARD),
    .refuse = automodel_refuse,
    .notes = automodel_notes,
    .write = automodel_write,
    .launch = launch_torchrun,
    .program = "-m nemo_automodel.recipes.llm.train_ft -c %s",
};
