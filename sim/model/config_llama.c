// config.json of the types that use Llama's keys. What a type takes for an absent key is what transformers' *Config
// class of that type takes; a key that is null means the same as an absent one, except where the class says otherwise
// (num_key_value_heads null = heads, sliding_window null = none). What a sliding window changes is said in a note.

#include "sim/base/text.h"
#include "sim/model/config_fields.h"

// Whether attention looks back no further than sliding_window tokens.
typedef enum { WINDOW_NEVER, WINDOW_GIVEN, WINDOW_IF_USED, WINDOW_DEFAULT } WindowRule;

typedef struct LlamaDefaults {
    const char *type;
    int kv_heads;  // 0 = as many as heads
    int head_dim;  // 0 = hidden / heads
    int max_seq;
    double norm_eps;
    bool tied;
    const char *activation;                 // NULL = silu
    bool attention_bias_key, mlp_bias_key;  // the class reads these keys; attention_bias is of q, k, v and out
    WindowRule window;
    int window_default, window_every;
    double attention_cap, logit_cap;  // 0 = no keys of caps
} LlamaDefaults;

static const LlamaDefaults defaults_by_type[] = {
    {"llama", .max_seq = 2048, .norm_eps = 1e-6, .attention_bias_key = true, .mlp_bias_key = true},
    {"mistral", .kv_heads = 8, .max_seq = 131072, .norm_eps = 1e-6, .window = WINDOW_DEFAULT, .window_default = 4096},
    {"qwen2", .kv_heads = 32, .max_seq = 32768, .norm_eps = 1e-6, .window = WINDOW_IF_USED, .window_default = 4096},
    {"qwen3", .kv_heads = 32, .head_dim = 128, .max_seq = 32768, .norm_eps = 1e-6, .attention_bias_key = true,
     .window = WINDOW_IF_USED, .window_default = 4096},
    {"gemma", .kv_heads = 16, .head_dim = 256, .max_seq = 8192, .norm_eps = 1e-6, .tied = true,
     .activation = "gelu_pytorch_tanh", .attention_bias_key = true},
    {"gemma2", .kv_heads = 4, .head_dim = 256, .max_seq = 8192, .norm_eps = 1e-6, .tied = true,
     .activation = "gelu_pytorch_tanh", .attention_bias_key = true, .window = WINDOW_DEFAULT, .window_default = 4096,
     .window_every = 2, .attention_cap = 50, .logit_cap = 30},
    {"gemma3_text", .kv_heads = 4, .head_dim = 256, .max_seq = 131072, .norm_eps = 1e-6, .tied = true,
     .activation = "gelu_pytorch_tanh", .attention_bias_key = true, .window = WINDOW_DEFAULT, .window_default = 4096,
     .window_every = 6},
    {"mixtral", .kv_heads = 8, .max_seq = 131072, .norm_eps = 1e-5, .window = WINDOW_GIVEN},
    {"qwen2_moe", .kv_heads = 16, .max_seq = 32768, .norm_eps = 1e-6, .window = WINDOW_IF_USED, .window_default = 4096},
    {"qwen3_moe", .kv_heads = 4, .max_seq = 32768, .norm_eps = 1e-6, .attention_bias_key = true,
     .window = WINDOW_IF_USED, .window_default = 4096},
    {"olmoe", .max_seq = 4096, .norm_eps = 1e-5},
    {"phimoe", .kv_heads = 8, .max_seq = 131072, .norm_eps = 1e-5, .attention_bias_key = true, .window = WINDOW_GIVEN},
    {"gpt_oss", .kv_heads = 8, .head_dim = 64, .max_seq = 131072, .norm_eps = 1e-5, .window = WINDOW_DEFAULT,
     .window_default = 128, .window_every = 2},
    {"llama4_text", .kv_heads = 8, .head_dim = 128, .max_seq = 131072, .norm_eps = 1e-5},
    {"deepseek_v2", .max_seq = 2048, .norm_eps = 1e-6},
    {"deepseek_v3", .max_seq = 4096, .norm_eps = 1e-6},
    {"kimi_k2", .max_seq = 4096, .norm_eps = 1e-6},
    {"phi3", .max_seq = 4096, .norm_eps = 1e-5, .window = WINDOW_GIVEN},
    {"olmo2", .max_seq = 2048, .norm_eps = 1e-5, .attention_bias_key = true},
};

static const LlamaDefaults *find_defaults(const char *type) {
    const LlamaDefaults *found =
        TEXT_FIND(defaults_by_type, sizeof defaults_by_type / sizeof defaults_by_type[0], type, type);
    ASSERT(found);
    return found;
}

static Status read_heads(const Config *config, const LlamaDefaults *defaults, Error *error) {
    ModelSpec *model = config->model;
    TRY(config_int(config, "num_attention_heads", CONFIG_MAX_HEADS, &model->heads, error));
    const bool absent = !json_object_get(config->json.object, "num_key_value_heads");
    const int fallback = absent && defaults->kv_heads > 0 ? defaults->kv_heads : model->heads;
    TRY(config_int_or(config, "num_key_value_heads", CONFIG_MAX_HEADS, fallback, &model->kv_heads, error));
    JSON_FAIL_IF(model->heads % model->kv_heads != 0, &config->json, "num_key_value_heads", error,
                 "must divide num_attention_heads %d, %s %d", model->heads, absent ? "its default is" : "got",
                 model->kv_heads);
    if (defaults->head_dim > 0) {
        return config_int_or(config, "head_dim", CONFIG_MAX_WIDTH, defaults->head_dim, &model->head_dim, error);
    }
    if (model->hidden % model->heads != 0) {  // no default exists: the file must say
        JSON_FAIL_IF(!json_object_get(config->json.object, "head_dim"), &config->json, "hidden_size", error,
                     "%d is no multiple of num_attention_heads %d, and the file has no head_dim", model->hidden,
                     model->heads);
        return config_int(config, "head_dim", CONFIG_MAX_WIDTH, &model->head_dim, error);
    }
    return config_int_or(config, "head_dim", CONFIG_MAX_WIDTH, model->hidden / model->heads, &model->head_dim, error);
}

static Status read_biases(const Config *config, const LlamaDefaults *defaults, Error *error) {
    ModelSpec *model = config->model;
    if (defaults->attention_bias_key && model_norms_behind(model)) {
        TRY(config_refuse_true(config, "attention_bias", "must be false, a bias in front of a norm is not modelled",
                               error));
    } else if (defaults->attention_bias_key) {
        TRY(json_get_bool_or(&config->json, "attention_bias", false, &model->qkv_bias, error));
        model->out_bias = model->qkv_bias;
    }
    if (defaults->mlp_bias_key) {
        TRY(json_get_bool_or(&config->json, "mlp_bias", false, &model->mlp_bias, error));
    }
    return STATUS_OK;
}

static Status read_window(const Config *config, const LlamaDefaults *defaults, Error *error) {
    const json_t *value = json_object_get(config->json.object, "sliding_window");
    bool used = defaults->window == WINDOW_DEFAULT || defaults->window == WINDOW_GIVEN;
    if (defaults->window == WINDOW_IF_USED) {
        TRY(json_get_bool_or(&config->json, "use_sliding_window", false, &used, error));
    }
    if (!used || (value && json_is_null(value))) {
        return STATUS_OK;
    }
    int window = 0;
    TRY(config_int_or(config, "sliding_window", CONFIG_MAX_SEQUENCE,
                      defaults->window_default > 0 ? defaults->window_default : CONFIG_MAX_SEQUENCE, &window, error));
    return window < config->model->max_seq ? config_window(config, window, defaults->window_every, error) : STATUS_OK;
}

// null, or absent without a default: none.
static Status read_cap(const Config *config, const char *key, double fallback, double *cap, Error *error) {
    const json_t *value = json_object_get(config->json.object, key);
    *cap = value ? 0 : fallback;
    return value && !json_is_null(value) ? json_get_double(&config->json, key, 1e-3, 1e6, cap, error) : STATUS_OK;
}

// Scores are over the root of query_pre_attn_scalar.
static Status read_score_scalar(const Config *config, Error *error) {
    ModelSpec *model = config->model;
    int scalar = 0;
    TRY(config_int_or(config, "query_pre_attn_scalar", CONFIG_MAX_WIDTH, 256, &scalar, error));
    model->score_scalar = scalar == model->head_dim ? 0 : scalar;
    return STATUS_OK;
}

static Status read_gemma2(const Config *config, const LlamaDefaults *defaults, Error *error) {
    ModelSpec *model = config->model;
    TRY(read_score_scalar(config, error));
    TRY(read_cap(config, "attn_logit_softcapping", defaults->attention_cap, &model->attention_cap, error));
    return read_cap(config, "final_logit_softcapping", defaults->logit_cap, &model->logit_cap, error);
}

static Status read_gemma3(const Config *config, int *window_every, Error *error) {
    ModelSpec *model = config->model;
    static const char *const caps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    TRY(read_score_scalar(config, error));
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        const json_t *cap = json_object_get(config->json.object, caps[i]);
        JSON_FAIL_IF(cap && !json_is_null(cap), &config->json, caps[i], error,
                     "must be null, soft-capped scores are not modelled");
    }
    TRY(config_int_or(config, "sliding_window_pattern", CONFIG_MAX_LAYERS, *window_every, window_every, error));
    return json_get_double_or(&config->json, "rope_local_base_freq", 1, 1e12, 1e4, &model->rope_local, error);
}

Status config_read_llama(const Config *config, const ConfigType *type, Error *error) {
    const LlamaDefaults *defaults = find_defaults(type->type);
    ModelSpec *model = config->model;
    TRY(config_int(config, "num_hidden_layers", CONFIG_MAX_LAYERS, &model->layers, error));
    TRY(config_int(config, "hidden_size", CONFIG_MAX_WIDTH, &model->hidden, error));
    TRY(read_heads(config, defaults, error));
    TRY(config_int(config, "intermediate_size", CONFIG_MAX_WIDTH, &model->ffn, error));
    TRY(config_int(config, "vocab_size", CONFIG_MAX_VOCAB, &model->vocab, error));
    TRY(config_int_or(config, "max_position_embeddings", CONFIG_MAX_SEQUENCE, defaults->max_seq, &model->max_seq,
                      error));
    TRY(config_rotary(
        config, &(RotaryKeys){.theta = "rope_theta", .part = "partial_rotary_factor", .part_fallback = 1.0}, error));
    TRY(json_get_double_or(&config->json, "rms_norm_eps", 1e-12, 1e-1, defaults->norm_eps, &model->norm_eps, error));
    TRY(json_get_bool_or(&config->json, "tie_word_embeddings", defaults->tied, &model->tied_embeddings, error));
    TRY(read_biases(config, defaults, error));
    LlamaDefaults given = *defaults;
    if (defaults->attention_cap > 0) {
        TRY(read_gemma2(config, defaults, error));
    } else if (model->residual == RESIDUAL_BOTH_NORMS) {
        TRY(read_gemma3(config, &given.window_every, error));
    }
    TRY(read_window(config, &given, error));
    const bool renamed = model->residual == RESIDUAL_BOTH_NORMS;
    return config_activation(config, renamed ? "hidden_activation" : "hidden_act",
                             defaults->activation ? defaults->activation : "silu", error);
}
