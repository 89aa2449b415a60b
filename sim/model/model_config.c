// Hugging Face config.json of model_type llama. Defaults of absent fields are those of transformers' LlamaConfig:
// num_key_value_heads = num_attention_heads, head_dim = hidden_size / num_attention_heads, rope_theta 10000,
// rms_norm_eps 1e-6, tie_word_embeddings false. Newer files keep rope_theta inside rope_parameters. Does not model rope
// scaling (it changes no cost) and refuses biases.

#include "sim/model/model_config.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/text.h"

static const char *const supported_types[] = {"llama"};

enum {
    MAX_LAYERS = 1024,    // ten times the deepest published decoder
    MAX_WIDTH = 1 << 20,  // hidden and ffn; 64 times llama-3.1-405b's 16384
    MAX_HEADS = 1 << 14,
    MAX_VOCAB = 1 << 24,
    MAX_SEQUENCE = 1 << 28,
};

static Status check_type(const JsonReader *config, Arena *arena, Error *error) {
    const char *type = NULL;
    TRY(json_get_text(config, "model_type", arena, &type, error));
    if (strcmp(type, supported_types[0]) == 0) {
        return STATUS_OK;
    }
    const Status status = json_error(config, "model_type", error, "\"%s\" is not supported; supported: llama", type);
    return text_nearest(type, supported_types, 1) ? error_hint(error, "did you mean \"llama\"?") : status;
}

static Status read_int(const JsonReader *config, const char *key, int high, int *value, Error *error) {
    int64_t number = 0;
    TRY(json_get_int(config, key, 1, high, &number, error));
    *value = (int)number;
    return STATUS_OK;
}

static Status read_int_or(const JsonReader *config, const char *key, int high, int fallback, int *value, Error *error) {
    int64_t number = 0;
    TRY(json_get_int_or(config, key, 1, high, fallback, &number, error));
    *value = (int)number;
    return STATUS_OK;
}

static Status read_heads(const JsonReader *config, ModelSpec *model, Error *error) {
    TRY(read_int(config, "num_attention_heads", MAX_HEADS, &model->heads, error));
    TRY(read_int_or(config, "num_key_value_heads", MAX_HEADS, model->heads, &model->kv_heads, error));
    if (model->heads % model->kv_heads != 0) {
        return json_error(config, "num_key_value_heads", error, "must divide num_attention_heads %d, got %d",
                          model->heads, model->kv_heads);
    }
    if (model->hidden < model->heads || model->hidden % model->heads != 0) {
        TRY(read_int(config, "head_dim", MAX_WIDTH, &model->head_dim, error));
        return STATUS_OK;  // no default exists: the file must say
    }
    return read_int_or(config, "head_dim", MAX_WIDTH, model->hidden / model->heads, &model->head_dim, error);
}

static Status read_rope(const JsonReader *config, Arena *arena, ModelSpec *model, Error *error) {
    const double low = 1.0;
    const double high = 1e12;
    if (json_is_object(json_object_get(config->object, "rope_parameters"))) {
        JsonReader rope;
        TRY(json_get_object(config, "rope_parameters", arena, &rope, error));
        return json_get_double_or(&rope, "rope_theta", low, high, 10000.0, &model->rope_theta, error);
    }
    return json_get_double_or(config, "rope_theta", low, high, 10000.0, &model->rope_theta, error);
}

static Status refuse_biases(const JsonReader *config, Error *error) {
    static const char *const keys[] = {"attention_bias", "mlp_bias"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bool biased = false;
        TRY(json_get_bool_or(config, keys[i], false, &biased, error));
        if (biased) {
            return json_error(config, keys[i], error, "must be false, projections with biases are not modelled");
        }
    }
    return STATUS_OK;
}

static Status refuse_activation(const JsonReader *config, Arena *arena, Error *error) {
    const char *activation = NULL;
    TRY(json_get_text_or(config, "hidden_act", "silu", arena, &activation, error));
    if (strcmp(activation, "silu") != 0 && strcmp(activation, "swish") != 0) {
        return json_error(config, "hidden_act", error, "must be \"silu\", got \"%s\"", activation);
    }
    return STATUS_OK;
}

// The folder that holds the file names the model ("Llama-2-7b/config.json"); else the file's own name.
static void name_from_path(const char *path, ModelSpec *model) {
    const char *file = strrchr(path, '/');
    const char *name = file ? file + 1 : path;
    size_t length = strlen(name);
    if (strcmp(name, "config.json") == 0 && file && file > path) {
        const char *end = file;
        const char *begin = end;
        while (begin > path && begin[-1] != '/') {
            begin--;
        }
        name = begin;
        length = (size_t)(end - begin);
    } else if (length > 5 && strcmp(name + length - 5, ".json") == 0) {
        length -= 5;
    }
    snprintf(model->name, sizeof model->name, "%.*s", (int)(length < 63 ? length : 63), name);
}

static Status read_config(const JsonReader *config, Arena *arena, ModelSpec *model, Error *error) {
    TRY(check_type(config, arena, error));
    TRY(read_int(config, "num_hidden_layers", MAX_LAYERS, &model->layers, error));
    TRY(read_int(config, "hidden_size", MAX_WIDTH, &model->hidden, error));
    TRY(read_heads(config, model, error));
    TRY(read_int(config, "intermediate_size", MAX_WIDTH, &model->ffn, error));
    TRY(read_int(config, "vocab_size", MAX_VOCAB, &model->vocab, error));
    TRY(read_int_or(config, "max_position_embeddings", MAX_SEQUENCE, 2048, &model->max_seq, error));
    TRY(read_rope(config, arena, model, error));
    TRY(json_get_double_or(config, "rms_norm_eps", 1e-12, 1e-1, 1e-6, &model->norm_eps, error));
    TRY(json_get_bool_or(config, "tie_word_embeddings", false, &model->tied_embeddings, error));
    TRY(refuse_biases(config, error));
    return refuse_activation(config, arena, error);
}

Status model_config_load(const char *path, Arena *arena, ModelSpec *model, Error *error) {
    json_t *root = NULL;
    TRY(json_file_load(path, &root, error));
    ModelSpec read = {.source = arena_text(arena, path)};
    const JsonReader config = {.origin = path, .path = "", .object = root};
    Status status = json_is_object(root) ? read_config(&config, arena, &read, error)
                                         : error_set(error, STATUS_USAGE, "%s: must be a JSON object", path);
    json_decref(root);
    if (status == STATUS_OK) {
        name_from_path(path, &read);
        status = model_check(&read, error);
        if (status != STATUS_OK) {
            error_wrap(error, "%s", path);
        }
    }
    if (status == STATUS_OK) {
        *model = read;
    }
    return status;
}
