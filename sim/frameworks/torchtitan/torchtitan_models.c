// Which of torchtitan's models (its llama3 and qwen3 folders, v0.2.2) has the sizes of the plan's, and both of its
// formats' checks. A Llama that torchtitan does not know is written with the arguments to register it under.

#include "sim/frameworks/torchtitan/torchtitan_models.h"

#include <string.h>

#include "sim/frameworks/torchtitan/torchtitan_files.h"

static const TitanModel models[] = {
    {"llama3", "8B", "llama-3.1-8b", 32, 4096, 128256},
    {"llama3", "70B", "llama-3.1-70b", 80, 8192, 128256},
    {"llama3", "405B", "llama-3.1-405b", 126, 16384, 128256},
    {"qwen3", "0.6B", "qwen3-0.6b", 28, 1024, 151936},
    {"qwen3", "1.7B", "qwen3-1.7b", 28, 2048, 151936},
    {"qwen3", "4B", "qwen3-4b", 36, 2560, 151936},
    {"qwen3", "8B", "qwen3-8b", 36, 4096, 151936},
    {"qwen3", "14B", "qwen3-14b", 40, 5120, 151936},
    {"qwen3", "32B", "qwen3-32b", 64, 5120, 151936},
    {"qwen3", "30B-A3B", "qwen3-30b-a3b", 48, 2048, 151936},
    {"qwen3", "235B-A22B", "qwen3-235b-a22b", 94, 4096, 151936},
    {"deepseek_v3", "16B", "deepseek-v2-lite", 27, 2048, 102400},  // models/deepseek_v3/__init__.py: its sizes
    {"deepseek_v3", "671B", "deepseek-v3", 61, 7168, 129280},
};
enum { MODELS = sizeof models / sizeof models[0] };

const TitanModel *torchtitan_model(const ModelSpec *model) {
    const bool qwen = model->type && (strcmp(model->type, "qwen3") == 0 || strcmp(model->type, "qwen3_moe") == 0);
    const char *folder = qwen ? "qwen3" : "llama3";
    for (int i = 0; i < MODELS; i++) {
        const TitanModel *row = &models[i];
        if (strcmp(row->folder, folder) == 0 && row->layers == model->layers && row->hidden == model->hidden &&
            row->vocab == model->vocab) {
            return row;
        }
    }
    return NULL;
}

const TitanModel *torchtitan_model_named(const char *folder, const char *flavor) {
    const size_t length = strcspn(flavor, "_");
    for (int i = 0; i < MODELS; i++) {
        const TitanModel *row = &models[i];
        if (strcmp(row->folder, folder) == 0 && strlen(row->flavor) == length &&
            strncmp(row->flavor, flavor, length) == 0) {
            return row;
        }
    }
    return NULL;
}

const char *torchtitan_other_model(const char *folder, const char *flavor) {
    static const struct {
        const char *folder, *flavor, *what;  // flavor: part of it; NULL = all
    } others[] = {{"flux", NULL, "a diffusion model"},
                  {"gpt_oss", NULL, "a mixture of experts"},
                  {"deepseek_v3", NULL, "a mixture of experts"},
                  {"llama4", NULL, "a mixture of experts"},
                  {"qwen3", "moe", "a mixture of experts"},
                  {"vlm", NULL, "a model of images and text"},
                  {"siglip2", NULL, "a model of images and text"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strstr(folder, others[i].folder) && (!others[i].flavor || strstr(flavor, others[i].flavor))) {
            return others[i].what;
        }
    }
    return NULL;
}

static bool is_llama(const ModelSpec *model) {
    return !model->type || strcmp(model->type, "llama") == 0;
}

const char *torchtitan_refuse(const ConfigJob *job) {
    const ModelSpec *model = job->model;
    REFUSE_IF(job->arena, !torchtitan_model(model) && !is_llama(model),
              "torchtitan has no model of the type and sizes of %s: use a llama or qwen3 model", model->name);
    REFUSE_IF(job->arena, job->plan->tp_overlap && job->plan->fused != FUSED_COMPILED,
              "torchtitan's asynchronous tensor parallelism needs torch.compile: use --fused compiled");
    return torchtitan_refuse_stages(job);
}

// As RoPEScalingArgs of v0.2.2's models/llama3/model/args.py has it; linear scaling has no place there.
static void write_rope_scaling(const RopeScaling *scaling, FILE *out) {
    if (scaling->factor > 0 && scaling->original > 0) {
        fprintf(out,
                ", rope_scaling_args scaling_factor %g, low_freq_factor %g, high_freq_factor %g, "
                "original_max_position_embeddings %.0f",
                scaling->factor, scaling->low, scaling->high, scaling->original);
    } else if (scaling->factor > 0) {
        fprintf(out, ", and a linear rope scaling of %g, which torchtitan's llama3 does not have", scaling->factor);
    } else {
        fputs(", no rope scaling (torchtitan scales by itself: rope_scaling_args scaling_factor 1)", out);
    }
}

void torchtitan_notes(const ConfigJob *job, FILE *out) {
    const ModelSpec *model = job->model;
    PRINT_IF(job->plan->pack > 0, out, "Your data: documents of %d tokens in the mean, by which attention is masked.\n",
             job->plan->pack);
    if (torchtitan_model(model)) {
        return;
    }
    fprintf(out,
            "Model: register %s among torchtitan's llama3 flavors: dim %d, n_layers %d, n_heads %d, n_kv_heads %d, "
            "feed-forward width %d, vocab_size %d, rope_theta %.0f, norm_eps %g",
            model->name, model->hidden, model->layers, model->heads, model->kv_heads, model->ffn, model->vocab,
            model->rope_theta, model->norm_eps);
    write_rope_scaling(&model->rope_scaling, out);
    PRINT_IF(job->plan->pack > 0 && job->target->pack_flavour == PACKS_BY_MASK, out,
             ", attn_type flex, attn_mask_type block_causal");
    fputs(".\n", out);
}

bool torchtitan_other_dispatcher(const ConfigJob *job) {
    return export_spreads_experts(job) && job->plan->dispatch != DISPATCH_TARGET;
}
