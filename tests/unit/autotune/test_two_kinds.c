// Dense and MoE layers in one model: each takes the same time as in a model of its own kind.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/predict/predict.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

enum { LAYERS = 8 };

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(two_kinds, .fini = forget);

typedef struct Shape {
    const char *target;
    Mesh mesh;
    Recompute recompute;
    bool dummies;  // a tensor of each shape of a weight, once for all layers
} Shape;

// A small DeepSeek-V2 with these runs of layers. A host that issues experts one by one falls behind in MoE layers and
// catches up in dense ones, which is not additive, and so does one that issues dense ones module by module: here one
// launch has them all, and modules take no longer than launches. Nor are dummy gradients, which have the shapes of
// both.
static Prediction predicted(const Shape *shape, const LayerRun *runs, int count) {
    TuneRequest request = request_for(&arena, 8, "deepseek-v2-lite", "dgx-h100", shape->target);
    Target at_once = *request.target;
    at_once.experts_at_once = true;
    at_once.runtime.module_operations = 0;
    at_once.dummy_gradients = shape->dummies;
    request.target = &at_once;
    request.model.layers = LAYERS;
    request.model.runs = runs;
    request.model.run_count = count;
    request.seq = 4096;
    TrainPlan plan = {.mesh = shape->mesh,
                      .seq = 4096,
                      .micro_batch = 1,
                      .grad_accum = 2,
                      .zero = strcmp(shape->target, "megatron") == 0 ? 1 : 3,
                      .precision = DTYPE_BF16,
                      .recompute = shape->recompute,
                      .attention = request.target->default_attention,
                      .fused = request.target->default_fused};
    plan_canonical(&plan);
    Predictor predictor;
    Prediction prediction;
    Error error = {0};
    predictor_init(&predictor, &request, NULL);
    cr_assert_eq(predict_plan(&predictor, &plan, false, &arena, &prediction, &error), STATUS_OK, "%s", error.message);
    predictor_free(&predictor);
    return prediction;
}

static const LayerRun experts[] = {{LAYER_EXPERTS, 0, LAYERS}}, dense[] = {{LAYER_DENSE, 0, LAYERS}};
static const LayerRun first_dense[] = {{LAYER_DENSE, 0, LAYERS / 2}, {LAYER_EXPERTS, LAYERS / 2, LAYERS / 2}};
static const LayerRun by_turns[] = {{LAYER_DENSE, 0, 1},   {LAYER_EXPERTS, 1, 1}, {LAYER_DENSE, 2, 1},
                                    {LAYER_EXPERTS, 3, 1}, {LAYER_DENSE, 4, 1},   {LAYER_EXPERTS, 5, 1},
                                    {LAYER_DENSE, 6, 1},   {LAYER_EXPERTS, 7, 1}};

Test(two_kinds, half_of_each_take_the_mean_of_all_of_either) {
    static const Shape shapes[] = {{"megatron", {.size = SIZES(1, 8, 1, 1)}, RECOMPUTE_NONE, false},
                                   {"megatron", {.size = SIZES(1, 8, 1, 1)}, RECOMPUTE_FULL, false},
                                   {"megatron", {.size = SIZES(1, 4, 1, 2)}, RECOMPUTE_NONE, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const Prediction of_experts = predicted(&shapes[i], experts, 1), of_dense = predicted(&shapes[i], dense, 1);
        const Prediction both = predicted(&shapes[i], first_dense, 2);
        const double mean_s = (of_experts.step_s + of_dense.step_s) / 2;
        const double mean_bytes = (double)(of_experts.memory.peak_bytes + of_dense.memory.peak_bytes) / 2;
        cr_expect_float_eq(both.step_s, mean_s, 2e-3 * mean_s, "%zu: %g %g", i, both.step_s, mean_s);
        cr_expect_float_eq((double)both.memory.peak_bytes, mean_bytes, 2e-3 * mean_bytes, "%zu: %g %g", i,
                           (double)both.memory.peak_bytes, mean_bytes);
    }
}

// Of the experts' weights and of the shared expert's there is one each, of however many layers and experts.
Test(two_kinds, weights_of_either_have_dummy_gradients_of_their_own) {
    const Shape with = {"megatron", {.size = SIZES(1, 8, 1, 1)}, RECOMPUTE_NONE, true};
    const Shape without = {"megatron", {.size = SIZES(1, 8, 1, 1)}, RECOMPUTE_NONE, false};
    const double of_both = (double)(predicted(&with, first_dense, 2).memory.peak_bytes -
                                    predicted(&without, first_dense, 2).memory.peak_bytes);
    const double of_dense =
        (double)(predicted(&with, dense, 1).memory.peak_bytes - predicted(&without, dense, 1).memory.peak_bytes);
    const double of_experts = 2.0 * 3 * 2048 * (1408 + 2816);
    cr_assert_float_eq(of_both - of_dense, of_experts, 1);
}

Test(two_kinds, alternating_they_take_what_they_take_one_after_the_other) {
    const Shape shape = {"megatron", {.size = SIZES(1, 8, 1, 1)}, RECOMPUTE_NONE, false};
    const Prediction first = predicted(&shape, first_dense, 2), turns = predicted(&shape, by_turns, LAYERS);
    cr_assert_float_eq(first.step_s, turns.step_s, 1e-12 * first.step_s);
    cr_assert_eq(first.memory.peak_bytes, turns.memory.peak_bytes);
}

Test(two_kinds, a_layer_that_is_gathered_has_the_room_of_the_widest) {
    const Shape shape = {"torchtitan", {.size = SIZES(1, 8, 1, 1)}, RECOMPUTE_FULL, false};
    const double of_experts = (double)predicted(&shape, experts, 1).memory.peak_bytes;
    const double of_dense = (double)predicted(&shape, dense, 1).memory.peak_bytes;
    const double both = (double)predicted(&shape, first_dense, 2).memory.peak_bytes;
    cr_assert_gt(both, (of_experts + of_dense) / 2 + 1e9);
    cr_assert_lt(both, of_experts);
}

// Of two stages the first is dense here.
Test(two_kinds, a_stage_of_dense_layers_holds_no_experts) {
    Shape shape = {"megatron", {.size = SIZES(1, 4, 1, 1)}, RECOMPUTE_NONE, false};
    shape.mesh.size[AXIS_PP] = 2;
    shape.mesh.size[AXIS_EP] = 4;
    const Prediction both = predicted(&shape, first_dense, 2), of_dense = predicted(&shape, dense, 1);
    cr_assert_eq(both.memory.stages, 2);
    cr_expect_float_eq(both.memory.by_stage[0], of_dense.memory.by_stage[0], 1);
    cr_expect_gt(both.memory.by_stage[1], 1.1 * of_dense.memory.by_stage[1]);
}

// It runs each layer as what it is, with the room for both halves gathered and reduced in each.
Test(two_kinds, of_our_executor_they_take_the_mean_and_the_room_of_both) {
    const Shape shape = {"ndtune", {.size = SIZES(1, 8, 1, 1)}, RECOMPUTE_NONE, false};
    const Prediction of_experts = predicted(&shape, experts, 1), of_dense = predicted(&shape, dense, 1);
    const Prediction first = predicted(&shape, first_dense, 2), turns = predicted(&shape, by_turns, LAYERS);
    const double mean_s = (of_experts.step_s + of_dense.step_s) / 2;
    cr_expect(first.step_s > mean_s && first.step_s < 1.08 * mean_s, "%g %g", first.step_s, mean_s);
    cr_expect(turns.step_s > mean_s && turns.step_s < 1.08 * mean_s, "%g %g", turns.step_s, mean_s);
    cr_expect_gt(first.memory.peak_bytes, of_experts.memory.peak_bytes);
}
