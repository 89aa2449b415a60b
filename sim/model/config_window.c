// Sliding windows of a config.json: how far back, and in which layers. transformers' configuration classes fill
// layer_types where the file has none.

#include <string.h>

#include "sim/model/config_fields.h"

static const char sliding[] = "sliding_attention", full[] = "full_attention";

// The pattern's period is one more than the layers before the first full one; the list must be that pattern.
static Status read_layer_types(const Config *config, const json_t *types, Error *error) {
    ModelSpec *model = config->model;
    const int count = json_is_array(types) ? (int)json_array_size(types) : 0;
    JSON_FAIL_IF(count != model->layers, &config->json, "layer_types", error, "must name a type for each of %d layers",
                 model->layers);
    int first_full = count, first_sliding = count;
    for (int i = count; i-- > 0;) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        JSON_FAIL_IF(!type || (strcmp(type, sliding) != 0 && strcmp(type, full) != 0), &config->json, "layer_types",
                     error, "\"%.32s\" of layer %d is not one of %s, %s", type ? type : "", i, sliding, full);
        *(strcmp(type, full) == 0 ? &first_full : &first_sliding) = i;
    }
    if (first_sliding == count) {
        model->window = 0;
        return STATUS_OK;
    }
    model->window_first = first_sliding;
    model->window_every = first_sliding > 0 || first_full == count ? 0 : first_full + 1;
    for (int i = 0; i < count; i++) {
        const bool slides = strcmp(json_string_value(json_array_get(types, (size_t)i)), sliding) == 0;
        JSON_FAIL_IF(slides != model_layer_slides(model, i), &config->json, "layer_types", error,
                     "must alternate regularly, layer %d is of another type than the pattern's", i);
    }
    return STATUS_OK;
}

Status config_window(const Config *config, int window, int every, Error *error) {
    ModelSpec *model = config->model;
    const json_t *types = json_object_get(config->json.object, "layer_types");
    model->window = window;
    model->window_every = every;
    if (types && !json_is_null(types)) {
        TRY(read_layer_types(config, types, error));
    } else if (strncmp(model->type, "qwen", 4) == 0) {
        static const int max_window_layers = 28;  // Qwen2Config, Qwen3Config
        int64_t first = 0;
        TRY(json_get_int_or(&config->json, "max_window_layers", 0, CONFIG_MAX_LAYERS, max_window_layers, &first,
                            error));
        model->window_first = (int)first;
        model->window = model->window_first < model->layers ? window : 0;
        model->window_first = model->window > 0 ? model->window_first : 0;
    }
    if (model->window > 0) {
        const char *where = model->window_every > 0 || model->window_first > 0 ? " in some layers" : "";
        config_note(config, arena_format(config->arena,
                                         "the sliding window of %d tokens%s takes less on longer sequences: a kernel "
                                         "is priced that skips the rest, as flash_attention_2 does; sdpa, eager "
                                         "attention and cp above 1 are priced all the way back",
                                         window, where));
    }
    return STATUS_OK;
}
