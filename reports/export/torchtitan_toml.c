// The TOML of torchtitan 0.2 (config/job_config.py of v0.2.2). Gradients are always reduced in fp32 there.

#include "reports/export/export_text.h"
#include "reports/export/formats.h"
#include "reports/export/torchtitan_models.h"
#include "sim/base/escape.h"

static void write_model(const ExportJob *job, FILE *out) {
    const TitanModel *known = torchtitan_model(&job->request->model);
    fprintf(out, "[model]\nname = \"%s\"\nflavor = ", known ? known->folder : "llama3");
    escape_quoted(known ? known->flavor : job->request->model.name, out);
    fputc('\n', out);
    if (job->plan->precision == DTYPE_FP8) {
        fputs("converters = [\"quantize.linear.float8\"]\n", out);
    }
}

static void write_training(const ExportJob *job, FILE *out) {
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

static void write_parallelism(const ExportJob *job, FILE *out) {
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

void torchtitan_toml_write(const ExportJob *job, FILE *out) {
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
