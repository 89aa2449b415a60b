// The TOML of torchtitan 0.2 (config/job_config.py of v0.2.2). Gradients are always reduced in fp32 there.

#include "sim/base/escape.h"
#include "sim/frameworks/torchtitan/torchtitan_files.h"
#include "sim/frameworks/torchtitan/torchtitan_models.h"

static void write_model(const ConfigJob *job, FILE *out) {
    const TitanModel *known = torchtitan_model(job->model);
    fprintf(out, "[model]\nname = \"%s\"\nflavor = ", known ? known->folder : "llama3");
    escape_quoted(known ? known->flavor : job->model->name, out);
    fputc('\n', out);
    if (job->plan->precision == DTYPE_FP8) {
        fputs("converters = [\"quantize.linear.float8\"]\n", out);
    }
}

static void write_training(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    fprintf(out,
            "\n[training]\n"
            "local_batch_size = %d\n"
            "global_batch_size = %lld\n"
            "seq_len = %d\n"
            "dtype = \"%s\"\n"
            "mixed_precision_param = \"%s\"\n"
            "mixed_precision_reduce = \"float32\"\n"
            "dataset = \"c4\"  # yours\n",
            plan->micro_batch, (long long)plan_global_batch(plan), plan->seq,
            plan->bf16_master ? "bfloat16" : "float32", plan->precision == DTYPE_FP32 ? "float32" : "bfloat16");
}

static void write_parallelism(const ConfigJob *job, FILE *out) {
    fprintf(out,
            "\n[parallelism]\n"
            "data_parallel_replicate_degree = %d\n"
            "data_parallel_shard_degree = %d\n"
            "context_parallel_degree = %d\n"
            "tensor_parallel_degree = %d\n"
            "pipeline_parallel_degree = 1\n"
            "fsdp_reshard_after_forward = \"%s\"\n"
            "context_parallel_rotate_method = \"allgather\"\n"
            "enable_async_tensor_parallel = %s\n",
            export_axis(job, AXIS_DP_REPLICATE), export_axis(job, AXIS_DP_SHARD), export_axis(job, AXIS_CP),
            export_axis(job, AXIS_TP), reshard_names[job->plan->reshard], export_bool(job->plan->tp_overlap));
}

static void torchtitan_toml_write(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    write_model(job, out);
    write_training(job, out);
    write_parallelism(job, out);
    fprintf(out, "\n[activation_checkpoint]\nmode = \"%s\"\n", recompute_names[plan->recompute]);
    if (plan->recompute == RECOMPUTE_SELECTIVE) {
        fputs("selective_ac_option = \"op\"\n", out);
    }
    fprintf(out, "\n[compile]\nenable = %s\n", export_bool(plan->fused == FUSED_COMPILED));
    if (plan->precision == DTYPE_FP8) {
        fprintf(out, "\n[quantize.linear.float8]\nrecipe_name = \"%s\"\nenable_fsdp_float8_all_gather = %s\n",
                fp8_recipe_names[plan->fp8_recipe], export_bool(plan->fp8_recipe == FP8_TENSORWISE));
    }
}

const ExportFormat export_torchtitan_toml = {
    .name = "torchtitan-toml",
    .target = "torchtitan@0.2",
    .file_name = "torchtitan.toml",
    .versions = "torchtitan 0.2 (checked with 0.2.2)",
    .comment = "# ",
    .precisions = EXPORT_BF16 | EXPORT_FP32 | EXPORT_FP8,
    .recomputes = EXPORT_NONE | EXPORT_FULL | EXPORT_SELECTIVE,
    .attentions = EXPORT_FLASH,
    .fuseds = EXPORT_EAGER | EXPORT_COMPILED,
    .never_reshards = true,
    .bf16_master = true,
    .tp_overlap = true,
    .refuse = torchtitan_refuse,
    .notes = torchtitan_notes,
    .write = torchtitan_toml_write,
    .launch = launch_torchrun,
    .program = "-m torchtitan.train --job.config_file %s",
};
