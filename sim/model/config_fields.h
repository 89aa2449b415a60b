// What the readers of Hugging Face's config.json share: bounds, heads, activations, rotary positions. Private to
// sim/model.

#pragma once

#include "sim/base/json.h"
#include "sim/model/model.h"

enum {
    CONFIG_MAX_LAYERS = 1024,    // eight times the deepest published decoder
    CONFIG_MAX_WIDTH = 1 << 20,  // hidden and ffn; 64 times llama-3.1-405b's 16384
    CONFIG_MAX_HEADS = 1 << 14,
    CONFIG_MAX_VOCAB = 1 << 24,
    CONFIG_MAX_SEQUENCE = 1 << 28,
};

// One file being read into a ModelSpec; text goes to the arena.
typedef struct Config {
    JsonReader json;
    Arena *arena;
    ModelSpec *model;
} Config;

// A reader of one model_type: sizes, and overrides of the family's choices, which are already set.
typedef struct ConfigType {
    const char *type;
    Status (*read)(const Config *config, const struct ConfigType *type, Error *error);
} ConfigType;

Status config_read_llama(const Config *config, const ConfigType *type, Error *error);  // and its relatives
Status config_read_gpt2(const Config *config, const ConfigType *type, Error *error);
Status config_read_gpt_neox(const Config *config, const ConfigType *type, Error *error);
Status config_read_experts(const Config *config, const ConfigType *type, Error *error);
Status config_read_llama4(const Config *config, const ConfigType *type, Error *error);
Status config_read_mpt(const Config *config, const ConfigType *type, Error *error);

// Whether the reader of the type supports experts.
bool config_has_experts(const char *type);

Status config_int(const Config *config, const char *key, int high, int *value, Error *error);
Status config_int_or(const Config *config, const char *key, int high, int fallback, int *value, Error *error);

// head_dim = hidden / heads, which must divide; the error names the key of the heads.
Status config_whole_heads(const Config *config, const char *heads_key, Error *error);

Status config_activation(const Config *config, const char *key, const char *fallback, Error *error);

// Adds a sentence to the model's note.
void config_note(const Config *config, const char *sentence);

// rope_theta, its scaling and the rotated part of a head, from rope_parameters where the file has it, else from the
// keys given.
typedef struct RotaryKeys {
    const char *theta, *part;
    double part_fallback;
} RotaryKeys;

Status config_rotary(const Config *config, const RotaryKeys *keys, Error *error);

// A window in tokens, for all layers but every n-th (0: all), or of those that layer_types names. qwen2
// and qwen3 without layer_types: of the layers from max_window_layers on.
Status config_window(const Config *config, int window, int every, Error *error);

// Refuses true under a key, with a sentence.
Status config_refuse_true(const Config *config, const char *key, const char *sentence, Error *error);
