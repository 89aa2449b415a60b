// ModelSpec: names, checks and counts. Parameter and FLOP formulas: model.h (Touvron et al. 2023; PaLM appendix B).

#include "sim/model/model.h"

#include <math.h>
#include <string.h>

#include "sim/base/text.h"
#include "sim/model/model_config.h"

static Status unknown_model(const char *name, Error *error) {
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    enum { MAX_NAMES = 128 };
    const char *names[MAX_NAMES];
    size_t named = 0;
    char list[ERROR_HINT_BYTES] = "";
    for (int i = 0; i < count && named + 2 <= MAX_NAMES; i++) {
        names[named++] = presets[i].spec.name;
        if (presets[i].alias) {
            names[named++] = presets[i].alias;
        }
        strncat(list, i == 0 ? "" : ", ", sizeof list - strlen(list) - 1);
        strncat(list, presets[i].spec.name, sizeof list - strlen(list) - 1);
    }
    const Status status =
        error_set(error, STATUS_USAGE, "unknown model \"%s\"; known: %s, or the path of a config.json", name, list);
    const char *nearest = text_nearest(name, names, named);
    return nearest ? error_hint(error, "did you mean %s?", nearest) : status;
}

Status model_find(const char *name_or_path, Arena *arena, ModelSpec *model, Error *error) {
    if (text_is_path(name_or_path)) {
        return model_config_load(name_or_path, arena, model, error);
    }
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    for (int i = 0; i < count; i++) {
        const bool named = text_same_word(name_or_path, presets[i].spec.name);
        if (named || (presets[i].alias && strcmp(name_or_path, presets[i].alias) == 0)) {
            *model = presets[i].spec;
            return STATUS_OK;
        }
    }
    return unknown_model(name_or_path, error);
}

typedef struct FieldCheck {
    const char *name;
    int value;
} FieldCheck;

Status model_check(const ModelSpec *model, Error *error) {
    const FieldCheck checks[] = {{"layers", model->layers},     {"hidden", model->hidden},     {"heads", model->heads},
                                 {"kv_heads", model->kv_heads}, {"head_dim", model->head_dim}, {"ffn", model->ffn},
                                 {"vocab", model->vocab},       {"max_seq", model->max_seq}};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i].value < 1) {
            return error_set(error, STATUS_USAGE, "model %s: %s must be positive, got %d", model->name, checks[i].name,
                             checks[i].value);
        }
    }
    if (model->heads % model->kv_heads != 0) {
        return error_set(error, STATUS_USAGE, "model %s: kv_heads %d must divide heads %d", model->name,
                         model->kv_heads, model->heads);
    }
    if (model->head_dim % 2 != 0) {
        return error_set(error, STATUS_USAGE, "model %s: head_dim must be even (rotary pairs), got %d", model->name,
                         model->head_dim);
    }
    if (!(model->rope_theta >= 1.0) || !isfinite(model->rope_theta)) {
        return error_set(error, STATUS_USAGE, "model %s: rope_theta must be at least 1, got %g", model->name,
                         model->rope_theta);
    }
    if (!(model->norm_eps > 0.0) || model->norm_eps > 0.1) {
        return error_set(error, STATUS_USAGE, "model %s: norm_eps must be above 0 and at most 0.1, got %g", model->name,
                         model->norm_eps);
    }
    // Every byte count must stay far from 2^63: 16 bytes per parameter of 2^56 parameters would still fit.
    const double parameters = (double)model->layers * model->hidden *
                              (3.0 * model->ffn + 2.0 * (model->heads + model->kv_heads) * (double)model->head_dim);
    if (parameters + 2.0 * model->vocab * (double)model->hidden > 0x1p50) {
        return error_set(error, STATUS_USAGE, "model %s: about %.2g parameters, more than 2^50 are not supported",
                         model->name, parameters);
    }
    return STATUS_OK;
}

// Weights of the four attention and three feed-forward projections.
static int64_t layer_matrix_parameters(const ModelSpec *model) {
    const int64_t hidden = model->hidden;
    const int64_t query = (int64_t)model->heads * model->head_dim;
    const int64_t key_value = (int64_t)model->kv_heads * model->head_dim;
    return hidden * (query + 2 * key_value) + query * hidden + 3 * hidden * model->ffn;
}

int64_t model_layer_parameters(const ModelSpec *model) {
    return layer_matrix_parameters(model) + 2 * (int64_t)model->hidden;
}

int64_t model_parameters(const ModelSpec *model) {
    const int64_t table = (int64_t)model->vocab * model->hidden;
    return model->layers * model_layer_parameters(model) + model->hidden + (model->tied_embeddings ? 1 : 2) * table;
}

int64_t model_flop_parameters(const ModelSpec *model) {
    return model->layers * model_layer_parameters(model) + model->hidden + (int64_t)model->vocab * model->hidden;
}

double model_flops_per_token(const ModelSpec *model, int seq) {
    const double attention = 12.0 * model->layers * (double)model->heads * model->head_dim * seq;
    return 6.0 * (double)model_flop_parameters(model) + attention;
}

void model_hash(const ModelSpec *model, Hash *hash) {
    const int64_t fields[] = {model->layers, model->hidden, model->heads,   model->kv_heads,       model->head_dim,
                              model->ffn,    model->vocab,  model->max_seq, model->tied_embeddings};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        hash_int(hash, fields[i]);
    }
    hash_double(hash, model->rope_theta);
    hash_double(hash, model->norm_eps);
}
