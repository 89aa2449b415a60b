// NeMo Automodel's YAML (0.7, recipes/_dist_utils.py): transformers' modules under FSDP2, as accelerate has them, so
// its plans are those of accelerate. The ring cannot be chosen there
// (components/distributed/context_parallel/sharder.py), and replicas alone are refused (mesh_utils.py).

#include "sim/base/escape.h"
#include "sim/frameworks/automodel/automodel_files.h"

static const char *automodel_refuse(const ConfigJob *job) {
    const int cp = export_axis(job, AXIS_CP), replicate = export_axis(job, AXIS_DP_REPLICATE);
    if (cp > 1 && job->plan->cp_rotate == CP_ROTATE_RING) {
        return arena_format(job->arena, "nemo-automodel's cp=%d gathers keys and values: use --cp-rotate allgather",
                            cp);
    }
    if (replicate > 1 && export_axis(job, AXIS_DP_SHARD) == 1) {
        return arena_format(
            job->arena, "nemo-automodel refuses dp_replicate=%d with dp_shard=1: use dp_shard=%d with dp_replicate=1",
            replicate, replicate);
    }
    return NULL;
}

static void automodel_notes(const ConfigJob *job, FILE *out) {
    (void)job;
    fputs("The figures are those of accelerate, whose modules and sharding it shares.\n", out);
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
    fprintf(out, "\n  attn_implementation: %s\n", export_attention(plan));
    fprintf(out,
            "distributed:\n"
            "  strategy: fsdp2\n"
            "  dp_size: %d\n"
            "  dp_replicate_size: %d\n"
            "  tp_size: %d\n"
            "  cp_size: %d\n"
            "  sequence_parallel: false\n"
            "  activation_checkpointing: %s\n"
            "  reshard_after_forward: true\n"
            "%s"
            "  mp_policy:\n"
            "    param_dtype: bfloat16\n"
            "    reduce_dtype: %s\n"
            "dataset:\n"
            "  seq_length: %d\n",
            replicate * export_axis(job, AXIS_DP_SHARD), replicate, export_axis(job, AXIS_TP),
            export_axis(job, AXIS_CP), export_bool(plan->recompute == RECOMPUTE_FULL),
            export_syncs_each(job) ? "  defer_fsdp_grad_sync: false\n" : "",
            plan->reduce_dtype == REDUCE_DTYPE_FP32 ? "float32" : "bfloat16", plan->seq);
}

const ExportFormat export_automodel_yaml = {
    .name = "automodel",
    .target = "accelerate@1.14",
    .also = "1.15 1.13",
    .file_name = "automodel.yaml",
    .versions = "nemo-automodel 0.7",
    .comment = "# ",
    .precisions = EXPORT_BF16,
    .recomputes = EXPORT_NONE | EXPORT_FULL,
    .attentions = EXPORT_FLASH,
    .fuseds = EXPORT_EAGER,
    .reduce_dtype = true,
    .refuse = automodel_refuse,
    .notes = automodel_notes,
    .write = automodel_write,
    .launch = launch_torchrun,
    .program = "-m nemo_automodel.recipes.llm.train_ft -c %s",
};
