// Names, header and launchers. The header repeats what the report of a prediction says, because a config file
// travels without it. The names of layer classes are those of transformers' modeling files (4.57).

#include "reports/export/export_text.h"

#include <stdlib.h>
#include <string.h>

#include "reports/words.h"
#include "sim/base/escape.h"
#include "sim/base/text.h"

// ---- names

// "meta-llama/Llama-2-7b-hf": presets say which published config.json their sizes are from.
static const char *published_name(const char *source, Arena *arena) {
    const char *end = source ? strstr(source, " config.json") : NULL;
    const char *start = end;
    while (start && start > source && start[-1] != ' ') {
        start--;
    }
    const bool is_name = start && memchr(start, '/', (size_t)(end - start)) && *start != '/' && *start != '.';
    return is_name ? arena_format(arena, "%.*s", (int)(end - start), start) : NULL;
}

const char *export_model_path(const ExportJob *job, bool *known) {
    const char *asked = job->request->model_asked;
    const bool file = text_is_path(asked);
    const char *published = file ? NULL : published_name(job->request->model.source, job->arena);
    *known = file || published;
    if (!file) {
        return published ? published : job->request->model.name;
    }
    const char *slash = strrchr(asked, '/');
    return slash == NULL ? "." : slash == asked ? "/" : arena_format(job->arena, "%.*s", (int)(slash - asked), asked);
}

const char *export_layer_class(const ModelSpec *model) {
    static const struct {
        const char *type, *layer;
    } classes[] = {{"llama", "LlamaDecoderLayer"}, {"mistral", "MistralDecoderLayer"},
                   {"qwen2", "Qwen2DecoderLayer"}, {"qwen3", "Qwen3DecoderLayer"},
                   {"gemma", "GemmaDecoderLayer"}, {"phi3", "Phi3DecoderLayer"},
                   {"olmo2", "Olmo2DecoderLayer"}, {"gpt2", "GPT2Block"},
                   {"gpt_neox", "GPTNeoXLayer"},   {"mpt", "MptBlock"}};
    for (size_t i = 0; model->type && i < sizeof classes / sizeof classes[0]; i++) {
        if (strcmp(classes[i].type, model->type) == 0) {
            return classes[i].layer;
        }
    }
    return classes[0].layer;  // sizes without a type are a Llama's
}

// What the launch command calls the file.
static const char *export_file(const ExportFormat *format, const ExportJob *job) {
    return escape_shell(job->file_name ? job->file_name : format->file_name, job->arena);
}

const char *export_attention(const TrainPlan *plan) {
    return plan->attention == ATTENTION_EAGER    ? "eager"
           : plan->attention == ATTENTION_FLASH3 ? "flash_attention_3"
                                                 : "sdpa";
}

// ---- header

static void header_batch(const ExportJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const int cp = export_axis(job, AXIS_CP), tp = export_axis(job, AXIS_TP);
    fprintf(out,
            "Batch: %lld sequences of %d tokens per optimizer step = micro-batch %d x dp_replicate %d x dp_shard %d x "
            "accumulation %d.\n",
            (long long)plan_global_batch(plan), plan->seq, plan->micro_batch, export_axis(job, AXIS_DP_REPLICATE),
            export_axis(job, AXIS_DP_SHARD), plan->grad_accum);
    if (cp * tp > 1) {
        fprintf(out,
                "  The %d ranks of one (dp_replicate, dp_shard) place (cp %d x tp %d) work on the same sequences.\n",
                cp * tp, cp, tp);
    }
}

static void header_figures(const ExportJob *job, FILE *out) {
    const Prediction *prediction = job->prediction;
    char interval[WORDS_BYTES], rate[TEXT_UNIT_BYTES], memory[TEXT_UNIT_BYTES], limit[TEXT_UNIT_BYTES];
    fprintf(out, "Predicted (80 %% interval; evidence: %s): step %s, %s tokens/s, memory %s of %s per accelerator.\n",
            job->request->target->evidence, words_interval(prediction, interval),
            text_count(rate, prediction->tokens_per_s), text_bytes(memory, prediction->memory.reserved_bytes),
            text_bytes(limit, job->request->memory_limit_bytes));
}

static void header_launch(const ExportFormat *format, const ExportJob *job, FILE *out) {
    fprintf(out, "Launch%s: ",
            job->nodes > 1 ? " on every node, MASTER_ADDR naming the first and NODE_RANK counting them" : "");
    char *program = arena_format(job->arena, format->program, export_file(format, job));
    format->launch(job, program, out);
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
    char mesh[WORDS_BYTES];
    fprintf(out, "Written by ndtune %.*s for %s.\n", (int)strcspn(version, "+"), version, format->versions);
    fprintf(out, "Mesh: %s, %d ranks on %d node%s of %s (%d each).\n", words_mesh(&job->plan->mesh, mesh),
            mesh_world(&job->plan->mesh), job->nodes, job->nodes == 1 ? "" : "s", request->cluster.name,
            job->ranks_per_node);
    header_batch(job, out);
    header_figures(job, out);
    fprintf(out, "  Predicted for %s@%s on the model %s: %s, recompute %s, attention %s, kernels %s.\n",
            request->target->name, request->target->version, request->model.name, dtype_name(job->plan->precision),
            recompute_names[job->plan->recompute], attention_names[job->plan->attention],
            fused_names[job->plan->fused]);
    bool known = false;
    export_model_path(job, &known);
    if (!known) {
        fprintf(out, "Model: %s is a name of sizes; put your model in its place.\n", request->model.name);
    }
    if (format->notes) {
        format->notes(job, out);
    }
    header_launch(format, job, out);
    fprintf(out, "Made by: %s\n", job->command);
    return fclose(out) == 0 ? text : NULL;
}

void export_comment(const char *text, const char *comment, FILE *out) {
    while (*text) {
        const size_t length = strcspn(text, "\n");
        char *line = strndup(text, length);
        fputs(comment, out);
        escape_line(line ? line : "", out);
        fputc('\n', out);
        free(line);
        text += length + (text[length] == '\n');
    }
}

void export_header_write(const char *format, const ExportJob *job, FILE *out) {
    const ExportFormat *row = NULL;
    Error none = {0};
    char *header = export_find(format, &row, &none) == STATUS_OK ? export_header(row, job) : NULL;
    export_comment(header ? header : "", "# ", out);
    free(header);
}

// ---- launchers

void launch_accelerate(const ExportJob *job, const char *program, FILE *out) {
    fputs("accelerate launch", out);
    if (job->nodes > 1) {
        fputs(" --machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR --main_process_port 29500", out);
    }
    fputs(" --config_file ", out);
    fputs(program, out);
}

void launch_torchrun(const ExportJob *job, const char *program, FILE *out) {
    fprintf(out, "torchrun --nnodes %d --nproc-per-node %d", job->nodes, job->ranks_per_node);
    if (job->nodes > 1) {
        fputs(" --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500", out);
    }
    fputc(' ', out);
    fputs(program, out);
}

void launch_script(const ExportJob *job, const char *program, FILE *out) {
    (void)job;
    fputs(program, out);
}
