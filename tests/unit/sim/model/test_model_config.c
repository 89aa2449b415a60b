// config.json of Hugging Face: real files in short form, defaults, and one clear message for each kind of error.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/model/model.h"
#include "tests/support/text_file.h"

static Arena arena;
static Error error;
static ModelSpec model;
static char path[64];

static void begin(void) {
    snprintf(path, sizeof path, "/tmp/ndtune-model-%d.json", (int)getpid());
}

static void end(void) {
    remove(path);
    arena_free(&arena);
}

TestSuite(model_config, .init = begin, .fini = end);

static Status load(const char *text) {
    text_file_write(path, text);
    return model_find(path, &arena, &model, &error);
}

#define SMALL                                                                                                          \
    "\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4,"                   \
    "\"intermediate_size\":128,\"vocab_size\":100"

static void check_refused(const char *text, const char *sentence) {
    cr_assert_eq(load(text), STATUS_USAGE, "taken: %s", text);
    cr_assert_eq(strncmp(error.message, path, strlen(path)), 0, "no file name: %s", error.message);
    cr_assert_str_eq(error.message + strlen(path), sentence);
}

Test(model_config, the_llama_3_8b_file_gives_the_preset) {
    cr_assert_eq(load("{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"bos_token_id\":128000,"
                      "\"hidden_act\":\"silu\",\"hidden_size\":4096,\"intermediate_size\":14336,"
                      "\"max_position_embeddings\":8192,\"model_type\":\"llama\",\"num_attention_heads\":32,"
                      "\"num_hidden_layers\":32,\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_scaling\":null,"
                      "\"rope_theta\":500000.0,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\",\"vocab_"
                      "size\":128256}"),
                 STATUS_OK, "%s", error.message);
    ModelSpec preset;
    cr_assert_eq(model_find("llama-3-8b", NULL, &preset, &error), STATUS_OK);
    Hash read_hash = hash_begin();
    Hash preset_hash = hash_begin();
    model_hash(&model, &read_hash);
    model_hash(&preset, &preset_hash);
    cr_assert_eq(hash_end(&read_hash), hash_end(&preset_hash));
}

Test(model_config, absent_fields_take_the_defaults_of_transformers) {
    cr_assert_eq(load("{" SMALL "}"), STATUS_OK, "%s", error.message);
    cr_assert_eq(model.kv_heads, 4);
    cr_assert_eq(model.head_dim, 16);
    cr_assert_eq(model.rope_theta, 10000.0);
    cr_assert_eq(model.norm_eps, 1e-6);
    cr_assert_eq(model.max_seq, 2048);
    cr_assert_not(model.tied_embeddings);
}

Test(model_config, null_means_absent) {
    cr_assert_eq(load("{" SMALL ",\"head_dim\":null,\"num_key_value_heads\":null}"), STATUS_OK, "%s", error.message);
    cr_assert_eq(model.head_dim, 16);
    cr_assert_eq(model.kv_heads, 4);
}

Test(model_config, a_head_dimension_of_its_own_is_kept) {
    cr_assert_eq(load("{" SMALL ",\"head_dim\":32}"), STATUS_OK, "%s", error.message);
    cr_assert_eq(model.head_dim, 32);
}

Test(model_config, newer_files_keep_theta_in_rope_parameters) {
    cr_assert_eq(load("{" SMALL ",\"rope_parameters\":{\"rope_theta\":5e5,\"rope_type\":\"default\"}}"), STATUS_OK,
                 "%s", error.message);
    cr_assert_eq(model.rope_theta, 5e5);
}

Test(model_config, the_type_of_positions_that_are_not_read_is_kept) {
    static const char *const unread[] = {"longrope", "dynamic"}, *const read[] = {"default", "yarn"};
    char text[1024];
    for (size_t i = 0; i < sizeof unread / sizeof unread[0]; i++) {
        snprintf(text, sizeof text, "{" SMALL ",\"rope_scaling\":{\"factor\":8.0,\"type\":\"%s\"}}", unread[i]);
        cr_assert_eq(load(text), STATUS_OK, "%s", error.message);
        cr_expect_str_eq(model.positions, unread[i]);
        snprintf(text, sizeof text, "{" SMALL ",\"rope_scaling\":{\"factor\":8.0,\"type\":\"%s\"}}", read[i]);
        cr_assert_eq(load(text), STATUS_OK, "%s", error.message);
        cr_expect_null(model.positions);
    }
}

Test(model_config, positions_for_longer_sequences_are_read) {
    cr_assert_eq(load("{" SMALL ",\"rope_scaling\":{\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
                      "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"}}"),
                 STATUS_OK, "%s", error.message);
    cr_expect(model.rope_scaling.factor == 8 && model.rope_scaling.low == 1 && model.rope_scaling.high == 4 &&
              model.rope_scaling.original == 8192);
    cr_assert_eq(load("{" SMALL ",\"rope_scaling\":{\"factor\":4.0,\"type\":\"linear\"}}"), STATUS_OK, "%s",
                 error.message);
    cr_expect(model.rope_scaling.factor == 4 && model.rope_scaling.original == 0);
    cr_assert_eq(load("{" SMALL ",\"rope_parameters\":{\"rope_type\":\"default\"}}"), STATUS_OK);
    cr_expect(model.rope_scaling.factor == 0 && !model.note);
    check_refused("{" SMALL ",\"rope_scaling\":{\"rope_type\":\"linear\"}}",
                  ": rope_scaling.factor: missing, must be a number");
}

Test(model_config, positions_that_are_not_run_are_said) {
    cr_assert_eq(load("{" SMALL ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0}}"), STATUS_OK);
    cr_expect(model.rope_scaling.factor == 0 && strstr(model.note, "type \"yarn\" is not applied"), "%s", model.note);
}

Test(model_config, yarn_is_kept_for_frameworks_that_have_it) {
    cr_assert_eq(load("{" SMALL ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":8,\"mscale\":0.707,"
                      "\"mscale_all_dim\":0.5,\"original_max_position_embeddings\":4096,\"beta_fast\":64}}"),
                 STATUS_OK, "%s", error.message);
    cr_expect(model.yarn.factor == 8 && model.yarn.mscale == 0.707 && model.yarn.mscale_all == 0.5 &&
              model.yarn.original == 4096 && model.yarn.fast == 64 && model.yarn.slow == 1);
}

// gpt-oss has truncate false.
Test(model_config, yarn_rounds_between_which_pairs_it_changes_unless_told_not_to) {
    cr_assert_eq(load("{" SMALL ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8}}"), STATUS_OK);
    cr_expect_not(model.yarn.unrounded);
    cr_assert_eq(load("{" SMALL ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8,\"truncate\":false}}"),
                 STATUS_OK);
    cr_expect(model.yarn.unrounded);
}

Test(model_config, tied_embeddings_are_read) {
    cr_assert_eq(load("{" SMALL ",\"tie_word_embeddings\":true}"), STATUS_OK, "%s", error.message);
    cr_assert(model.tied_embeddings);
}

Test(model_config, the_file_names_the_model) {
    cr_assert_eq(load("{" SMALL "}"), STATUS_OK, "%s", error.message);
    char expected[64];
    snprintf(expected, sizeof expected, "ndtune-model-%d", (int)getpid());
    cr_assert_str_eq(model.name, expected);
    cr_assert_str_eq(model.source, path);
}

Test(model_config, other_model_types_fail_with_the_list) {
#define TYPES                                                                                                          \
    "llama, mistral, qwen2, qwen3, gemma, phi3, gpt2, gpt_neox, mpt, olmo2, "                                          \
    "mixtral, qwen2_moe, qwen3_moe, olmoe, phimoe, gpt_oss, llama4, llama4_text, deepseek_v2, deepseek_v3, kimi_k2, "  \
    "gemma2, gemma3_text"
    check_refused("{\"model_type\":\"mamba\"}", ": model_type: \"mamba\" is not supported; supported: " TYPES);
    check_refused("{\"model_type\":\"lama\"}", ": model_type: \"lama\" is not supported; supported: " TYPES);
    cr_assert_str_eq(error.hint, "did you mean \"llama\"?");
    check_refused("{}", ": model_type: missing, must be text");
}

Test(model_config, negative_zero_and_absurd_sizes_name_field_and_value) {
    check_refused("{\"model_type\":\"llama\",\"num_hidden_layers\":-2}",
                  ": num_hidden_layers: must be between 1 and 1024, got -2");
    check_refused("{\"model_type\":\"llama\",\"num_hidden_layers\":0}",
                  ": num_hidden_layers: must be between 1 and 1024, got 0");
    check_refused("{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":1e9}",
                  ": hidden_size: must be an integer, got 1000000000.0");
    check_refused("{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":9000000000}",
                  ": hidden_size: must be between 1 and 1048576, got 9000000000");
    check_refused("{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":\"4096\"}",
                  ": hidden_size: must be an integer, got \"4096\"");
}

Test(model_config, heads_must_fit_each_other) {
    check_refused("{" SMALL ",\"num_key_value_heads\":3}",
                  ": num_key_value_heads: must divide num_attention_heads 4, got 3");
    check_refused("{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":66,\"num_attention_heads\":4}",
                  ": hidden_size: 66 is no multiple of num_attention_heads 4, and the file has no head_dim");
    cr_assert_eq(load("{" SMALL ",\"head_dim\":15}"), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "head_dim must be even (rotary pairs), got 15"), "%s", error.message);
}

Test(model_config, what_is_not_modelled_is_refused) {
    check_refused("{" SMALL ",\"hidden_act\":\"relu\"}",
                  ": hidden_act: \"relu\" is not supported; supported: silu, swish, gelu, gelu_pytorch_tanh, gelu_new, "
                  "gelu_fast, gelu_python");
    check_refused("{" SMALL ",\"num_local_experts\":8}",
                  ": num_local_experts: mixtures of experts of this type are not modelled");
    check_refused("{" SMALL ",\"is_encoder_decoder\":true}",
                  ": is_encoder_decoder: must be false, only decoders are modelled");
}

Test(model_config, one_expert_is_a_dense_model) {
    check_refused("{\"model_type\":\"dbrx\",\"num_local_experts\":8}",
                  ": num_local_experts: mixtures of experts of this type are not modelled");
    cr_assert_eq(load("{" SMALL ",\"num_local_experts\":1,\"num_experts\":null}"), STATUS_OK, "%s", error.message);
}

Test(model_config, llama_biases_are_read) {
    cr_assert_eq(load("{" SMALL ",\"attention_bias\":true}"), STATUS_OK, "%s", error.message);
    cr_assert(model.qkv_bias && model.out_bias && !model.mlp_bias);
    cr_assert_eq(load("{" SMALL ",\"mlp_bias\":true}"), STATUS_OK, "%s", error.message);
    cr_assert(model.mlp_bias && !model.qkv_bias);
}

Test(model_config, values_out_of_range_are_refused) {
    check_refused("{" SMALL ",\"rope_theta\":0}", ": rope_theta: must be between 1 and 1e+12, got 0");
    check_refused("{" SMALL ",\"rms_norm_eps\":2}", ": rms_norm_eps: must be between 1e-12 and 0.1, got 2");
    check_refused("{" SMALL ",\"tie_word_embeddings\":\"yes\"}",
                  ": tie_word_embeddings: must be true or false, got \"yes\"");
}

Test(model_config, a_file_that_is_not_an_object_or_not_json_is_refused) {
    check_refused("[1, 2]", ": must be a JSON object");
    cr_assert_eq(load("{\"model_type\": "), STATUS_USAGE);
    cr_assert_eq(strncmp(error.message + strlen(path), ":1:", 3), 0, "%s", error.message);
}

Test(model_config, a_missing_file_is_named) {
    cr_assert_eq(model_find("./no/such/config.json", &arena, &model, &error), STATUS_ENVIRONMENT);
    cr_assert_str_eq(error.message, "./no/such/config.json: cannot open: No such file or directory");
}

Test(model_config, a_refused_file_leaves_the_model_alone) {
    model.layers = 77;
    cr_assert_neq(load("{" SMALL ",\"hidden_act\":\"relu\"}"), STATUS_OK);
    cr_assert_eq(model.layers, 77);
}

#define EXPERT_SIZES                                                                                                   \
    "\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4,\"num_key_value_heads\":4,"                  \
    "\"intermediate_size\":128,\"vocab_size\":100"

Test(model_config, a_router_of_sigmoids_has_its_groups_and_its_factor) {
    cr_assert_eq(load("{\"model_type\":\"deepseek_v3\"," EXPERT_SIZES ",\"n_routed_experts\":16,\"n_group\":4,"
                      "\"topk_group\":3,\"first_k_dense_replace\":0,\"norm_topk_prob\":false}"),
                 STATUS_OK, "%s", error.message);
    cr_expect(model.experts.sigmoid.groups == 4 && model.experts.sigmoid.active_groups == 3);
    cr_expect(model.experts.sigmoid.factor == 2.5 && model.experts.unscaled);
    cr_expect_neq(load("{\"model_type\":\"deepseek_v3\"," EXPERT_SIZES ",\"n_routed_experts\":16,\"n_group\":3}"),
                  STATUS_OK);
}

Test(model_config, the_loss_that_spreads_tokens_is_there_where_the_file_adds_it) {
    cr_assert_eq(load("{\"model_type\":\"olmoe\"," EXPERT_SIZES ",\"output_router_logits\":true}"), STATUS_OK, "%s",
                 error.message);
    cr_expect(model.experts.balance == 0.01 && strstr(model.note, "spreads tokens"), "%s", model.note);
    cr_assert_eq(load("{\"model_type\":\"olmoe\"," EXPERT_SIZES ",\"router_aux_loss_coef\":0.5}"), STATUS_OK);
    cr_expect_eq(model.experts.balance, 0);
}

Test(model_config, quantized_weights_are_a_note) {
    cr_assert_eq(load("{" SMALL ",\"quantization_config\":{\"quant_method\":\"fp8\"}}"), STATUS_OK, "%s",
                 error.message);
    cr_assert_not_null(strstr(model.note, "quantization_config is not looked at"));
    cr_assert_eq(load("{" SMALL ",\"quantization_config\":null}"), STATUS_OK, "%s", error.message);
    cr_assert_null(model.note);
}

#define GEMMA2                                                                                                         \
    "\"model_type\":\"gemma2\",\"hidden_size\":2304,\"intermediate_size\":9216,\"num_attention_heads\":8,"             \
    "\"num_hidden_layers\":26,\"num_key_value_heads\":4,\"head_dim\":256,\"vocab_size\":256000"

// google/gemma-2-2b, whose safetensors have as many parameters.
Test(model_config, gemma_2_has_caps_and_every_second_layer_sees_all) {
    cr_assert_eq(load("{" GEMMA2 "}"), STATUS_OK, "%s", error.message);
    cr_expect_eq(model_parameters(&model), INT64_C(2614341888));
    cr_expect(model_layer_slides(&model, 0) && !model_layer_slides(&model, 1) && model.window == 4096);
    cr_expect(fabs(model.attention_cap - 50) < 1e-9 && fabs(model.logit_cap - 30) < 1e-9 && model.rope_local < 1);
    cr_assert_eq(load("{" GEMMA2 ",\"attn_logit_softcapping\":null}"), STATUS_OK, "%s", error.message);
    cr_expect(model.attention_cap < 1e-9 && fabs(model.logit_cap - 30) < 1e-9);
    cr_assert_eq(load("{" GEMMA2 ",\"query_pre_attn_scalar\":144}"), STATUS_OK, "%s", error.message);
    cr_expect_eq(model.score_scalar, 144);
}

#define GEMMA3                                                                                                         \
    "\"model_type\":\"gemma3_text\",\"hidden_size\":1152,\"intermediate_size\":6912,\"num_attention_heads\":4,"        \
    "\"num_hidden_layers\":26,\"num_key_value_heads\":1,\"vocab_size\":262144,\"max_position_embeddings\":32768,"      \
    "\"rope_theta\":1000000,\"rope_local_base_freq\":10000,\"sliding_window\":512,\"sliding_window_pattern\":6"

// google/gemma-3-1b-pt, whose safetensors have as many parameters.
Test(model_config, gemma_3_has_norms_on_both_sides_and_every_sixth_layer_sees_all) {
    cr_assert_eq(load("{" GEMMA3 ",\"head_dim\":256,\"query_pre_attn_scalar\":256}"), STATUS_OK, "%s", error.message);
    cr_expect_eq(model_parameters(&model), INT64_C(999885952));
    cr_expect(model_layer_slides(&model, 4) && !model_layer_slides(&model, 5) && model.window == 512);
    cr_expect(model.rope_local > 9999 && model.rope_local < 10001 && model.rope_theta > 999999);
    cr_expect_eq(model.score_scalar, 0);
    check_refused("{" GEMMA3 ",\"final_logit_softcapping\":30.0}",
                  ": final_logit_softcapping: must be null, soft-capped scores are not modelled");
}
