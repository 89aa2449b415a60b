// config.json of every model_type: the published file in short form gives the preset, absent keys take transformers'
// defaults.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/model/model.h"
#include "tests/support/hash_of.h"
#include "tests/support/text_file.h"

static Arena arena;
static Error error;
static ModelSpec model;
static char path[64];

static void begin(void) {
    snprintf(path, sizeof path, "/tmp/ndtune-config-%d.json", (int)getpid());
}

static void end(void) {
    remove(path);
    arena_free(&arena);
}

TestSuite(config_types, .init = begin, .fini = end);

static Status load(const char *text) {
    text_file_write(path, text);
    return model_find(path, &arena, &model, &error);
}

static void check_loads(const char *text) {
    cr_assert_eq(load(text), STATUS_OK, "%s", error.message);
}

static void check_refused(const char *text, const char *sentence) {
    cr_assert_eq(load(text), STATUS_USAGE, "taken: %s", text);
    cr_assert_str_eq(error.message + strlen(path), sentence);
}

static void check_preset(const char *name, const char *text) {
    ModelSpec preset;
    check_loads(text);
    cr_assert_eq(model_find(name, NULL, &preset, &error), STATUS_OK);
    cr_assert_eq(model_parameters(&model), model_parameters(&preset), "%s", name);
    cr_assert_eq(hash_of_model(&model), hash_of_model(&preset), "%s", name);
    cr_assert_str_eq(model.type, preset.type);
}

// The files as published on the Hub, without the keys that say nothing about shapes.
Test(config_types, published_files_give_their_presets) {
    check_preset("mistral-7b",
                 "{\"architectures\":[\"MistralForCausalLM\"],\"hidden_act\":\"silu\",\"hidden_size\":4096,"
                 "\"intermediate_size\":14336,\"max_position_embeddings\":32768,\"model_type\":\"mistral\","
                 "\"num_attention_heads\":32,\"num_hidden_layers\":32,\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,"
                 "\"rope_theta\":10000.0,\"sliding_window\":4096,\"tie_word_embeddings\":false,\"vocab_size\":32000}");
    check_preset("qwen2.5-7b",
                 "{\"attention_dropout\":0.0,\"hidden_act\":\"silu\",\"hidden_size\":3584,\"intermediate_size\":18944,"
                 "\"max_position_embeddings\":131072,\"max_window_layers\":28,\"model_type\":\"qwen2\","
                 "\"num_attention_heads\":28,\"num_hidden_layers\":28,\"num_key_value_heads\":4,\"rms_norm_eps\":1e-06,"
                 "\"rope_theta\":1000000.0,\"sliding_window\":131072,\"tie_word_embeddings\":false,"
                 "\"use_mrope\":false,\"use_sliding_window\":false,\"vocab_size\":152064}");
    check_preset("qwen3-32b",
                 "{\"attention_bias\":false,\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":5120,"
                 "\"intermediate_size\":25600,\"max_position_embeddings\":40960,\"max_window_layers\":64,"
                 "\"model_type\":\"qwen3\",\"num_attention_heads\":64,\"num_hidden_layers\":64,"
                 "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-06,\"rope_scaling\":null,\"rope_theta\":1000000,"
                 "\"sliding_window\":null,\"tie_word_embeddings\":false,\"use_sliding_window\":false,"
                 "\"vocab_size\":151936}");
    check_preset("gemma-7b", "{\"head_dim\":256,\"hidden_act\":\"gelu_pytorch_tanh\",\"hidden_activation\":null,"
                             "\"hidden_size\":3072,\"intermediate_size\":24576,\"max_position_embeddings\":8192,"
                             "\"model_type\":\"gemma\",\"num_attention_heads\":16,\"num_hidden_layers\":28,"
                             "\"num_key_value_heads\":16,\"rms_norm_eps\":1e-06,\"rope_theta\":10000.0,"
                             "\"vocab_size\":256000}");
    // google/gemma-3-27b-pt, its text_config
    check_preset("gemma-3-27b", "{\"head_dim\":128,\"hidden_size\":5376,\"intermediate_size\":21504,"
                                "\"model_type\":\"gemma3_text\",\"num_attention_heads\":32,\"num_hidden_layers\":62,"
                                "\"num_key_value_heads\":16,\"query_pre_attn_scalar\":168,\"rope_scaling\":"
                                "{\"factor\":8.0,\"rope_type\":\"linear\"},\"rope_theta\":1000000,"
                                "\"sliding_window\":1024,\"vocab_size\":262208}");
    check_preset("phi-3-mini", "{\"hidden_act\":\"silu\",\"hidden_size\":3072,\"intermediate_size\":8192,"
                               "\"max_position_embeddings\":4096,\"model_type\":\"phi3\",\"num_attention_heads\":32,"
                               "\"num_hidden_layers\":32,\"num_key_value_heads\":32,"
                               "\"original_max_position_embeddings\":4096,\"rms_norm_eps\":1e-05,\"rope_scaling\":null,"
                               "\"rope_theta\":10000.0,\"sliding_window\":2047,\"tie_word_embeddings\":false,"
                               "\"vocab_size\":32064}");
}

Test(config_types, published_files_of_other_kinds_give_their_presets) {
    check_preset("gpt2", "{\"activation_function\":\"gelu_new\",\"architectures\":[\"GPT2LMHeadModel\"],"
                         "\"attn_pdrop\":0.1,\"embd_pdrop\":0.1,\"layer_norm_epsilon\":1e-05,\"model_type\":\"gpt2\","
                         "\"n_ctx\":1024,\"n_embd\":768,\"n_head\":12,\"n_layer\":12,\"n_positions\":1024,"
                         "\"resid_pdrop\":0.1,\"vocab_size\":50257}");
    check_preset("gpt-neox-20b",
                 "{\"hidden_act\":\"gelu_fast\",\"hidden_size\":6144,\"intermediate_size\":24576,"
                 "\"layer_norm_eps\":1e-05,\"max_position_embeddings\":2048,\"model_type\":\"gpt_neox\","
                 "\"num_attention_heads\":64,\"num_hidden_layers\":44,\"rotary_emb_base\":10000,\"rotary_pct\":0.25,"
                 "\"tie_word_embeddings\":false,\"vocab_size\":50432}");
    check_preset("mpt-30b", "{\"attn_config\":{\"alibi\":true,\"alibi_bias_max\":8,\"attn_impl\":\"torch\","
                            "\"attn_pdrop\":0,\"attn_type\":\"multihead_attention\",\"clip_qkv\":null,"
                            "\"prefix_lm\":false,\"qk_ln\":false,\"softmax_scale\":null},\"d_model\":7168,"
                            "\"expansion_ratio\":4,\"learned_pos_emb\":true,\"logit_scale\":null,\"max_seq_len\":8192,"
                            "\"model_type\":\"mpt\",\"n_heads\":64,\"n_layers\":48,\"no_bias\":true,"
                            "\"norm_type\":\"low_precision_layernorm\",\"vocab_size\":50432}");
    check_preset("olmo2-7b", "{\"attention_bias\":false,\"hidden_act\":\"silu\",\"hidden_size\":4096,"
                             "\"intermediate_size\":11008,\"max_position_embeddings\":4096,\"model_type\":\"olmo2\","
                             "\"num_attention_heads\":32,\"num_hidden_layers\":32,\"num_key_value_heads\":32,"
                             "\"rms_norm_eps\":1e-06,\"rope_theta\":500000,\"tie_word_embeddings\":false,"
                             "\"vocab_size\":100352}");
}

#define SIZES                                                                                                          \
    "\"num_hidden_layers\":2,\"hidden_size\":256,\"num_attention_heads\":32,\"intermediate_size\":512,"                \
    "\"vocab_size\":100"

Test(config_types, absent_keys_take_the_defaults_of_their_type) {
    check_loads("{\"model_type\":\"mistral\"," SIZES "}");
    cr_assert_eq(model.kv_heads, 8);
    cr_assert_eq(model.max_seq, 131072);
    check_loads("{\"model_type\":\"qwen3\"," SIZES "}");
    cr_assert_eq(model.head_dim, 128);
    cr_assert_eq(model.kv_heads, 32);
    check_loads("{\"model_type\":\"gemma\"," SIZES "}");
    cr_assert_eq(model.head_dim, 256);
    cr_assert_eq(model.kv_heads, 16);
    cr_assert(model.tied_embeddings && model.scaled_embeddings);
    check_loads("{\"model_type\":\"phi3\"," SIZES "}");
    cr_assert_eq(model.norm_eps, 1e-5);
    cr_assert_null(model.note);
    check_loads("{\"model_type\":\"gpt_neox\",\"num_hidden_layers\":2,\"hidden_size\":256,\"num_attention_heads\":8,"
                "\"intermediate_size\":512,\"vocab_size\":100}");
    cr_assert_eq(model.rotary_dims, 8);
    cr_assert_eq(model.residual, RESIDUAL_PARALLEL);
    cr_assert_not(model.tied_embeddings);
    check_loads("{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"vocab_size\":100}");
    cr_assert_eq(model.ffn, 256);
    cr_assert_eq(model.max_seq, 1024);
    cr_assert(model.tied_embeddings);
    check_loads("{\"model_type\":\"mpt\",\"n_layers\":2,\"d_model\":64,\"n_heads\":4,\"vocab_size\":100}");
    cr_assert_eq(model.position, POSITION_ALIBI);
    cr_assert(model.tied_embeddings && !model.norm_bias && !model.qkv_bias);
}

Test(config_types, null_key_value_heads_are_as_many_as_heads) {
    check_loads("{\"model_type\":\"mistral\"," SIZES ",\"num_key_value_heads\":null}");
    cr_assert_eq(model.kv_heads, 32);
}

Test(config_types, a_default_that_does_not_fit_is_called_a_default) {
    check_refused("{\"model_type\":\"mistral\",\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4,"
                  "\"intermediate_size\":128,\"vocab_size\":100}",
                  ": num_key_value_heads: must divide num_attention_heads 4, its default is 8");
}

Test(config_types, a_model_that_sees_is_refused_as_such_and_heads_that_do_not_divide_are_named) {
    check_refused("{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\"},\"vision_config\":{}}",
                  ": model_type: \"gemma3\" is a model that sees or hears, which is not predicted yet; its language "
                  "model is, by a config.json of its keys alone (text_config, where the file has one)");
    check_refused("{\"model_type\":\"llama\",\"hidden_size\":65,\"num_attention_heads\":4,\"num_hidden_layers\":2,"
                  "\"intermediate_size\":128,\"vocab_size\":100}",
                  ": hidden_size: 65 is no multiple of num_attention_heads 4, and the file has no head_dim");
}

Test(config_types, a_sliding_window_in_force_leaves_a_note) {
    check_loads("{\"model_type\":\"mistral\"," SIZES ",\"sliding_window\":1024}");
    cr_assert_not_null(strstr(model.note, "sliding window of 1024 tokens"));
    check_loads("{\"model_type\":\"mistral\"," SIZES "}");
    cr_assert_not_null(strstr(model.note, "sliding window of 4096 tokens"));
    check_loads("{\"model_type\":\"mistral\"," SIZES ",\"sliding_window\":null}");
    cr_assert_null(model.note);
    check_loads("{\"model_type\":\"qwen2\"," SIZES ",\"sliding_window\":1024}");
    cr_assert_null(model.note);
    check_loads("{\"model_type\":\"qwen2\"," SIZES ",\"sliding_window\":1024,\"use_sliding_window\":true,"
                "\"max_window_layers\":1}");
    cr_assert_not_null(model.note);
    cr_assert(!model_layer_slides(&model, 0) && model_layer_slides(&model, 1));
    check_loads("{\"model_type\":\"qwen2\"," SIZES ",\"sliding_window\":1024,\"use_sliding_window\":true}");
    cr_assert_eq(model.window, 0);  // of layers from the 28th on only
    check_loads("{\"model_type\":\"qwen3\"," SIZES ",\"sliding_window\":1024,\"use_sliding_window\":true,"
                "\"layer_types\":[\"sliding_attention\",\"full_attention\"]}");
    cr_assert_eq(model.window_every, 2);
    check_refused("{\"model_type\":\"qwen3\"," SIZES ",\"sliding_window\":1024,\"use_sliding_window\":true,"
                  "\"layer_types\":[\"sliding_attention\"]}",
                  ": layer_types: must name a type for each of 2 layers");
    check_refused("{\"model_type\":\"phi3\"," SIZES ",\"sliding_window\":-1}",
                  ": sliding_window: must be between 1 and 268435456, got -1");
}

Test(config_types, a_part_of_the_head_may_turn) {
    check_loads("{\"model_type\":\"phi3\"," SIZES ",\"partial_rotary_factor\":0.75}");
    cr_assert_eq(model.rotary_dims, 6);
    check_loads("{\"model_type\":\"gpt_neox\"," SIZES ",\"rope_parameters\":{\"rope_theta\":1e5,"
                "\"partial_rotary_factor\":0.5}}");
    cr_assert_eq(model.rotary_dims, 4);
    cr_assert_eq(model.rope_theta, 1e5);
    check_loads("{\"model_type\":\"gpt_neox\"," SIZES ",\"rotary_pct\":1.0}");
    cr_assert_eq(model.rotary_dims, 0);
    check_refused("{\"model_type\":\"gpt_neox\"," SIZES ",\"rotary_pct\":0.4}",
                  ": rotary_pct: 0.4 of head_dim 8 is 3, which is no whole number of rotary pairs");
    check_refused("{\"model_type\":\"gpt_neox\"," SIZES ",\"rotary_pct\":-1}",
                  ": rotary_pct: must be between 0 and 1, got -1");
}

Test(config_types, gpt_neox_without_parallel_residual_is_sequential) {
    check_loads("{\"model_type\":\"gpt_neox\"," SIZES ",\"use_parallel_residual\":false,\"attention_bias\":false}");
    cr_assert_eq(model.residual, RESIDUAL_PRE_NORM);
    cr_assert(!model.qkv_bias && !model.out_bias && model.mlp_bias);
}

#define MPT "\"model_type\":\"mpt\",\"n_layers\":2,\"d_model\":64,\"n_heads\":4,\"vocab_size\":100"

Test(config_types, mpt_may_learn_positions_have_biases_and_rms_norms) {
    check_loads("{" MPT ",\"attn_config\":{\"alibi\":false}}");
    cr_assert_eq(model.position, POSITION_LEARNED);
    check_loads("{" MPT ",\"no_bias\":false}");
    cr_assert(model.qkv_bias && model.out_bias && model.mlp_bias && model.norm_bias);
    check_loads("{" MPT ",\"norm_type\":\"low_precision_rmsnorm\",\"no_bias\":false}");
    cr_assert(model.norm == NORM_RMS && !model.norm_bias);
    check_loads("{" MPT ",\"expansion_ratio\":2.5}");
    cr_assert_eq(model.ffn, 160);
}

Test(config_types, mpt_answers_what_it_cannot_do) {
    check_refused("{" MPT ",\"attn_config\":{\"attn_type\":\"grouped_query_attention\"}}",
                  ": attn_config.attn_type: must be \"multihead_attention\", got \"grouped_query_attention\"");
    check_refused("{" MPT ",\"attn_config\":{\"qk_ln\":true}}",
                  ": attn_config.qk_ln: must be false, layer norms of queries and keys are not modelled");
    check_refused("{" MPT ",\"attn_config\":{\"alibi\":false},\"learned_pos_emb\":false}",
                  ": learned_pos_emb: must be true where attn_config.alibi is false: a model without positions is not "
                  "modelled");
    check_refused("{" MPT ",\"expansion_ratio\":1.01}",
                  ": expansion_ratio: 1.01 times d_model 64 is no possible width");
    check_refused("{" MPT ",\"norm_type\":\"batchnorm\"}",
                  ": norm_type: \"batchnorm\" is not supported; supported: layernorm, rmsnorm, each also with "
                  "low_precision_");
}

Test(config_types, heads_must_divide_the_width_where_the_file_cannot_say_their_size) {
    check_refused("{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":5,\"vocab_size\":100}",
                  ": n_head: must divide the width 64, got 5");
    check_refused("{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"vocab_size\":100}",
                  ": n_head: missing, must be an integer");
}

Test(config_types, olmo2_with_biases_is_refused_in_words) {
    check_refused("{\"model_type\":\"olmo2\"," SIZES ",\"attention_bias\":true}",
                  ": attention_bias: must be false, a bias in front of a norm is not modelled");
}
