// DeepSpeed's JSON (0.19). It shards over all data-parallel ranks: sharded groups with replicas were MiCS, which 0.19.8
// removed, and zero_hpz_partition_size keeps the optimizer sharded over all, which is another plan. A key that
// DeepSpeed does not know carries the header, as JSON has no comments.

#include <string.h>

#include "sim/base/escape.h"
#include "sim/frameworks/deepspeed/deepspeed_files.h"

static const char *deepspeed_refuse(const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    const int replicate = export_axis(job, AXIS_DP_REPLICATE), shard = export_axis(job, AXIS_DP_SHARD);
    if (replicate > 1 && plan->zero > 0) {
        return arena_format(
            job->arena,
            "DeepSpeed shards over all %d data-parallel ranks (MiCS is gone since 0.19.8, hpZ keeps the "
            "optimizer sharded over all): use dp_shard=%d with dp_replicate=1, or --zero 0",
            replicate * shard, replicate * shard);
    }
    if (export_axis(job, AXIS_TP) > 1 && plan->zero == 3) {
        return arena_format(
            job->arena,
            "DeepSpeed's tensor parallelism (autotp_size) goes with stages 0 to 2: use --zero 2, or tp=1 "
            "instead of tp=%d",
            export_axis(job, AXIS_TP));
    }
    return NULL;
}

static void deepspeed_notes(const ConfigJob *job, FILE *out) {
    if (job->plan->recompute == RECOMPUTE_FULL) {
        fputs("Your script: model.gradient_checkpointing_enable(); the file cannot switch recomputation on.\n", out);
    }
    fprintf(out, "Your script: sequences of %d tokens, model loaded with attn_implementation=\"%s\".\n", job->plan->seq,
            export_attention(job->plan));
}

static void write_header(const ConfigJob *job, FILE *out) {
    const char *comma = "";
    char *rest = NULL;
    fputs("{\n    \"_comment\": [", out);
    for (char *line = strtok_r(arena_text(job->arena, job->header), "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        fprintf(out, "%s\n        ", comma);
        escape_quoted(line, out);
        comma = ",";
    }
    fputs("\n    ],\n", out);
}

static void deepspeed_write(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    write_header(job, out);
    fprintf(out,
            "    \"train_batch_size\": %lld,\n"
            "    \"train_micro_batch_size_per_gpu\": %d,\n"
            "    \"gradient_accumulation_steps\": %d,\n"
            "    \"gradient_clipping\": 1.0,\n"
            "    \"bf16\": {\"enabled\": %s},\n"
            "    \"fp16\": {\"enabled\": %s},\n",
            (long long)plan_global_batch(plan), plan->micro_batch, plan->grad_accum,
            export_bool(plan->precision == DTYPE_BF16), export_bool(plan->precision == DTYPE_FP16));
    if (export_axis(job, AXIS_TP) > 1) {
        fprintf(out, "    \"tensor_parallel\": {\"autotp_size\": %d},\n", export_axis(job, AXIS_TP));
    }
    fprintf(out, "    \"zero_optimization\": {\"stage\": %d%s}\n}\n", plan->zero,
            plan->zero > 0 ? ", \"overlap_comm\": true" : "");
}

const ExportFormat export_deepspeed_json = {
    .name = "deepspeed",
    .target = "deepspeed",
    .file_name = "deepspeed.json",
    .versions = "DeepSpeed >= 0.16.4 (checked with 0.19.8)",
    .precisions = EXPORT_BF16 | EXPORT_FP16 | EXPORT_FP32,
    .recomputes = EXPORT_NONE | EXPORT_FULL,
    .attentions = EXPORT_OF_TRANSFORMERS,
    .fuseds = EXPORT_EAGER,
    .refuse = deepspeed_refuse,
    .notes = deepspeed_notes,
    .write = deepspeed_write,
    .launch = launch_torchrun,
    .program = "train.py --deepspeed_config %s",
};
