// Sizes come from the row; structure from the preset of the same name where there is one, else from the family that
// the MLP tells. Whether embeddings are tied no column says: of both, the one whose parameter count is nearer to the
// row's.

#include "autotune/accuracy/run_model.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64 };

// Letters and digits in lower case: "Llama3-8B" and "llama-3-8b" are one name.
static void plain_name(const char *name, char out[NAME_BYTES]) {
    size_t used = 0;
    for (; *name && used + 1 < NAME_BYTES; name++) {
        if (isalnum((unsigned char)*name)) {
            out[used++] = (char)tolower((unsigned char)*name);
        }
    }
    out[used] = '\0';
}

static const ModelSpec *preset_named(const char *name) {
    char wanted[NAME_BYTES], plain[NAME_BYTES];
    plain_name(name, wanted);
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    for (int i = 0; i < count; i++) {
        plain_name(presets[i].spec.name, plain);
        if (strcmp(plain, wanted) == 0) {
            return &presets[i].spec;
        }
    }
    return NULL;
}

static const ModelSpec llama_like = {.rope_theta = 10000.0, .norm_eps = 1e-5};

static void choose_tying(const RunRow *row, ModelSpec *model) {
    if (row->params_b <= 0) {
        return;
    }
    ModelSpec other = *model;
    other.tied_embeddings = !model->tied_embeddings;
    const double published = row->params_b * 1e9;
    if (fabs((double)model_parameters(&other) - published) < fabs((double)model_parameters(model) - published)) {
        *model = other;
    }
}

const char *run_model(Arena *arena, const RunRow *row, ModelSpec *model) {
    if (row->layers == 0 || row->hidden == 0 || row->heads == 0 || row->ffn == 0 || row->vocab == 0) {
        return "layers, hidden, heads, ffn or vocab is empty";
    }
    if (row->mlp[0] && strcmp(row->mlp, "swiglu") != 0) {
        return arena_format(arena, "%s models are not in this version", row->mlp);
    }
    const ModelSpec *preset = preset_named(row->model);
    *model = preset ? *preset : llama_like;
    snprintf(model->name, sizeof model->name, "%s", row->model);
    model->layers = (int)row->layers;
    model->hidden = (int)row->hidden;
    model->heads = (int)row->heads;
    model->kv_heads = (int)(row->kv_heads > 0 ? row->kv_heads : row->heads);
    model->head_dim = (int)(row->head_dim > 0 ? row->head_dim : row->hidden / row->heads);
    model->ffn = (int)row->ffn;
    model->vocab = (int)row->vocab;
    model->max_seq = (int)(row->seq > 0 ? row->seq : 1);
    model->source = "the row's own columns";
    choose_tying(row, model);
    Error error = {0};
    return model_check(model, &error) == STATUS_OK ? NULL : arena_text(arena, error.message);
}
