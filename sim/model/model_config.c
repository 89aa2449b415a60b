// Hugging Face config.json -> ModelSpec: the table of types, what no type may say, the model's name from the path. A
// type's choices come from its family (model_families.h), its sizes and defaults from its reader.

#include "sim/model/model_config.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/escape.h"
#include "sim/base/text.h"
#include "sim/model/config_fields.h"

static const ConfigType types[] = {
    {"llama", config_read_llama},         {"mistral", config_read_llama},       {"qwen2", config_read_llama},
    {"qwen3", config_read_llama},         {"gemma", config_read_llama},         {"phi3", config_read_llama},
    {"gpt2", config_read_gpt2},           {"gpt_neox", config_read_gpt_neox},   {"mpt", config_read_mpt},
    {"olmo2", config_read_llama},         {"mixtral", config_read_experts},     {"qwen2_moe", config_read_experts},
    {"qwen3_moe", config_read_experts},   {"olmoe", config_read_experts},       {"phimoe", config_read_experts},
    {"gpt_oss", config_read_experts},     {"llama4", config_read_llama4},       {"llama4_text", config_read_experts},
    {"deepseek_v2", config_read_experts}, {"deepseek_v3", config_read_experts}, {"kimi_k2", config_read_experts},
    {"gemma2", config_read_llama},        {"gemma3_text", config_read_llama},
};

enum { TYPE_COUNT = sizeof types / sizeof types[0] };

static bool has_more_than_text(const Config *config) {
    return json_is_object(json_object_get(config->json.object, "vision_config")) ||
           json_is_object(json_object_get(config->json.object, "audio_config"));
}

static Status find_type(const Config *config, const ConfigType **found, Error *error) {
    const char *type = NULL;
    const char *names[TYPE_COUNT];
    const char *list = "";
    TRY(json_get_text(&config->json, "model_type", config->arena, &type, error));
    for (int i = 0; i < TYPE_COUNT; i++) {
        if (strcmp(type, types[i].type) == 0) {
            *found = &types[i];
            return STATUS_OK;
        }
        names[i] = types[i].type;
        list = arena_format(config->arena, "%s%s%s", list, i == 0 ? "" : ", ", names[i]);
    }
    JSON_FAIL_IF(has_more_than_text(config), &config->json, "model_type", error,
                 "\"%.64s\" is a model that sees or hears, which is not predicted yet; its language model is, by a "
                 "config.json of its keys alone (text_config, where the file has one)",
                 type);
    const Status status =
        json_error(&config->json, "model_type", error, "\"%.64s\" is not supported; supported: %s", type, list);
    const char *nearest = text_nearest(type, names, TYPE_COUNT);
    return nearest ? error_hint(error, "did you mean \"%s\"?", nearest) : status;
}

// Keys under which the types of Mixtral, Qwen, DeepSeek and DBRX count experts, in a file of another type.
static Status refuse_experts(const Config *config, Error *error) {
    const char *type = json_string_value(json_object_get(config->json.object, "model_type"));
    if (type && config_has_experts(type)) {
        return STATUS_OK;
    }
    static const char *const keys[] = {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(config->json.object, keys[i]);
        JSON_FAIL_IF(value && !json_is_null(value) && (!json_is_integer(value) || json_integer_value(value) > 1),
                     &config->json, keys[i], error, "mixtures of experts of this type are not modelled");
    }
    return STATUS_OK;
}

static Status refuse_other_architectures(const Config *config, Error *error) {
    TRY(refuse_experts(config, error));
    TRY(config_refuse_true(config, "is_encoder_decoder", "must be false, only decoders are modelled", error));
    return config_refuse_true(config, "add_cross_attention", "must be false, only decoders are modelled", error);
}

// The folder that holds the file names the model ("Llama-2-7b/config.json"); else the file's own name.
static Status name_from_path(const char *path, ModelSpec *model, Error *error) {
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
    const size_t most = sizeof model->name - 1;
    snprintf(model->name, sizeof model->name, "%.*s", (int)text_cut(name, length < most ? length : most), name);
    return text_is_line(model->name)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "%s: the model takes its name from the path, and a name holds no control "
                           "characters and is UTF-8",
                           path);
}

// Weights of 4 or 8 bits on disk: what is trained are weights in the plan's precision.
static void note_quantization(const Config *config) {
    static const char note[] = "its quantization_config is not looked at: weights are trained in the plan's precision";
    if (json_is_object(json_object_get(config->json.object, "quantization_config"))) {
        config_note(config, note);
    }
}

static Status read_config(const Config *config, Error *error) {
    const ConfigType *type = NULL;
    TRY(refuse_other_architectures(config, error));  // first: "mixtral" is no misspelt "mistral"
    TRY(find_type(config, &type, error));
    const bool known = model_set_family(config->model, type->type) || config_has_experts(type->type);
    ASSERT(known);
    TRY(type->read(config, type, error));
    note_quantization(config);
    return STATUS_OK;
}

Status model_config_load(const char *path, Arena *arena, ModelSpec *model, Error *error) {
    json_t *root = NULL;
    TRY(json_file_load(path, &root, error));
    ModelSpec read = {.source = arena_text(arena, path)};
    read.path = read.source;
    const Config config = {.json = {.origin = path, .path = "", .object = root}, .arena = arena, .model = &read};
    Status status = json_is_object(root) ? read_config(&config, error)
                                         : error_set(error, STATUS_USAGE, "%s: must be a JSON object", path);
    json_decref(root);
    if (status == STATUS_OK) {
        status = name_from_path(path, &read, error);
    }
    if (status == STATUS_OK) {
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
