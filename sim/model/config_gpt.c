// config.json of gpt2, gpt_neox and mpt, each with keys of its own. Absent keys take what transformers' GPT2Config,
// GPTNeoXConfig and MptConfig take. Dropout is not modelled: published pretraining runs of these sizes set it to 0.

#include <math.h>
#include <string.h>

#include "sim/model/config_fields.h"

Status config_read_gpt2(const Config *config, const ConfigType *type, Error *error) {
    (void)type;
    ModelSpec *model = config->model;
    TRY(config_int(config, "n_layer", CONFIG_MAX_LAYERS, &model->layers, error));
    TRY(config_int(config, "n_embd", CONFIG_MAX_WIDTH / 4, &model->hidden, error));
    TRY(config_int(config, "n_head", CONFIG_MAX_HEADS, &model->heads, error));
    TRY(config_whole_heads(config, "n_head", error));
    TRY(config_int_or(config, "n_inner", CONFIG_MAX_WIDTH, 4 * model->hidden, &model->ffn, error));
    TRY(config_int(config, "vocab_size", CONFIG_MAX_VOCAB, &model->vocab, error));
    TRY(config_int_or(config, "n_positions", CONFIG_MAX_SEQUENCE, 1024, &model->max_seq, error));
    TRY(json_get_double_or(&config->json, "layer_norm_epsilon", 1e-12, 1e-1, 1e-5, &model->norm_eps, error));
    TRY(json_get_bool_or(&config->json, "tie_word_embeddings", true, &model->tied_embeddings, error));
    return config_activation(config, "activation_function", "gelu_new", error);
}

Status config_read_gpt_neox(const Config *config, const ConfigType *type, Error *error) {
    (void)type;
    ModelSpec *model = config->model;
    bool parallel = true, biased = true;
    TRY(config_int(config, "num_hidden_layers", CONFIG_MAX_LAYERS, &model->layers, error));
    TRY(config_int(config, "hidden_size", CONFIG_MAX_WIDTH, &model->hidden, error));
    TRY(config_int(config, "num_attention_heads", CONFIG_MAX_HEADS, &model->heads, error));
    TRY(config_whole_heads(config, "num_attention_heads", error));
    TRY(config_int(config, "intermediate_size", CONFIG_MAX_WIDTH, &model->ffn, error));
    TRY(config_int(config, "vocab_size", CONFIG_MAX_VOCAB, &model->vocab, error));
    TRY(config_int_or(config, "max_position_embeddings", CONFIG_MAX_SEQUENCE, 2048, &model->max_seq, error));
    TRY(config_rotary(config, &(RotaryKeys){.theta = "rotary_emb_base", .part = "rotary_pct", .part_fallback = 0.25},
                      error));
    TRY(json_get_double_or(&config->json, "layer_norm_eps", 1e-12, 1e-1, 1e-5, &model->norm_eps, error));
    TRY(json_get_bool_or(&config->json, "tie_word_embeddings", false, &model->tied_embeddings, error));
    TRY(json_get_bool_or(&config->json, "use_parallel_residual", true, &parallel, error));
    TRY(json_get_bool_or(&config->json, "attention_bias", true, &biased, error));
    model->residual = parallel ? RESIDUAL_PARALLEL : RESIDUAL_PRE_NORM;
    model->qkv_bias = model->out_bias = biased;
    return config_activation(config, "hidden_act", "gelu", error);
}

static Status read_expansion(const Config *config, Error *error) {
    double ratio = 0;
    TRY(json_get_double_or(&config->json, "expansion_ratio", 1.0 / 64, 64, 4, &ratio, error));
    const double width = ratio * config->model->hidden;
    JSON_FAIL_IF(width < 1 || width > CONFIG_MAX_WIDTH || width != floor(width), &config->json, "expansion_ratio",
                 error, "%g times d_model %d is no possible width", ratio, config->model->hidden);
    config->model->ffn = (int)width;
    return STATUS_OK;
}

// ALiBi, or a table of positions when attn_config says so.
static Status read_mpt_attention(const Config *config, Error *error) {
    bool alibi = true, learned = true;
    const char *kind = "multihead_attention";
    if (json_is_object(json_object_get(config->json.object, "attn_config"))) {
        Config attention = *config;
        TRY(json_get_object(&config->json, "attn_config", config->arena, &attention.json, error));
        TRY(json_get_bool_or(&attention.json, "alibi", true, &alibi, error));
        TRY(json_get_text_or(&attention.json, "attn_type", kind, config->arena, &kind, error));
        JSON_FAIL_IF(strcmp(kind, "multihead_attention") != 0, &attention.json, "attn_type", error,
                     "must be \"multihead_attention\", got \"%.64s\"", kind);
        TRY(config_refuse_true(&attention, "qk_ln", "must be false, layer norms of queries and keys are not modelled",
                               error));
        TRY(config_refuse_true(&attention, "prefix_lm", "must be false, only causal attention is modelled", error));
        TRY(config_refuse_true(&attention, "rope", "must be false, rotary positions of mpt are not modelled", error));
    }
    TRY(json_get_bool_or(&config->json, "learned_pos_emb", true, &learned, error));
    JSON_FAIL_IF(!alibi && !learned, &config->json, "learned_pos_emb", error,
                 "must be true where attn_config.alibi is false: a model without positions is not modelled");
    config->model->position = alibi ? POSITION_ALIBI : POSITION_LEARNED;
    return STATUS_OK;
}

static Status read_mpt_norm(const Config *config, Error *error) {
    const char *norm = NULL;
    TRY(json_get_text_or(&config->json, "norm_type", "low_precision_layernorm", config->arena, &norm, error));
    const char *kind = strncmp(norm, "low_precision_", 14) == 0 ? norm + 14 : norm;
    JSON_FAIL_IF(strcmp(kind, "layernorm") != 0 && strcmp(kind, "rmsnorm") != 0, &config->json, "norm_type", error,
                 "\"%.64s\" is not supported; supported: layernorm, rmsnorm, each also with low_precision_", norm);
    config->model->norm = strcmp(kind, "rmsnorm") == 0 ? NORM_RMS : NORM_LAYER;
    return STATUS_OK;
}

Status config_read_mpt(const Config *config, const ConfigType *type, Error *error) {
    (void)type;
    ModelSpec *model = config->model;
    bool bare = true;
    TRY(config_int(config, "n_layers", CONFIG_MAX_LAYERS, &model->layers, error));
    TRY(config_int(config, "d_model", CONFIG_MAX_WIDTH, &model->hidden, error));
    TRY(config_int(config, "n_heads", CONFIG_MAX_HEADS, &model->heads, error));
    TRY(config_whole_heads(config, "n_heads", error));
    TRY(read_expansion(config, error));
    TRY(config_int(config, "vocab_size", CONFIG_MAX_VOCAB, &model->vocab, error));
    TRY(config_int_or(config, "max_seq_len", CONFIG_MAX_SEQUENCE, 2048, &model->max_seq, error));
    TRY(json_get_double_or(&config->json, "layer_norm_epsilon", 1e-12, 1e-1, 1e-5, &model->norm_eps, error));
    TRY(json_get_bool_or(&config->json, "tie_word_embeddings", true, &model->tied_embeddings, error));
    TRY(json_get_bool_or(&config->json, "no_bias", true, &bare, error));
    TRY(read_mpt_attention(config, error));
    TRY(read_mpt_norm(config, error));
    model->qkv_bias = model->out_bias = model->mlp_bias = !bare;
    model->norm_bias = !bare && model->norm == NORM_LAYER;
    return STATUS_OK;
}
