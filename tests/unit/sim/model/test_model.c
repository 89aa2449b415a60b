// Presets against the published parameter counts, FLOPs against worked numbers, names and checks.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/model/model.h"
#include "tests/support/hash_of.h"
#include "tests/support/model_counts.h"

static ModelSpec find(const char *name) {
    ModelSpec model = {0};
    Error error = {0};
    cr_assert_eq(model_find(name, NULL, &model, &error), STATUS_OK, "%s", error.message);
    return model;
}

// tiny, layer: 2*256 norms + 256*(16+2*8)*16 + 16*16*256 projections + 3*256*768 feed-forward = 512 + 131072 + 65536 +
// 589824
Test(model, the_tiny_preset_adds_up_by_hand) {
    const ModelSpec tiny = find("tiny");
    cr_assert_eq(model_layer_parameters(&tiny, LAYER_DENSE), 786944);
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

Test(model, layers_in_two_runs_of_a_kind_count_as_in_one) {
    const ModelSpec whole = find("llama-2-7b");
    ModelSpec split = whole;
    const LayerRun runs[] = {{LAYER_DENSE, 0, 5}, {LAYER_DENSE, 5, 27}};
    split.runs = runs;
    split.run_count = 2;
    cr_assert_eq(model_parameters(&split), model_parameters(&whole));
    cr_assert_eq(matrix_parameters(&split), matrix_parameters(&whole));
    cr_assert_eq(model_flops_per_token(&split, 4096), model_flops_per_token(&whole, 4096));
}

static bool runs_pass(const LayerRun runs[2]) {
    ModelSpec model = find("tiny");  // 4 layers
    Error error = {0};
    model.runs = runs;
    model.run_count = 2;
    return model_check(&model, &error) == STATUS_OK;
}

Test(model, runs_that_leave_a_layer_out_or_hold_it_twice_are_refused) {
    cr_assert(runs_pass((LayerRun[]){{LAYER_DENSE, 0, 1}, {LAYER_DENSE, 1, 3}}));
    cr_assert_not(runs_pass((LayerRun[]){{LAYER_DENSE, 0, 1}, {LAYER_DENSE, 2, 2}}));
    cr_assert_not(runs_pass((LayerRun[]){{LAYER_DENSE, 0, 2}, {LAYER_DENSE, 1, 3}}));
    cr_assert_not(runs_pass((LayerRun[]){{LAYER_DENSE, 0, 2}, {LAYER_DENSE, 2, 1}}));
    cr_assert_not(runs_pass((LayerRun[]){{LAYER_DENSE, 0, 2}, {LAYER_DENSE, 2, 3}}));
    cr_assert_not(runs_pass((LayerRun[]){{LAYER_DENSE, 0, 2}, {LAYER_KIND_COUNT, 2, 2}}));
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

typedef struct Alias {
    const char *alias, *name;
} Alias;

// The sizes that scripts may give as --model.
Test(model, every_size_name_finds_its_preset) {
    const Alias aliases[] = {{"125m", "gpt3-125m"},  {"350m", "gpt3-350m"},     {"760m", "gpt3-760m"},
                             {"1.3b", "gpt3-1.3b"},  {"7b", "llama-2-7b"},      {"13b", "llama-2-13b"},
                             {"30b", "llama-1-30b"}, {"34b", "codellama-34b"},  {"65b", "llama-1-65b"},
                             {"70b", "llama-2-70b"}, {"405b", "llama-3.1-405b"}};
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        cr_assert_str_eq(find(aliases[i].alias).name, aliases[i].name);
    }
}

// Each choice adds what model.h says: tiny has 16 query and 8 key-value heads of 16, ffn 768, hidden 256, 4 layers.
Test(model, every_choice_adds_its_parameters) {
    ModelSpec model = find("tiny");
    const int64_t llama = model_parameters(&model);
    model.qkv_bias = true;
    cr_assert_eq(model_parameters(&model) - llama, 4 * (256 + 2 * 128));
    model.out_bias = true;
    cr_assert_eq(model_parameters(&model) - llama, 4 * (512 + 256));
    model.mlp_bias = true;
    cr_assert_eq(model_parameters(&model) - llama, 4 * (768 + 2 * 768 + 256));
    model = find("tiny");
    model.norm = NORM_LAYER;
    model.norm_bias = true;
    cr_assert_eq(model_parameters(&model) - llama, 4 * 2 * 256 + 256);
    model = find("tiny");
    model.mlp = MLP_PLAIN;
    cr_assert_eq(model_parameters(&model) - llama, -4 * 256 * 768);
    model = find("tiny");
    model.position = POSITION_LEARNED;
    cr_assert_eq(model_parameters(&model) - llama, 2048 * 256);
    model = find("tiny");
    model.qk_norm = QK_NORM_HEAD;
    cr_assert_eq(model_parameters(&model) - llama, 4 * 2 * 16);
    model.qk_norm = QK_NORM_WHOLE;
    cr_assert_eq(model_parameters(&model) - llama, 4 * (256 + 128));
}

Test(model, positions_are_no_flop_parameters) {
    ModelSpec model = find("tiny");
    const int64_t rotary = model_flop_parameters(&model);
    model.position = POSITION_LEARNED;
    cr_assert_eq(model_flop_parameters(&model), rotary);
}

Test(model, a_family_sets_choices_and_leaves_sizes) {
    ModelSpec model = find("tiny");
    cr_assert(model_set_family(&model, "gpt_neox"));
    cr_assert_eq(model.hidden, 256);
    cr_assert_eq(model.rotary_dims, 4);
    cr_assert_eq(model.residual, RESIDUAL_PARALLEL);
    cr_assert(model_set_family(&model, "llama"));
    cr_assert_eq(model.residual, RESIDUAL_PRE_NORM);
    cr_assert_not(model_set_family(&model, "mamba"));
}

Test(model, underscores_are_taken_for_dashes) {
    cr_assert_str_eq(find("llama_3_8b").name, "llama-3-8b");
}

static void check_unknown(const char *name, const char *hint) {
    ModelSpec model = {0};
    Error error = {0};
    cr_assert_eq(model_find(name, NULL, &model, &error), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, name), "%s", error.message);
    cr_assert_not_null(strstr(error.message, "known: tiny, 125m, 350m"), "%s", error.message);
    cr_assert_not_null(strstr(error.message, " more (ndtune models lists them)"), "%s", error.message);
    cr_assert_not_null(strstr(error.message, "or the path of a config.json"), "%s", error.message);
    cr_assert_str_eq(error.hint, hint);
}

Test(model, an_unknown_name_gets_the_list_and_a_suggestion) {
    check_unknown("lama-3-8b", "did you mean llama-3-8b?");
    check_unknown("llama-405b", "did you mean llama-3.1-405b?");
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
static void odd_rotary_part(ModelSpec *model) {
    model->rotary_dims = 5;
}
static void rotary_past_the_head(ModelSpec *model) {
    model->rotary_dims = 18;
}
static void biased_rms(ModelSpec *model) {
    model->norm_bias = true;
}
static void no_such_norm(ModelSpec *model) {
    model->norm = NORM_COUNT;
}
static void bias_before_a_norm(ModelSpec *model) {
    model->residual = RESIDUAL_POST_NORM;
    model->mlp_bias = true;
}

Test(model, the_check_names_field_and_value) {
    check_spoiled(no_layers, "model tiny: layers must be positive, got 0");
    check_spoiled(negative_ffn, "model tiny: ffn must be positive, got -768");
    check_spoiled(uneven_heads, "model tiny: kv_heads 3 must divide heads 16");
    check_spoiled(odd_head, "model tiny: head_dim must be even (rotary pairs), got 15");
    check_spoiled(small_theta, "model tiny: rope_theta must be at least 1, got nan");
    check_spoiled(no_eps, "model tiny: norm_eps must be above 0 and at most 0.1, got 0");
    check_spoiled(odd_rotary_part, "model tiny: rotary_dims must be even and between 0 and head_dim 16, got 5");
    check_spoiled(rotary_past_the_head, "model tiny: rotary_dims must be even and between 0 and head_dim 16, got 18");
    check_spoiled(biased_rms, "model tiny: norm_bias goes with layer norms only");
    check_spoiled(no_such_norm, "model tiny: norm has no choice 2");
    check_spoiled(bias_before_a_norm, "model tiny: mlp_bias in front of a norm is not modelled");
}

Test(model, a_model_whose_bytes_would_not_fit_in_64_bits_is_refused) {
    ModelSpec model = find("tiny");
    Error error = {0};
    model.layers = 1 << 20;
    model.hidden = 1 << 20;
    model.ffn = 1 << 22;
    cr_assert_eq(model_check(&model, &error), STATUS_USAGE);
}

Test(model, the_hash_sees_shapes_but_not_names) {
    ModelSpec model = find("tiny");
    const uint64_t before = hash_of_model(&model);
    strcpy(model.name, "renamed");
    cr_assert_eq(hash_of_model(&model), before);
    model.rope_theta = 500000.0;
    cr_assert_neq(hash_of_model(&model), before);
}

Test(model, the_hash_sees_every_choice) {
    const ModelSpec tiny = find("tiny");
    ModelSpec changed[13];
    enum { COUNT = sizeof changed / sizeof changed[0] };
    for (int i = 0; i < COUNT; i++) {
        changed[i] = tiny;
    }
    changed[0].norm = NORM_LAYER;
    changed[1].norm_bias = true;
    changed[2].mlp = MLP_PLAIN;
    changed[3].activation = ACTIVATION_GELU;
    changed[4].position = POSITION_ALIBI;
    changed[5].rotary_dims = 8;
    changed[6].qk_norm = QK_NORM_HEAD;
    changed[7].residual = RESIDUAL_PARALLEL;
    changed[8].qkv_bias = true;
    changed[9].out_bias = true;
    changed[10].mlp_bias = true;
    changed[11].fused_qkv = true;
    changed[12].scaled_embeddings = true;
    for (int i = 0; i < COUNT; i++) {
        cr_assert_neq(hash_of_model(&changed[i]), hash_of_model(&tiny), "choice %d", i);
        for (int j = 0; j < i; j++) {
            cr_assert_neq(hash_of_model(&changed[i]), hash_of_model(&changed[j]), "choices %d and %d", i, j);
        }
    }
}

Test(model, names_of_the_hub_are_those_of_presets) {
    static const char *const names[][2] = {{"meta-llama/Llama-3.1-8B", "llama-3.1-8b"},
                                           {"meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"},
                                           {"meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"},
                                           {"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"},
                                           {"mistralai/Mistral-7B-v0.1", "mistral-7b"},
                                           {"Llama-3.1-70B", "llama-3.1-70b"},
                                           {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
                                           {"Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"},
                                           {"deepseek-ai/DeepSeek-V3", "deepseek-v3"},
                                           {"8b", "llama-3.1-8b"},
                                           {"meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-70b"},
                                           {"deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"},
                                           {"Qwen/Qwen3-4B-Instruct-2507", "qwen3-4b"},
                                           {"Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2.5-32b"},
                                           {"deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-3.1-70b"},
                                           {"Qwen/QwQ-32B", "qwen2.5-32b"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_expect_str_eq(find(names[i][0]).name, names[i][1]);
    }
}

Test(model, a_hub_name_of_other_sizes_is_unknown) {
    ModelSpec model;
    Error error = {0};
    cr_assert_eq(model_find("mistralai/Mistral-7B-Instruct-v0.3", NULL, &model, &error), STATUS_USAGE);
    cr_assert_eq(model_find("databricks/dbrx-base", NULL, &model, &error), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "models with experts (MoE) is not predicted yet"), "%s", error.message);
    cr_assert_eq(model_find("llama-405b", NULL, &model, &error), STATUS_USAGE);
    cr_assert_null(strstr(error.message, "experts"), "%s", error.message);
}

// As marin saw it on 64 ranks (1.212), and two ranks of as many experts are nearer to each other than eight.
Test(model, a_router_that_learns_overloads_the_busiest_of_many_small_parts_most) {
    const Experts fine = {.count = 256}, coarse = {.count = 8};
    cr_expect_eq(experts_learned_imbalance(&fine, 64), 21);
    cr_expect_eq(experts_learned_imbalance(&fine, 1), 0);
    cr_expect_lt(experts_learned_imbalance(&fine, 8), experts_learned_imbalance(&fine, 64));
    cr_expect_gt(experts_learned_imbalance(&coarse, 8), experts_learned_imbalance(&fine, 8));
    cr_expect_lt(experts_learned_imbalance(&coarse, 2), experts_learned_imbalance(&coarse, 8));
}

// One expert a token: both kinds the same one half of the time. Of all experts every rank has as many. Two a token, of
// four on two ranks: a kind is on one rank with both of its experts in 2 of 6 choices, and the ranks of both meet.
Test(model, tokens_of_two_kinds_crowd_those_experts_that_both_choose) {
    const Experts one = {.count = 2, .active = 1}, all = {.count = 8, .active = 8}, two = {.count = 4, .active = 2};
    cr_expect_eq(experts_alike_imbalance(&one, 2), 50);
    cr_expect_eq(experts_alike_imbalance(&all, 4), 0);
    // of 36 pairs 2 have all four on one rank, 16 three and 18 two
    cr_expect_eq(experts_alike_imbalance(&two, 2), 28);
    const ModelSpec oss = find("gpt-oss-20b");
    cr_expect_eq(experts_alike_imbalance(&oss.experts, 1), 0);
    cr_expect_eq(experts_alike_imbalance(&oss.experts, 8), 148);
    cr_expect_eq(experts_alike_imbalance(&oss.experts, 32), 472);
}

static int starting(const char *name, int ranks) {
    const ModelSpec model = find(name);
    return experts_starting_imbalance(&model, ranks);
}

// Forwards of Qwen3-30B as it is drawn have 129 % more on the busiest of 8 ranks and 237 of 16, in the mean of eight
// layers (tests/accuracy/ROUTER_START.md). Shared experts tell tokens apart, latent values are smaller: DeepSeek-V3.
Test(model, routers_that_nothing_has_moved_choose_alike_where_experts_are_narrow_and_none_is_shared) {
    cr_expect_eq(starting("qwen3-30b-a3b", 1), 0);
    cr_expect_eq(starting("qwen3-30b-a3b", 8), 109);
    cr_expect_eq(starting("qwen3-30b-a3b", 16), 192);
    cr_expect_eq(starting("mixtral-8x7b", 8), 42);  // 55 where silu left 0.3 of wide products too
    cr_expect_lt(starting("deepseek-v3", 8), starting("qwen3-30b-a3b", 8) / 3);
    cr_expect_eq(starting("llama-3.1-8b", 8), 0);
}

// Starts are multiples of those that a token visits: of eight, 16 on a rank hold all and four half; of six, eight hold
// all of those that begin at 0 and 18, in four.
Test(model, experts_that_are_taken_in_turn_are_on_few_ranks) {
    Experts experts = {.count = 128, .active = 8};
    cr_expect_float_eq(experts_parts_visited(&experts, 8), 5.3, 0.1);
    experts.in_turn = true;
    cr_expect_float_eq(experts_parts_visited(&experts, 8), 1, 1e-12);
    cr_expect_float_eq(experts_parts_visited(&experts, 32), 2, 1e-12);
    cr_expect_float_eq(experts_parts_visited(&experts, 128), 8, 1e-12);
    experts = (Experts){.count = 24, .active = 6, .in_turn = true};
    cr_expect_float_eq(experts_parts_visited(&experts, 3), 1.5, 1e-12);
    cr_expect_float_eq(experts_parts_visited(&experts, 6), 2, 1e-12);  // four on each: starts at 0 and at 2 of them
}
