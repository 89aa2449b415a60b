// Mutated config.json files of every type from a printed seed: each loads into a model that passes its own check, or is
// refused in one sentence that names the file; nothing else is touched.

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/model/model.h"
#include "tests/support/model_counts.h"
#include "tests/support/text_file.h"

enum { CASES = 1500, TEXT_BYTES = 1024 };
static const uint64_t seed = 20261120;

static uint64_t state;
static char path[64];

static void begin(void) {
    state = seed;
    snprintf(path, sizeof path, "/tmp/ndtune-mutated-%d.json", (int)getpid());
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
}

static void end(void) {
    remove(path);
}

TestSuite(config_property, .init = begin, .fini = end);

static uint64_t draw(void) {  // xorshift64*, Vigna 2016
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ull;
}

static size_t draw_below(size_t bound) {
    return (size_t)(draw() % bound);
}

static const char *const keys[] = {
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "rope_theta",
    "rms_norm_eps",
    "hidden_act",
    "tie_word_embeddings",
    "attention_bias",
    "mlp_bias",
    "sliding_window",
    "use_sliding_window",
    "partial_rotary_factor",
    "rotary_pct",
    "rotary_emb_base",
    "layer_norm_eps",
    "use_parallel_residual",
    "n_embd",
    "n_layer",
    "n_head",
    "n_inner",
    "n_positions",
    "activation_function",
    "layer_norm_epsilon",
    "d_model",
    "n_layers",
    "n_heads",
    "expansion_ratio",
    "max_seq_len",
    "no_bias",
    "norm_type",
    "attn_config",
    "learned_pos_emb",
    "rope_parameters",
    "num_local_experts",
    "is_encoder_decoder",
    "num_experts",
    "add_cross_attention",
    "num_experts_per_tok",
    "n_routed_experts",
    "moe_intermediate_size",
    "n_shared_experts",
    "shared_expert_intermediate_size",
    "first_k_dense_replace",
    "decoder_sparse_step",
    "interleave_moe_layer_step",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "v_head_dim",
    "layer_types",
    "max_window_layers",
};

static const char *const usual[] = {"64",
                                    "2",
                                    "4",
                                    "2",
                                    "16",
                                    "128",
                                    "1000",
                                    "2048",
                                    "10000.0",
                                    "1e-5",
                                    "\"gelu\"",
                                    "true",
                                    "false",
                                    "false",
                                    "512",
                                    "true",
                                    "0.5",
                                    "0.25",
                                    "1e4",
                                    "1e-5",
                                    "true",
                                    "64",
                                    "2",
                                    "4",
                                    "256",
                                    "1024",
                                    "\"gelu_new\"",
                                    "1e-5",
                                    "64",
                                    "2",
                                    "4",
                                    "4",
                                    "2048",
                                    "true",
                                    "\"layernorm\"",
                                    "{\"alibi\":true}",
                                    "true",
                                    "{\"rope_theta\":1e5,\"partial_rotary_factor\":0.5}",
                                    "1",
                                    "false",
                                    "null",
                                    "false",
                                    "1",
                                    "8",
                                    "32",
                                    "1",
                                    "96",
                                    "1",
                                    "2",
                                    "2",
                                    "24",
                                    "16",
                                    "8",
                                    "12",
                                    "[\"sliding_attention\",\"full_attention\"]",
                                    "1"};

static const char *const odd[] = {
    "null",
    "0",
    "-1",
    "1",
    "3",
    "7",
    "1.5",
    "1e300",
    "-0.0",
    "9223372036854775807",
    "[]",
    "{}",
    "\"\"",
    "true",
    "false",
    "\"gelu\"",
    "1048576",
    "16777216",
    "268435456",
    "1e-300",
    "\"a very long word that is no activation of any kind and goes on and on and on and on and on and on\"",
    "{\"alibi\":false,\"rope\":true}",
    "{\"rope_theta\":-5}",
    "[[[[{}]]]]"};

static const char *const types[] = {"llama",   "mistral",     "qwen2",       "qwen3",       "gemma",
                                    "phi3",    "gpt2",        "gpt_neox",    "mpt",         "olmo2",
                                    "mixtral", "qwen2_moe",   "qwen3_moe",   "olmoe",       "phimoe",
                                    "gpt_oss", "llama4_text", "deepseek_v2", "deepseek_v3", "kimi_k2"};

enum { KEYS = sizeof keys / sizeof keys[0], TYPES = sizeof types / sizeof types[0] };

// A file with every key that any type reads; a few of them odd, a few left out.
static void random_config(char *text, size_t bytes, size_t odd_in) {
    size_t used = (size_t)snprintf(text, bytes, "{\"model_type\":\"%s\"", types[draw_below(TYPES)]);
    for (size_t i = 0; i < KEYS; i++) {
        const bool strange = draw_below(odd_in) == 0;
        if (draw_below(16) == 0) {
            continue;
        }
        used += (size_t)snprintf(text + used, bytes - used, ",\"%s\":%s", keys[i],
                                 strange ? odd[draw_below(sizeof odd / sizeof odd[0])] : usual[i]);
    }
    snprintf(text + used, bytes - used, "}");
}

static bool check_answer(const char *text) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model = {.layers = -7};
    text_file_write(path, text);
    const Status status = model_find(path, &arena, &model, &error);
    if (status == STATUS_OK) {
        cr_assert_eq(model_check(&model, &error), STATUS_OK, "%s: %s", error.message, text);
        cr_assert_gt(model_parameters(&model), 0, "%s", text);
        cr_assert_geq(model_flop_parameters(&model), matrix_parameters(&model), "%s", text);
        cr_assert_not_null(model.type);
    } else {
        cr_assert_eq(status, STATUS_USAGE, "%s", text);
        cr_assert_eq(strncmp(error.message, path, strlen(path)), 0, "no file: %s for %s", error.message, text);
        cr_assert_gt(strlen(error.message), strlen(path) + 4, "%s", error.message);
        cr_assert_eq(model.layers, -7, "a refused file changed the model: %s", text);
    }
    arena_free(&arena);
    return status == STATUS_OK;
}

Test(config_property, odd_values_are_answered_or_make_a_sound_model) {
    int loaded = 0;
    for (int i = 0; i < CASES; i++) {
        char text[4 * TEXT_BYTES];
        random_config(text, sizeof text, 1 + draw_below(64));
        loaded += check_answer(text);
    }
    fprintf(stderr, "%d of %d loaded\n", loaded, CASES);
    cr_assert_gt(loaded, CASES / 10);
    cr_assert_lt(loaded, CASES * 9 / 10);
}

Test(config_property, damaged_text_is_answered) {
    for (int i = 0; i < CASES; i++) {
        char text[4 * TEXT_BYTES];
        random_config(text, sizeof text, 1000);
        const size_t length = strlen(text);
        const size_t edits = 1 + draw_below(4);
        for (size_t k = 0; k < edits; k++) {
            text[draw_below(length)] = "{}[]\",:0123456789-e.x"[draw_below(21)];
        }
        if (draw_below(4) == 0) {
            text[draw_below(length)] = '\0';
        }
        check_answer(text);
    }
}
