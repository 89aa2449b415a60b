// The header of a file. It repeats what the report of a prediction says, because a config file travels without it.

#include "reports/export/export_header.h"

#include <string.h>

#include "autotune/predict/evidence.h"
#include "reports/format.h"
#include "sim/base/escape.h"
#include "sim/base/text.h"

// The file name used in the launch command.
static const char *export_file(const ExportFormat *format, const ExportJob *job) {
    return escape_shell(job->file_name ? job->file_name : format->file_name, job->arena);
}

static void header_batch(const ExportJob *job, FILE *out) {
    const TrainPlan *plan = job->config.plan;
    const int cp = export_axis(&job->config, AXIS_CP), tp = export_axis(&job->config, AXIS_TP);
    fprintf(out,
            "Batch: %lld sequences of %d tokens per optimizer step = micro-batch %d x dp_replicate %d x dp_shard %d x "
            "accumulation %d%s.\n",
            (long long)plan_global_batch(plan), plan->seq, plan->micro_batch,
            export_axis(&job->config, AXIS_DP_REPLICATE), export_axis(&job->config, AXIS_DP_SHARD), plan->grad_accum,
            format_rounds(plan, FORMAT_BUFFER));
    if (cp * tp > 1) {
        fprintf(out,
                "  The %d ranks of one (dp_replicate, dp_shard) place (cp %d x tp %d) work on the same sequences.\n",
                cp * tp, cp, tp);
    }
}

static void header_figures(const ExportJob *job, FILE *out) {
    const Prediction *prediction = job->prediction;
    fprintf(out, "Predicted (80 %% interval; %s): step %s, %s tokens/s, memory %s of %s per accelerator.\n",
            evidence_text(job->request, EVIDENCE_BUFFER), format_interval(prediction, FORMAT_BUFFER),
            text_count(UNIT_BUFFER, prediction->tokens_per_s),
            text_bytes(UNIT_BUFFER, prediction->memory.reserved_bytes),
            text_bytes(UNIT_BUFFER, job->request->memory_limit_bytes));
}

static void header_launch(const ExportFormat *format, const ExportJob *job, FILE *out) {
    fprintf(out, "Launch%s: ",
            job->config.nodes > 1 ? " on every node, MASTER_ADDR naming the first and NODE_RANK counting them" : "");
    char *program = arena_format(job->arena, format->program, export_file(format, job));
    format->launch(&job->config, program, out);
    fputc('\n', out);
}

char *export_header(const ExportFormat *format, const ExportJob *job) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) {
        return NULL;
    }
    const TuneRequest *request = job->request;
    const char *version = tune_engine_version();
    fprintf(out, "Written by ndtune %.*s for %s.\n", (int)strcspn(version, "+"), version, format->versions);
    fprintf(out, "Mesh: %s, %d ranks on %d node%s of %s (%d each).\n",
            format_mesh(&job->config.plan->mesh, FORMAT_BUFFER), mesh_world(&job->config.plan->mesh), job->config.nodes,
            job->config.nodes == 1 ? "" : "s", request->cluster.name, job->config.ranks_per_node);
    header_batch(job, out);
    header_figures(job, out);
    fprintf(out, "  Predicted for %s@%s on the model %s: %s, recompute %s, attention %s, kernels %s.%s\n",
            request->target->name, request->target->version, request->model.name,
            dtype_name(job->config.plan->precision), plan_recompute_text(job->config.plan, RECOMPUTE_BUFFER),
            attention_names[job->config.plan->attention], fused_names[job->config.plan->fused],
            export_sdpa_note(&job->config));
    bool known = false;
    export_model_path(&job->config, &known);
    if (!known) {
        fprintf(out, "Model: %s is a name of sizes; put your model in its place.\n", request->model.name);
    }
    if (format->notes) {
        format->notes(&job->config, out);
    }
    header_launch(format, job, out);
    fprintf(out, "Made by: %s\n", job->command);
    return fclose(out) == 0 ? text : NULL;
}
