// Names that frameworks use, comments and launchers. The names of layer classes are those of transformers' modeling
// files (4.57).

#include "sim/frameworks/export.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/escape.h"
#include "sim/base/text.h"

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

const char *export_model_path(const ConfigJob *job, bool *known) {
    const char *path = job->model->path;
    const char *published = path ? NULL : published_name(job->model->source, job->arena);
    *known = path || published;
    if (!path) {
        return published ? published : job->model->name;
    }
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    if (strcmp(file, "config.json") != 0) {
        return path;  // a folder is loaded by the file of that name, any other file by its own
    }
    return slash == NULL ? "." : slash == path ? "/" : arena_format(job->arena, "%.*s", (int)(slash - path), path);
}

const char *export_layer_class(const ModelSpec *model) {
    static const struct {
        const char *type, *layer;
    } classes[] = {{"llama", "LlamaDecoderLayer"},
                   {"mistral", "MistralDecoderLayer"},
                   {"qwen2", "Qwen2DecoderLayer"},
                   {"qwen3", "Qwen3DecoderLayer"},
                   {"gemma", "GemmaDecoderLayer"},
                   {"gemma3_text", "Gemma3DecoderLayer"},
                   {"phi3", "Phi3DecoderLayer"},
                   {"olmo2", "Olmo2DecoderLayer"},
                   {"gpt2", "GPT2Block"},
                   {"gpt_neox", "GPTNeoXLayer"},
                   {"mpt", "MptBlock"},
                   {"mixtral", "MixtralDecoderLayer"},
                   {"qwen2_moe", "Qwen2MoeDecoderLayer"},
                   {"qwen3_moe", "Qwen3MoeDecoderLayer"},
                   {"olmoe", "OlmoeDecoderLayer"},
                   {"phimoe", "PhimoeDecoderLayer"},
                   {"gpt_oss", "GptOssDecoderLayer"},
                   {"llama4_text", "Llama4TextDecoderLayer"},
                   {"deepseek_v2", "DeepseekV2DecoderLayer"},
                   {"deepseek_v3", "DeepseekV3DecoderLayer"},
                   {"kimi_k2", "DeepseekV3DecoderLayer"}};
    const int row = model->type ? TEXT_ROW(classes, sizeof classes / sizeof classes[0], type, model->type) : 0;
    return classes[row < 0 ? 0 : row].layer;  // sizes without a type are a Llama's
}

// Flash where SDPA would take cuDNN's kernel, and of variable lengths, is flash-attn's; cp is SDPA's alone.
const char *export_attention(const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    const bool other = job->target->cudnn_here && plan->attention == ATTENTION_FLASH && !export_cuts_sequences(job);
    return plan->attention == ATTENTION_EAGER    ? "eager"
           : plan->attention == ATTENTION_FLASH3 ? "flash_attention_3"
           : plan->pack > 0 || other             ? "flash_attention_2"
                                                 : "sdpa";
}

// A priority that the target's code sets is within any of the script's.
const char *export_sdpa_note(const ConfigJob *job) {
    const Target *target = job->target;
    const AttentionKernel asked = job->plan->attention;
    const bool by_code = target->cudnn_first == CUDNN_FIRST_BY_CODE;
    if (asked == ATTENTION_CUDNN && !target->cudnn_here && !target->engine_attention) {
        return " PyTorch's SDPA is expected to take another kernel than cuDNN's here; where it has one, it is asked "
               "for by "
               "torch.nn.attention.sdpa_kernel(SDPBackend.CUDNN_ATTENTION).";
    }
    if (asked == ATTENTION_FLASH && target->cudnn_here && (by_code || export_cuts_sequences(job))) {
        return by_code ? " SDPA takes cuDNN's kernel here: for flash take CUDNN_ATTENTION out of the backends that the "
                         "framework's code asks for."
                       : " SDPA takes cuDNN's kernel here: for flash run the step in "
                         "torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION).";
    }
    return "";
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

void launch_torchrun(const ConfigJob *job, const char *program, FILE *out) {
    fprintf(out, "torchrun --nnodes %d --nproc-per-node %d", job->nodes, job->ranks_per_node);
    PRINT_IF(job->nodes > 1, out, " --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500");
    fputc(' ', out);
    fputs(program, out);
}

void launch_script(const ConfigJob *job, const char *program, FILE *out) {
    (void)job;
    fputs(program, out);
}
