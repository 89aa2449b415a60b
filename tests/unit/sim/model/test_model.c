// Presets against the published parameter counts, FLOPs against worked numbers, names and checks.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/model/model.h"

static ModelSpec find(const char *name) {
    ModelSpec model = {0};
    Error error = {0};
    cr_assert_eq(model_find(name, NULL, &model, &error), STATUS_OK, "%s", error.message);
    return model;
}

Test(model, parameter_counts_are_the_published_ones) {
    const ModelSpec llama2 = find("llama-2-7b");
    const ModelSpec llama3 = find("llama-3-8b");
    const ModelSpec large = find("llama-3-70b");
    cr_assert_eq(model_parameters(&llama2), INT64_C(6738415616));  // meta-llama/Llama-2-7b-hf safetensors index
    cr_assert_eq(model_parameters(&llama3), INT64_C(8030261248));  // meta-llama/Meta-Llama-3-8B
    cr_assert_eq(model_parameters(&large), INT64_C(70553706496));  // meta-llama/Meta-Llama-3-70B
}

// tiny, layer: 2*256 norms + 256*(16+2*8)*16 + 16*16*256 projections + 3*256*768 feed-forward = 512 + 131072 + 65536 +
// 589824
Test(model, the_tiny_preset_adds_up_by_hand) {
    const ModelSpec tiny = find("tiny");
    cr_assert_eq(model_layer_parameters(&tiny), 786944);
    cr_assert_eq(model_parameters(&tiny), 4 * 786944 + 256 + 2 * 1024 * 256);
}

Test(model, tying_drops_one_table_from_the_count_but_not_from_the_flops) {
    ModelSpec model = find("tiny");
    const int64_t untied = model_parameters(&model);
    const int64_t flop_parameters = model_flop_parameters(&model);
    model.tied_embeddings = true;
    cr_assert_eq(model_parameters(&model), untied - 1024 * 256);
    cr_assert_eq(model_flop_parameters(&model), flop_parameters);
}

// 6 * (6738415616 - 32000*4096) + 12 * 32 * 4096 * 4096 = 39.644e9 + 6.442e9
Test(model, flops_per_token_count_the_head_and_the_full_attention_square) {
    const ModelSpec model = find("llama-2-7b");
    const double expected = 6.0 * (6738415616.0 - 32000.0 * 4096.0) + 12.0 * 32 * 4096 * 4096.0;
    cr_assert_lt(fabs(model_flops_per_token(&model, 4096) / expected - 1.0), 1e-15);
}

Test(model, names_are_unique_and_every_preset_passes_its_own_check) {
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    for (int i = 0; i < count; i++) {
        Error error = {0};
        cr_assert_eq(model_check(&presets[i].spec, &error), STATUS_OK, "%s", error.message);
        cr_assert_not_null(presets[i].spec.source);
        for (int j = 0; j < i; j++) {
            cr_assert_str_neq(presets[i].spec.name, presets[j].spec.name);
        }
    }
}

Test(model, the_tiny_preset_can_be_cut_eight_ways) {
    const ModelSpec tiny = find("tiny");
    const int sizes[] = {tiny.heads, tiny.kv_heads, tiny.ffn, tiny.vocab, tiny.max_seq / 2};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        cr_assert_eq(sizes[i] % 8, 0);
    }
}

Test(model, an_alias_finds_the_preset) {
    cr_assert_str_eq(find("7b").name, "llama-2-7b");
}

Test(model, underscores_are_taken_for_dashes) {
    cr_assert_str_eq(find("llama_3_8b").name, "llama-3-8b");
}

static void check_unknown(const char *name, const char *hint) {
    ModelSpec model = {0};
    Error error = {0};
    cr_assert_eq(model_find(name, NULL, &model, &error), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, name), "%s", error.message);
    cr_assert_not_null(strstr(error.message, "tiny, llama-2-7b"), "%s", error.message);
    cr_assert_str_eq(error.hint, hint);
}

Test(model, an_unknown_name_gets_the_list_and_a_suggestion) {
    check_unknown("lama-3-8b", "did you mean llama-3-8b?");
    check_unknown("tinny", "did you mean tiny?");
    check_unknown("gpt5-ultra", "");
    check_unknown("", "");
}

typedef void (*Spoil)(ModelSpec *model);

static void check_spoiled(Spoil spoil, const char *sentence) {
    ModelSpec model = find("tiny");
    Error error = {0};
    spoil(&model);
    cr_assert_eq(model_check(&model, &error), STATUS_USAGE);
    cr_assert_str_eq(error.message, sentence);
}

static void no_layers(ModelSpec *model) {
    model->layers = 0;
}
static void negative_ffn(ModelSpec *model) {
    model->ffn = -768;
}
static void uneven_heads(ModelSpec *model) {
    model->kv_heads = 3;
}
static void odd_head(ModelSpec *model) {
    model->head_dim = 15;
}
static void small_theta(ModelSpec *model) {
    model->rope_theta = NAN;
}
static void no_eps(ModelSpec *model) {
    model->norm_eps = 0.0;
}

Test(model, the_check_names_field_and_value) {
    check_spoiled(no_layers, "model tiny: layers must be positive, got 0");
    check_spoiled(negative_ffn, "model tiny: ffn must be positive, got -768");
    check_spoiled(uneven_heads, "model tiny: kv_heads 3 must divide heads 16");
    check_spoiled(odd_head, "model tiny: head_dim must be even (rotary pairs), got 15");
    check_spoiled(small_theta, "model tiny: rope_theta must be at least 1, got nan");
    check_spoiled(no_eps, "model tiny: norm_eps must be above 0 and at most 0.1, got 0");
}

Test(model, a_model_whose_bytes_would_not_fit_in_64_bits_is_refused) {
    ModelSpec model = find("tiny");
    Error error = {0};
    model.layers = 1 << 20;
    model.hidden = 1 << 20;
    model.ffn = 1 << 22;
    cr_assert_eq(model_check(&model, &error), STATUS_USAGE);
}

static uint64_t hash_of(const ModelSpec *model) {
    Hash hash = hash_begin();
    model_hash(model, &hash);
    return hash_end(&hash);
}

Test(model, the_hash_sees_shapes_but_not_names) {
    ModelSpec model = find("tiny");
    const uint64_t before = hash_of(&model);
    strcpy(model.name, "renamed");
    cr_assert_eq(hash_of(&model), before);
    model.rope_theta = 500000.0;
    cr_assert_neq(hash_of(&model), before);
}
