// config.json of the types with experts: Llama's keys (config_llama.c), and each type's key names for experts. Defaults
// as in transformers' *Config class of the type. Not read: how a score bias balances experts.

#include <string.h>

#include "sim/base/text.h"
#include "sim/model/config_fields.h"

typedef struct ExpertKeys {
    const char *type;
    const char *count, *active, *ffn;
    int count_default, active_default, ffn_default;  // ffn 0 = the key must be there
    bool latent, sigmoid, router_bias, bias, shared_gate;
    bool may_scale;  // norm_topk_prob, false by default
    double balance;  // router_aux_loss_coef; 0 = the class has 0.001
} ExpertKeys;

#define LOCAL "num_local_experts", "num_experts_per_tok", "intermediate_size"
#define QWEN "num_experts", "num_experts_per_tok", "moe_intermediate_size"
#define DEEPSEEK "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size"

static const ExpertKeys keys_by_type[] = {
    {"mixtral", LOCAL, 8, 2, .ffn_default = 0},
    {"phimoe", LOCAL, 16, 2, .ffn_default = 0},
    {"olmoe", "num_experts", "num_experts_per_tok", "intermediate_size", 64, 8, 0, .may_scale = true, .balance = 0.01},
    {"qwen2_moe", QWEN, 60, 4, 1408, .shared_gate = true, .may_scale = true},
    {"qwen3_moe", QWEN, 128, 8, 768, .may_scale = true},
    {"gpt_oss", LOCAL, 128, 4, 0, .router_bias = true, .bias = true, .balance = 0.9},
    {"llama4_text", LOCAL, 16, 1, .ffn_default = 0},
    {"deepseek_v2", DEEPSEEK, 64, 6, 1407, .latent = true},
    {"deepseek_v3", DEEPSEEK, 256, 8, 2048, .latent = true, .sigmoid = true},
    {"kimi_k2", DEEPSEEK, 256, 8, 2048, .latent = true, .sigmoid = true},
};

static const ExpertKeys *find_keys(const char *type) {
    return TEXT_FIND(keys_by_type, sizeof keys_by_type / sizeof keys_by_type[0], type, type);
}

bool config_has_experts(const char *type) {
    return find_keys(type) || strcmp(type, "llama4") == 0;
}

static Status small_int(const Config *config, const char *key, int high, int fallback, int *value, Error *error) {
    int64_t number = fallback;
    TRY(json_get_int_or(&config->json, key, 0, high, fallback, &number, error));
    *value = (int)number;
    return STATUS_OK;
}

// Expert layers start after `dense` dense layers; of those, every step-th: the last of each step.
static void set_runs(const Config *config, int dense, int step) {
    ModelSpec *model = config->model;
    LayerRun *runs = ARENA_ARRAY(config->arena, LayerRun, (size_t)model->layers);
    int count = 0;
    for (int i = 0; i < model->layers; i++) {
        const LayerKind kind = i >= dense && (i + 1) % step == 0 ? LAYER_EXPERTS : LAYER_DENSE;
        if (count > 0 && runs[count - 1].kind == kind) {
            runs[count - 1].count++;
        } else {
            runs[count++] = (LayerRun){kind, i, 1};
        }
    }
    if (count > 1 || runs[0].kind == LAYER_DENSE) {
        model->runs = runs;
        model->run_count = count;
    }
}

static Status read_layers(const Config *config, Error *error) {
    int dense = 0, step = 1;
    const char *type = config->model->type;
    if (find_keys(type)->latent) {
        TRY(small_int(config, "first_k_dense_replace", CONFIG_MAX_LAYERS, strcmp(type, "deepseek_v2") == 0 ? 0 : 3,
                      &dense, error));
    } else if (strcmp(type, "llama4_text") == 0) {
        TRY(config_int_or(config, "interleave_moe_layer_step", CONFIG_MAX_LAYERS, 1, &step, error));
    } else if (strncmp(type, "qwen", 4) == 0) {
        TRY(config_int_or(config, "decoder_sparse_step", CONFIG_MAX_LAYERS, 1, &step, error));
        JSON_FAIL_IF(json_array_size(json_object_get(config->json.object, "mlp_only_layers")) > 0, &config->json,
                     "mlp_only_layers", error, "must be empty, got a list of layers");
    }
    set_runs(config, dense, step);
    return STATUS_OK;
}

static Status read_shared(const Config *config, Error *error) {
    Experts *experts = &config->model->experts;
    const char *type = config->model->type;
    if (find_keys(type)->latent) {
        int count = 0;
        TRY(small_int(config, "n_shared_experts", CONFIG_MAX_LAYERS, strcmp(type, "deepseek_v2") == 0 ? 2 : 1, &count,
                      error));
        experts->shared_ffn = count * experts->ffn;
    } else if (strcmp(type, "qwen2_moe") == 0) {
        return config_int_or(config, "shared_expert_intermediate_size", CONFIG_MAX_WIDTH, 5632, &experts->shared_ffn,
                             error);
    } else if (strcmp(type, "llama4_text") == 0) {
        experts->shared_ffn = experts->ffn;
        return config_int_or(config, "intermediate_size_mlp", CONFIG_MAX_WIDTH, 16384, &config->model->ffn, error);
    }
    return STATUS_OK;
}

// transformers adds the loss that spreads tokens where it gives the router's logits out.
static Status read_balance(const Config *config, Error *error) {
    const double fallback = find_keys(config->model->type)->balance;
    bool added;
    double weight;
    TRY(json_get_bool_or(&config->json, "output_router_logits", false, &added, error));
    TRY(json_get_double_or(&config->json, "router_aux_loss_coef", 0, 1e6, fallback > 0 ? fallback : 0.001, &weight,
                           error));
    if (added && weight > 0) {
        config->model->experts.balance = weight;
        config_note(config,
                    "the loss that spreads tokens over experts is run for each sequence and each layer, the same "
                    "on every mesh, where transformers takes a rank's micro-batch and all layers in one; it is "
                    "not priced");
    }
    return STATUS_OK;
}

// Of deepseek_v3 and kimi_k2; deepseek_v2 chooses groups by a softmax.
static Status read_sigmoid(const Config *config, Error *error) {
    Experts *experts = &config->model->experts;
    bool scaled;
    TRY(config_int_or(config, "n_group", CONFIG_MAX_LAYERS, 8, &experts->sigmoid.groups, error));
    TRY(config_int_or(config, "topk_group", CONFIG_MAX_LAYERS, 4, &experts->sigmoid.active_groups, error));
    TRY(json_get_double_or(&config->json, "routed_scaling_factor", 1e-6, 1e6, 2.5, &experts->sigmoid.factor, error));
    TRY(json_get_bool_or(&config->json, "norm_topk_prob", true, &scaled, error));
    experts->unscaled = !scaled;
    return STATUS_OK;
}

static Status read_latent(const Config *config, Error *error) {
    ModelSpec *model = config->model;
    LatentAttention *latent = &model->latent;
    int still = 0;
    TRY(small_int(config, "q_lora_rank", CONFIG_MAX_WIDTH, 0, &latent->q_rank, error));
    TRY(config_int_or(config, "kv_lora_rank", CONFIG_MAX_WIDTH, 512, &latent->kv_rank, error));
    TRY(config_int_or(config, "qk_nope_head_dim", CONFIG_MAX_WIDTH, 128, &still, error));
    TRY(config_int_or(config, "qk_rope_head_dim", CONFIG_MAX_WIDTH, 64, &latent->rope, error));
    TRY(config_int_or(config, "v_head_dim", CONFIG_MAX_WIDTH, 128, &latent->value, error));
    model->head_dim = still + latent->rope;
    model->kv_heads = model->heads;
    model->rotary_dims = latent->rope;
    return STATUS_OK;
}

// Which sequences are long for it: llama4's, in chunks, in alternating layers.
static Status read_chunks(const Config *config, Error *error) {
    static const int chunk = 8192, turns = 4;  // Llama4TextConfig: attention_chunk_size, no_rope_layer_interval
    ModelSpec *model = config->model;
    TRY(config_int_or(config, "attention_chunk_size", CONFIG_MAX_SEQUENCE, chunk, &model->window, error));
    TRY(config_int_or(config, "no_rope_layer_interval", CONFIG_MAX_LAYERS, turns, &model->window_every, error));
    config_note(config,
                arena_format(config->arena, "attention in chunks of %d tokens is priced as a sliding window of as many",
                             model->window));
    return STATUS_OK;
}

Status config_read_experts(const Config *config, const ConfigType *type, Error *error) {
    const ExpertKeys *keys = find_keys(type->type);
    ModelSpec *model = config->model;
    Experts *experts = &model->experts;
    TRY(config_read_llama(config, type, error));
    TRY(config_int_or(config, keys->count, CONFIG_MAX_WIDTH, keys->count_default, &experts->count, error));
    TRY(config_int_or(config, keys->active, CONFIG_MAX_WIDTH, keys->active_default, &experts->active, error));
    if (keys->ffn_default > 0) {
        TRY(config_int_or(config, keys->ffn, CONFIG_MAX_WIDTH, keys->ffn_default, &experts->ffn, error));
    } else {
        TRY(config_int(config, keys->ffn, CONFIG_MAX_WIDTH, &experts->ffn, error));
    }
    experts->router_bias = keys->router_bias;
    experts->bias = keys->bias;
    experts->shared_gate = keys->shared_gate;
    if (keys->may_scale) {
        bool scaled;
        TRY(json_get_bool_or(&config->json, "norm_topk_prob", false, &scaled, error));
        experts->unscaled = !scaled;
    }
    if (strcmp(type->type, "phimoe") == 0) {
        TRY(json_get_bool_or(&config->json, "lm_head_bias", false, &model->head_bias, error));
    }
    TRY(read_shared(config, error));
    TRY(read_layers(config, error));
    TRY(keys->latent ? read_latent(config, error) : STATUS_OK);
    TRY(keys->sigmoid ? read_sigmoid(config, error) : STATUS_OK);
    TRY(keys->latent ? STATUS_OK : read_balance(config, error));
    if (model->run_count > 1) {
        config_note(config, "dense layers and layers of experts on one stage are priced by their mean");
    }
    if (strcmp(type->type, "deepseek_v3") == 0) {
        config_note(config, "without --mtp 1 its layer that predicts a second token (MTP) is left out, as transformers "
                            "leaves it out");
    }
    return strcmp(type->type, "llama4_text") == 0 ? read_chunks(config, error) : STATUS_OK;
}

// A model that sees: its language model.
Status config_read_llama4(const Config *config, const ConfigType *type, Error *error) {
    (void)type;
    static const ConfigType text_type = {"llama4_text", config_read_experts};
    Config text = *config;
    TRY(json_get_object(&config->json, "text_config", config->arena, &text.json, error));
    model_set_family(config->model, text_type.type);
    config_note(config, "its language model alone, without the part that sees");
    return config_read_experts(&text, &text_type, error);
}
