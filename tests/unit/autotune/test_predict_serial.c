// Lanes one after another: the sum of the tasks, each charged where it belongs.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "autotune/predict/predict.h"
#include "autotune/predict/predict_serial.h"
#include "autotune/search/search.h"
#include "tests/support/search_all.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static TuneRequest request;
static Error error;

static void begin(void) {
    arena = (Arena){0};
    request = request_for(&arena, 4, "tiny", "local-cpu", "ndtune");
    request.seq = 128;
    request.global_batch = 4;
    request.asked[PLAN_PRECISION] = DTYPE_FP32;
    request.serial_lanes = true;
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(predict_serial, .init = begin, .fini = end);

static TrainPlan plan_of(Mesh mesh) {
    TrainPlan plan;
    memset(&plan, 0, sizeof plan);
    plan = (TrainPlan){.mesh = mesh, .seq = 128, .micro_batch = 1, .grad_accum = 1, .zero = 3, .precision = DTYPE_FP32};
    plan_canonical(&plan);
    return plan;
}

static Prediction predicted(Mesh mesh, bool serial) {
    Predictor predictor;
    Prediction prediction;
    const TrainPlan plan = plan_of(mesh);
    request.serial_lanes = serial;
    predictor_init(&predictor, &request, NULL);
    cr_assert_eq(predict_plan(&predictor, &plan, false, &arena, &prediction, &error), STATUS_OK, "%s", error.message);
    predictor_free(&predictor);
    return prediction;
}

Test(predict_serial, terms_sum_to_the_step) {
    const Prediction serial = predicted((Mesh){.size = SIZES(1, 2, 1, 2)}, true);
    double sum = serial.compute_s + serial.optimizer_s + serial.overhead_s;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        sum += serial.exposed_s[axis];
    }
    cr_assert_float_eq(sum, serial.step_s, 1e-12 * serial.step_s);
    cr_assert_gt(serial.exposed_s[AXIS_DP_SHARD], 0);
    cr_assert_gt(serial.exposed_s[AXIS_TP], 0);
    cr_assert_eq(serial.exposed_s[AXIS_CP], 0);
}

Test(predict_serial, is_no_faster_than_lanes_beside_each_other) {
    static const Mesh meshes[] = {{.size = SIZES(1, 4, 1, 1)},
                                  {.size = SIZES(1, 2, 2, 1)},
                                  {.size = SIZES(2, 1, 1, 2)},
                                  {.size = SIZES(1, 1, 4, 1)}};
    for (int i = 0; i < 4; i++) {
        const Prediction serial = predicted(meshes[i], true), beside = predicted(meshes[i], false);
        // concurrent lanes slow each other by a few percent (interference)
        cr_assert_geq(serial.step_s, 0.95 * beside.step_s, "mesh %d: %g, %g", i, serial.step_s, beside.step_s);
    }
}

Test(predict_serial, one_rank_takes_the_same_either_way) {
    request = request_for(&arena, 1, "tiny", "local-cpu", "ndtune");
    request.asked[PLAN_PRECISION] = DTYPE_FP32;
    const Prediction serial = predicted((Mesh){.size = SIZES(1, 1, 1, 1)}, true),
                     beside = predicted((Mesh){.size = SIZES(1, 1, 1, 1)}, false);
    cr_assert_float_eq(serial.step_s, beside.step_s, 0.01 * beside.step_s, "%g %g", serial.step_s, beside.step_s);
}

Test(predict_serial, is_another_prediction_than_the_overlapped_one) {
    const Prediction serial = predicted((Mesh){.size = SIZES(1, 4, 1, 1)}, true),
                     beside = predicted((Mesh){.size = SIZES(1, 4, 1, 1)}, false);
    cr_assert_neq(serial.content_hash, beside.content_hash);
}

Test(predict_serial, totals_of_the_tasks_sum_to_the_step) {
    const TrainPlan plan = plan_of((Mesh){.size = SIZES(1, 2, 1, 2)});
    const CostModel cost = {.profile = &request.cluster, .target = request.target};
    StepProgram program;
    cr_assert_eq(step_lower(&request.model, &plan, request.target, &arena, &program, &error), STATUS_OK);
    TaskTotal *totals = ARENA_ARRAY(&arena, TaskTotal, program.task_count);
    Prediction prediction = {0};
    predict_serial(&cost, &program, &arena, &prediction, totals);
    double sum = request.target->runtime.step_fixed_s;
    for (int32_t i = 0; i < program.task_count; i++) {
        sum += totals[i].seconds;
    }
    cr_assert_float_eq(sum, prediction.step_s, 1e-12);
}

Test(predict_serial, the_search_ranks_by_it) {
    TuneResult result;
    cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
    cr_assert_gt(result.entry_count, 3);
    for (int i = 0; i < result.candidate_count; i++) {
        const Candidate *candidate = &result.candidates[i];
        cr_assert_neq(candidate->state, CANDIDATE_ESTIMATED);  // the closed form lets lanes overlap
        cr_assert(candidate->state == CANDIDATE_REJECTED ||
                  candidate->tokens_per_s <= result.entries[0].tokens_per_s * (1 + 1e-12));
    }
}
