// Shared parts of the config.json readers; every answer names the key and its value. rope_scaling changes positions,
// not work: kinds that the executor does not know are said in a note.

#include "sim/model/config_fields.h"

#include <string.h>

#include "sim/base/text.h"

Status config_int(const Config *config, const char *key, int high, int *value, Error *error) {
    int64_t number = 0;
    TRY(json_get_int(&config->json, key, 1, high, &number, error));
    *value = (int)number;
    return STATUS_OK;
}

Status config_int_or(const Config *config, const char *key, int high, int fallback, int *value, Error *error) {
    int64_t number = 0;
    TRY(json_get_int_or(&config->json, key, 1, high, fallback, &number, error));
    *value = (int)number;
    return STATUS_OK;
}

Status config_whole_heads(const Config *config, const char *heads_key, Error *error) {
    ModelSpec *model = config->model;
    JSON_FAIL_IF(model->hidden % model->heads != 0, &config->json, heads_key, error, "must divide the width %d, got %d",
                 model->hidden, model->heads);
    model->kv_heads = model->heads;
    model->head_dim = model->hidden / model->heads;
    return STATUS_OK;
}

typedef struct NamedActivation {
    const char *name;
    Activation activation;
} NamedActivation;

// transformers' ACT2FN: which of them are one kernel and which are written out in Python.
static const NamedActivation named_activations[] = {
    {"silu", ACTIVATION_SILU},
    {"swish", ACTIVATION_SILU},
    {"gelu", ACTIVATION_GELU},
    {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
    {"gelu_new", ACTIVATION_GELU_NEW},
    {"gelu_fast", ACTIVATION_GELU_NEW},
    {"gelu_python", ACTIVATION_GELU_NEW},
};

Status config_activation(const Config *config, const char *key, const char *fallback, Error *error) {
    enum { COUNT = sizeof named_activations / sizeof named_activations[0] };
    const char *name = NULL;
    const char *names[COUNT];
    TRY(json_get_text_or(&config->json, key, fallback, config->arena, &name, error));
    const char *list = "";
    for (int i = 0; i < COUNT; i++) {
        if (strcmp(name, named_activations[i].name) == 0) {
            config->model->activation = named_activations[i].activation;
            return STATUS_OK;
        }
        names[i] = named_activations[i].name;
        list = arena_format(config->arena, "%s%s%s", list, i == 0 ? "" : ", ", names[i]);
    }
    const Status status =
        json_error(&config->json, key, error, "\"%.64s\" is not supported; supported: %s", name, list);
    const char *nearest = text_nearest(name, names, COUNT);
    return nearest ? error_hint(error, "did you mean \"%s\"?", nearest) : status;
}

static const double theta_low = 1.0, theta_high = 1e12;
static const double theta_fallback = 10000.0;  // every type's own

void config_note(const Config *config, const char *sentence) {
    ModelSpec *model = config->model;
    model->note = model->note ? arena_format(config->arena, "%s; %s", model->note, sentence) : sentence;
}

static Status read_yarn(const JsonReader *rope, YarnScaling *yarn, Error *error) {
    static const double most = 1e9;
    TRY(json_get_double_or(rope, "factor", 1, most, 1, &yarn->factor, error));
    TRY(json_get_double_or(rope, "mscale", 0, most, 1, &yarn->mscale, error));
    TRY(json_get_double_or(rope, "mscale_all_dim", 0, most, 0, &yarn->mscale_all, error));
    TRY(json_get_double_or(rope, "original_max_position_embeddings", 0, most, 0, &yarn->original, error));
    TRY(json_get_double_or(rope, "beta_fast", 0, most, 32, &yarn->fast, error));
    TRY(json_get_double_or(rope, "beta_slow", 0, most, 1, &yarn->slow, error));
    bool rounds;
    TRY(json_get_bool_or(rope, "truncate", true, &rounds, error));
    yarn->unrounded = !rounds;
    return STATUS_OK;
}

// transformers' modeling_rope_utils.py: linear and llama3 are frequencies alone. dynamic does nothing within the
// model's own length.
static Status read_scaling(const Config *config, const char *key, Error *error) {
    static const double most = 1e6;
    RopeScaling *scaling = &config->model->rope_scaling;
    JsonReader rope;
    const char *older = "default", *type;
    if (!json_is_object(json_object_get(config->json.object, key))) {
        return STATUS_OK;
    }
    TRY(json_get_object(&config->json, key, config->arena, &rope, error));
    TRY(json_get_text_or(&rope, "type", older, config->arena, &older, error));
    TRY(json_get_text_or(&rope, "rope_type", older, config->arena, &type, error));
    if (strcmp(type, "linear") == 0) {
        *scaling = (RopeScaling){.low = 1, .high = 2};
        return json_get_double(&rope, "factor", 1, most, &scaling->factor, error);
    }
    if (strcmp(type, "llama3") == 0) {
        TRY(json_get_double(&rope, "factor", 1, most, &scaling->factor, error));
        TRY(json_get_double(&rope, "low_freq_factor", 0, most, &scaling->low, error));
        TRY(json_get_double(&rope, "high_freq_factor", 0, most, &scaling->high, error));
        return json_get_double(&rope, "original_max_position_embeddings", 1, 1e9, &scaling->original, error);
    }
    if (strcmp(type, "yarn") == 0) {
        TRY(read_yarn(&rope, &config->model->yarn, error));
    } else if (strcmp(type, "default") != 0) {
        config->model->positions = type;
    }
    if (strcmp(type, "default") != 0 && strcmp(type, "dynamic") != 0) {
        config_note(config, arena_format(config->arena,
                                         "%s of type \"%.32s\" is not applied to the positions: the work is the same, "
                                         "the losses of a run are not",
                                         key, type));
    }
    return STATUS_OK;
}

Status config_rotary(const Config *config, const RotaryKeys *keys, Error *error) {
    ModelSpec *model = config->model;
    double part = keys->part_fallback;
    TRY(json_get_double_or(&config->json, keys->theta, theta_low, theta_high, theta_fallback, &model->rope_theta,
                           error));
    if (keys->part) {
        TRY(json_get_double_or(&config->json, keys->part, 0, 1, part, &part, error));
    }
    if (json_is_object(json_object_get(config->json.object, "rope_parameters"))) {
        JsonReader rope;
        TRY(json_get_object(&config->json, "rope_parameters", config->arena, &rope, error));
        TRY(json_get_double_or(&rope, "rope_theta", theta_low, theta_high, model->rope_theta, &model->rope_theta,
                               error));
        TRY(json_get_double_or(&rope, "partial_rotary_factor", 0, 1, part, &part, error));
    }
    TRY(read_scaling(config, "rope_scaling", error));
    TRY(read_scaling(config, "rope_parameters", error));
    if (part < 1) {
        model->rotary_dims = (int)(model->head_dim * part);
        JSON_FAIL_IF(model->rotary_dims < 2 || model->rotary_dims % 2 != 0, &config->json,
                     keys->part ? keys->part : "rope_parameters.partial_rotary_factor", error,
                     "%g of head_dim %d is %d, which is no whole number of rotary pairs", part, model->head_dim,
                     model->rotary_dims);
    } else {
        model->rotary_dims = 0;
    }
    return STATUS_OK;
}

Status config_refuse_true(const Config *config, const char *key, const char *sentence, Error *error) {
    bool found = false;
    TRY(json_get_bool_or(&config->json, key, false, &found, error));
    return found ? json_error(&config->json, key, error, "%s", sentence) : STATUS_OK;
}
