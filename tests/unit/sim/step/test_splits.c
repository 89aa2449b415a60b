// Which layers the stages of a pipeline hold, by the framework's rule: counted by hand from its formula.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/step/splits/split.h"

enum { MOST = 128 };

// A head of exactly four layers, by nanotron's costs and by parameters: 1B of its sweep.
static const ModelSpec small = {
    .layers = 16, .hidden = 2048, .heads = 32, .kv_heads = 32, .head_dim = 64, .ffn = 8192, .vocab = 131072};

static void expect_shape(LayerRule rule, const ModelSpec *model, const SplitShape *shape, const int32_t *expected) {
    int32_t counts[MOST];
    layer_splits[rule]->cut(model, shape, counts);
    for (int32_t i = 0; i < shape->chunks; i++) {
        cr_expect_eq(counts[i], expected[i], "chunk %d of %d has %d layers, not %d", i, shape->chunks, counts[i],
                     expected[i]);
    }
}

static void expect_cut(LayerRule rule, const ModelSpec *model, int32_t chunks, const int32_t *expected) {
    const SplitShape shape = {.stages = chunks, .chunks = chunks};
    expect_shape(rule, model, &shape, expected);
}

Test(splits, megatron_counts_embedding_and_loss_where_the_layers_do_not_divide) {
    ModelSpec model = {.layers = 126};  // Llama 3 405B
    expect_cut(LAYERS_EDGES_IF_UNEVEN, &model, 16, (const int32_t[]){7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});
    model.layers = 128;
    expect_cut(LAYERS_EDGES_IF_UNEVEN, &model, 4, (const int32_t[]){32, 32, 32, 32});
    model.layers = 31;
    expect_cut(LAYERS_EDGES_IF_UNEVEN, &model, 4, (const int32_t[]){8, 8, 8, 7});
    model.layers = 13;
    expect_cut(LAYERS_EDGES_IF_UNEVEN, &model, 4, (const int32_t[]){4, 3, 3, 3});
}

Test(splits, a_chunk_may_have_the_embedding_or_the_loss_alone) {
    const ModelSpec model = {.layers = 126};
    int32_t counts[MOST];
    layer_splits[LAYERS_EDGES_IF_UNEVEN]->cut(&model, &(SplitShape){.stages = 128, .chunks = 128}, counts);
    cr_expect_eq(counts[0], 0);
    cr_expect_eq(counts[1], 1);
    cr_expect_eq(counts[126], 1);
    cr_expect_eq(counts[127], 0);
}

// The total cost of twenty layers: a stage closes after the layer that brings the sum to 5, 10, 15.
Test(splits, nanotron_closes_a_stage_behind_the_layer_that_reaches_its_share) {
    expect_cut(LAYERS_BY_COST, &small, 4, (const int32_t[]){5, 5, 5, 1});
    expect_cut(LAYERS_BY_COST, &small, 2, (const int32_t[]){10, 6});
    expect_cut(LAYERS_BY_COST, &small, 8, (const int32_t[]){3, 2, 3, 2, 3, 2, 1, 0});
}

// Embedding and head weigh four layers each: 24 in all, so 6 for each of four.
Test(splits, deepspeed_makes_the_heaviest_chunk_as_light_as_can_be) {
    expect_cut(LAYERS_BY_PARAMETERS, &small, 4, (const int32_t[]){2, 6, 6, 2});
    expect_cut(LAYERS_BY_PARAMETERS, &small, 2, (const int32_t[]){8, 8});
}

// 19 modules: embedding, 16 layers, final norm and head.
Test(splits, modules_are_dealt_out_with_embedding_norm_and_head_among_them) {
    expect_cut(LAYERS_AS_MODULES, &small, 2, (const int32_t[]){9, 7});        // 10, 9
    expect_cut(LAYERS_AS_MODULES, &small, 4, (const int32_t[]){4, 5, 5, 2});  // 5, 5, 5, 4
    const ModelSpec short_one = {.layers = 2};                                // 5 modules: the norm is before the head
    expect_cut(LAYERS_AS_MODULES, &short_one, 5, (const int32_t[]){0, 1, 1, 0, 0});
}

Test(splits, every_rule_deals_out_every_layer_once) {
    ModelSpec model = small;
    int32_t counts[MOST];
    for (LayerRule rule = 0; rule < LAYERS_WEIGHTED; rule++) {
        for (model.layers = 1; model.layers <= 40; model.layers++) {
            for (int32_t chunks = 1; chunks <= model.layers; chunks++) {
                int32_t sum = 0;
                layer_splits[rule]->cut(&model, &(SplitShape){.stages = chunks, .chunks = chunks}, counts);
                for (int32_t i = 0; i < chunks; i++) {
                    cr_assert_geq(counts[i], 0);
                    sum += counts[i];
                }
                cr_assert_eq(sum, model.layers, "rule %d: %d layers in %d chunks", (int)rule, model.layers, chunks);
            }
        }
    }
}

// 32 + 1 + 2 = 35 of four chunks: 9, 9, 9, 8, less one of the embedding and two of the head.
Test(splits, weights_of_embedding_and_head_take_the_place_of_layers) {
    const ModelSpec model = {.layers = 32};
    expect_shape(LAYERS_WEIGHTED, &model, &(SplitShape){4, 4, 1, 2}, (const int32_t[]){8, 9, 9, 6});
    expect_shape(LAYERS_WEIGHTED, &model, &(SplitShape){2, 4, 0, 4}, (const int32_t[]){9, 9, 9, 5});
}

// The chunks of a stage are as long as each other.
Test(splits, ends_are_said_by_stage_and_cut_into_its_chunks) {
    const ModelSpec model = {.layers = 32};
    expect_shape(LAYERS_BY_ENDS, &model, &(SplitShape){4, 4, 4, 6}, (const int32_t[]){4, 11, 11, 6});
    expect_shape(LAYERS_BY_ENDS, &model, &(SplitShape){3, 6, 4, 8}, (const int32_t[]){2, 10, 4, 2, 10, 4});
    expect_shape(LAYERS_BY_ENDS, &model, &(SplitShape){2, 2, 20, 12}, (const int32_t[]){20, 12});
}

// DeepSeek-V3's layout: Et*3|(tt|)*29,m|L has three layers in the first of 32 chunks, none in the last.
Test(splits, chunks_are_a_first_and_a_last_one_with_the_others_alike) {
    const ModelSpec model = {.layers = 32};
    expect_shape(LAYERS_BY_CHUNKS, &model, &(SplitShape){2, 4, 6, 2}, (const int32_t[]){6, 12, 12, 2});
    expect_shape(LAYERS_BY_CHUNKS, &model, &(SplitShape){2, 2, 19, 13}, (const int32_t[]){19, 13});
}

static TrainPlan plan_of(PpSplit split, int stages, int chunks) {
    TrainPlan plan = {
        .seq = 4096, .pp_split = split, .pp_schedule = chunks > 1 ? PP_INTERLEAVED : PP_1F1B, .virtual_stages = chunks};
    plan.mesh = mesh_of_one();
    plan.mesh.size[AXIS_PP] = stages;
    return plan;
}

// Alone, a stage's chunks are one: 5 + 9 of the first stage, 9 + 1 of the last one.
Test(splits, a_stage_alone_has_the_layers_of_all_of_its_chunks) {
    const ModelSpec model = {.layers = 24};
    TrainPlan plan = plan_of(SPLIT_CHUNKS, 2, 2);
    plan.pp_first = 5;
    plan.pp_last = 1;
    split_alone(&model, &plan);
    cr_expect_eq(plan.pp_split, SPLIT_ENDS);
    cr_expect_eq(plan.pp_first, 14);
    cr_expect_eq(plan.pp_last, 10);
}

// Llama 3 8B's head is worth 128256 x 4096 / (218.1 M of matrices + 4096 x 4096 of attention) = 2.24 layers. Of 32
// layers on four stages the last one of four even ones would take 10.2; 8, 9, 9, 6 take 9 at most.
Test(splits, the_most_even_split_weighs_the_head) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    const Target *megatron, *torchtitan;
    int32_t counts[MOST];
    cr_assert_eq(model_find("llama-3-8b", &arena, &model, &error), STATUS_OK);
    cr_assert_eq(target_find("megatron", &megatron, &error), STATUS_OK);
    cr_assert_eq(target_find("torchtitan", &torchtitan, &error), STATUS_OK);
    TrainPlan plan = plan_of(SPLIT_CHUNKS, 4, 1);
    cr_assert(split_balance(&model, megatron, &plan));
    split_layers(&model, megatron, &plan, counts);
    cr_expect_eq(counts[1], 9);
    cr_expect_eq(counts[2], 9);
    cr_expect(counts[0] <= 9 && counts[3] <= 6, "%d and %d on the ends", counts[0], counts[3]);
    plan = plan_of(SPLIT_WEIGHTED, 4, 1);
    cr_assert(split_balance(&model, torchtitan, &plan));
    split_layers(&model, torchtitan, &plan, counts);
    cr_expect(counts[0] <= 9 && counts[3] <= 6, "%d and %d on the ends", counts[0], counts[3]);
    arena_free(&arena);
}

// The same head on four even stages: 10.24 layers for 8. What a stage's own model says is in the same proportion.
Test(splits, loads_of_stages_are_those_of_the_models_they_hold) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    const Target *megatron;
    double loads[MOST];
    cr_assert_eq(model_find("llama-3-8b", &arena, &model, &error), STATUS_OK);
    cr_assert_eq(target_find("megatron", &megatron, &error), STATUS_OK);
    const TrainPlan plan = plan_of(SPLIT_EVEN, 4, 1);
    cr_assert(split_loads(&model, megatron, &plan, loads));
    cr_expect_float_eq(loads[3] / loads[0], (8 + 2.24) / 8, 0.002);
    cr_expect_eq(loads[1], loads[0]);
    ModelSpec held = model;
    held.layers = 8;
    cr_expect_float_eq(split_load(&held, &plan, true) / split_load(&held, &plan, false), loads[3] / loads[0], 1e-9);
    arena_free(&arena);
}

// A layer more on the last stage, and its head again: what is left for it to even out.
Test(splits, a_layer_that_predicts_a_further_token_weighs_as_the_last_one_and_a_head) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    const Target *megatron;
    double plain[MOST], further[MOST];
    cr_assert_eq(model_find("llama-3-8b", &arena, &model, &error), STATUS_OK);
    cr_assert_eq(target_find("megatron", &megatron, &error), STATUS_OK);
    TrainPlan plan = plan_of(SPLIT_EVEN, 4, 1);
    cr_assert(split_loads(&model, megatron, &plan, plain));
    plan.mtp = 1;
    cr_assert(split_loads(&model, megatron, &plan, further));
    cr_expect_eq(further[0], plain[0]);
    cr_expect_float_eq((further[3] - plain[3]) / plain[0], (1 + 2.24) / 8, 0.002);
    arena_free(&arena);
}

// 70 B on 4 stages: 20 layers and a head of 1.2, which a layer less on the last one would make 3 others wait for.
Test(splits, a_split_that_gains_nothing_is_none) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    const Target *megatron;
    cr_assert_eq(model_find("llama-3-70b", &arena, &model, &error), STATUS_OK);
    cr_assert_eq(target_find("megatron", &megatron, &error), STATUS_OK);
    TrainPlan plan = plan_of(SPLIT_CHUNKS, 2, 1);
    cr_expect_not(split_balance(&model, megatron, &plan));
    arena_free(&arena);
}

// V3: 3 dense layers of 0.58 B before 58 of experts of 11.5 B: the three weigh a seventh of one.
Test(splits, layers_of_two_kinds_weigh_what_each_holds) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    int32_t counts[MOST];
    cr_assert_eq(model_find("deepseek-v3", &arena, &model, &error), STATUS_OK);
    layer_splits[LAYERS_BY_PARAMETERS]->cut(&model, &(SplitShape){.stages = 2, .chunks = 2}, counts);
    cr_expect_eq(counts[0], 3 + 29);
    cr_expect_eq(counts[1], 29);
    arena_free(&arena);
}

// The one dense layer of V2-Lite, made as wide as to compute what six of the others do, is on the first stage.
Test(splits, a_heavy_dense_layer_leaves_its_stage_fewer_others) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    const Target *megatron;
    int32_t counts[MOST];
    cr_assert_eq(model_find("deepseek-v2-lite", &arena, &model, &error), STATUS_OK);
    cr_assert_eq(target_find("megatron", &megatron, &error), STATUS_OK);
    model.ffn *= 10;
    TrainPlan plan = plan_of(SPLIT_CHUNKS, 4, 1);
    cr_assert(split_balance(&model, megatron, &plan));
    split_layers(&model, megatron, &plan, counts);
    cr_expect_lt(counts[0] + 3, counts[1], "%d and %d", counts[0], counts[1]);
    arena_free(&arena);
}
