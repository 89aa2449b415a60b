// Which layers the stages of a pipeline hold, by the rule of the framework: counted by hand from its formula.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/step/splits/split.h"

enum { MOST = 128 };

// A head of exactly four layers, by nanotron's costs and by parameters: 1B of its sweep.
static const ModelSpec small = {
    .layers = 16, .hidden = 2048, .heads = 32, .kv_heads = 32, .head_dim = 64, .ffn = 8192, .vocab = 131072};

static void expect_cut(LayerRule rule, const ModelSpec *model, int32_t chunks, const int32_t *expected) {
    int32_t counts[MOST];
    layer_splits[rule]->cut(model, chunks, counts);
    for (int32_t i = 0; i < chunks; i++) {
        cr_expect_eq(counts[i], expected[i], "chunk %d of %d has %d layers, not %d", i, chunks, counts[i], expected[i]);
    }
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
    layer_splits[LAYERS_EDGES_IF_UNEVEN]->cut(&model, 128, counts);
    cr_expect_eq(counts[0], 0);
    cr_expect_eq(counts[1], 1);
    cr_expect_eq(counts[126], 1);
    cr_expect_eq(counts[127], 0);
}

// Twenty layers' cost in all: a stage closes behind the layer that takes the sum past 5, 10, 15.
Test(splits, nanotron_closes_a_stage_behind_the_layer_that_passes_its_share) {
    expect_cut(LAYERS_BY_COST, &small, 4, (const int32_t[]){6, 5, 5, 0});
    expect_cut(LAYERS_BY_COST, &small, 2, (const int32_t[]){11, 5});
    expect_cut(LAYERS_BY_COST, &small, 8, (const int32_t[]){3, 3, 2, 3, 2, 3, 0, 0});
}

// Embedding and head weigh four layers each: 24 in all, so 6 for each of four.
Test(splits, deepspeed_makes_the_heaviest_chunk_as_light_as_can_be) {
    expect_cut(LAYERS_BY_PARAMETERS, &small, 4, (const int32_t[]){2, 6, 6, 2});
    expect_cut(LAYERS_BY_PARAMETERS, &small, 2, (const int32_t[]){8, 8});
}

Test(splits, every_rule_deals_out_every_layer_once) {
    ModelSpec model = small;
    int32_t counts[MOST];
    for (LayerRule rule = 0; rule < LAYER_RULE_COUNT; rule++) {
        for (model.layers = 1; model.layers <= 40; model.layers++) {
            for (int32_t chunks = 1; chunks <= model.layers; chunks++) {
                int32_t sum = 0;
                layer_splits[rule]->cut(&model, chunks, counts);
                for (int32_t i = 0; i < chunks; i++) {
                    cr_assert_geq(counts[i], 0);
                    sum += counts[i];
                }
                cr_assert_eq(sum, model.layers, "rule %d: %d layers in %d chunks", (int)rule, model.layers, chunks);
            }
        }
    }
}
