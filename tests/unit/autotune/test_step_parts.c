// The page's finer breakdown: compute by kind of kernel, a pipeline by stage.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "autotune/predict/compute_split.h"
#include "autotune/predict/predict.h"
#include "autotune/predict/predict_stages.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static TuneRequest request;
static Error error;

static void begin(void) {
    arena = (Arena){0};
    request = request_for(&arena, 16, "llama-3-8b", "dgx-h100", "torchtitan");
    request.model.layers = 8;
    request.seq = 4096;
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(step_parts, .init = begin, .fini = end);

static TrainPlan plan_of(int pp, int dp_shard, int grad_accum) {
    TrainPlan plan;
    memset(&plan, 0, sizeof plan);
    plan = (TrainPlan){.seq = 4096, .micro_batch = 1, .grad_accum = grad_accum, .zero = 3, .precision = DTYPE_BF16};
    plan.mesh = mesh_of_one();
    plan.mesh.size[AXIS_PP] = pp;
    plan.mesh.size[AXIS_DP_SHARD] = dp_shard;
    plan.virtual_stages = 1;
    plan_canonical(&plan);
    return plan;
}

static Prediction predicted(const TrainPlan *plan) {
    Prediction prediction;
    cr_assert_eq(predict_once(&request, NULL, plan, &arena, &prediction, &error), STATUS_OK, "%s", error.message);
    return prediction;
}

static ComputeSplit split_of(const Prediction *prediction) {
    ComputeSplit split;
    cr_assert_eq(compute_split(&request, prediction, &split, &error), STATUS_OK, "%s", error.message);
    return split;
}

Test(step_parts, kinds_of_kernels_sum_to_the_compute_of_the_step) {
    const TrainPlan plans[] = {plan_of(1, 16, 2), plan_of(2, 8, 4)};
    for (int i = 0; i < 2; i++) {
        const Prediction prediction = predicted(&plans[i]);
        const ComputeSplit split = split_of(&prediction);
        double sum = 0;
        for (int kind = 0; kind < COMPUTE_KINDS; kind++) {
            cr_expect_gt(split.seconds[kind], 0, "%s", compute_kind_names[kind]);
            sum += split.seconds[kind];
        }
        cr_expect(fabs(sum - prediction.compute_s) < 1e-9 * sum, "%g of %g", sum, prediction.compute_s);
    }
}

Test(step_parts, a_larger_vocabulary_is_in_the_head_and_longer_sequences_in_attention) {
    const TrainPlan plan = plan_of(1, 16, 2);
    const Prediction usual = predicted(&plan);
    const ComputeSplit before = split_of(&usual);
    request.model.vocab *= 2;
    const Prediction wide = predicted(&plan);
    const ComputeSplit words = split_of(&wide);
    cr_expect_gt(words.seconds[COMPUTE_HEAD], 1.8 * before.seconds[COMPUTE_HEAD]);
    cr_expect(fabs(words.seconds[COMPUTE_GEMM] / before.seconds[COMPUTE_GEMM] - 1) < 0.02);
    request.model.vocab /= 2;
    TrainPlan longer = plan;
    longer.seq *= 2;
    const Prediction far = predicted(&longer);
    const ComputeSplit tokens = split_of(&far);
    cr_expect_gt(tokens.seconds[COMPUTE_ATTENTION], 3 * before.seconds[COMPUTE_ATTENTION]);
    cr_expect_lt(tokens.seconds[COMPUTE_GEMM], 2.2 * before.seconds[COMPUTE_GEMM]);
}

Test(step_parts, stages_are_of_one_step_and_reserve_what_the_prediction_says) {
    const TrainPlan plan = plan_of(4, 4, 8);
    const Prediction prediction = predicted(&plan);
    StageSteps steps;
    cr_assert_eq(predict_stages(&request, &plan, &arena, &steps, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(steps.count, 4);
    cr_expect_eq(steps.micro_batches, 8);
    cr_expect(fabs(steps.step_s / prediction.step_s - 1) < 1e-9, "%g and %g", steps.step_s, prediction.step_s);
    int layers = 0;
    for (int i = 0; i < steps.count; i++) {
        cr_expect_eq(steps.of[i].memory.reserved_bytes, prediction.memory.by_stage[i]);
        cr_assert_gt(steps.of[i].timeline.span_count, 0);
        layers += steps.of[i].program->layers;
    }
    cr_expect_eq(layers, request.model.layers);
}

Test(step_parts, a_step_of_a_thousand_micro_batches_is_shown_shorter) {
    const TrainPlan plan = plan_of(4, 4, 1024);
    StageSteps steps;
    cr_assert_eq(predict_stages(&request, &plan, &arena, &steps, &error), STATUS_OK, "%s", error.message);
    cr_expect_lt(steps.micro_batches, 1024);
    cr_expect_eq(steps.micro_batches % 4, 0);
}

Test(step_parts, without_a_pipeline_there_are_no_stages) {
    const TrainPlan plan = plan_of(1, 16, 2);
    StageSteps steps;
    cr_assert_eq(predict_stages(&request, &plan, &arena, &steps, &error), STATUS_OK);
    cr_expect_eq(steps.count, 0);
}
