// What a plan's time depends on: signs, what cannot matter, whole numbers, and that the numbers match predict.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "autotune/explain/sensitivity.h"
#include "autotune/predict/predict.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static TuneRequest request;
static TrainPlan plan;
static Sensitivities all;
static Error error;

static void begin(void) {
    request = request_for(&arena, 16, "7b", "dgx-h100", "accelerate");
    request.threads = 1;
    plan = (TrainPlan){.mesh = {.size = SIZES(1, 16, 1, 1)},
                       .seq = 4096,
                       .micro_batch = 1,
                       .grad_accum = 4,
                       .zero = 3,
                       .recompute = RECOMPUTE_FULL,
                       .precision = DTYPE_BF16,
                       .attention = request.target->default_attention,
                       .fused = request.target->default_fused};
    plan_canonical(&plan);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(sensitivity, .init = begin, .fini = end);

static void ask(void) {
    cr_assert_eq(sensitivity_run(&request, &plan, NULL, &all, &error), STATUS_OK, "%s", error.message);
}

static const Sensitivity *row_of(const char *name) {
    for (int i = 0; i < all.count; i++) {
        if (strcmp(all.rows[i].name, name) == 0) {
            return &all.rows[i];
        }
    }
    return NULL;
}

static const Sensitivity *known(const char *name) {
    const Sensitivity *row = row_of(name);
    cr_assert_not_null(row, "%s was not asked", name);
    return row;
}

static double seconds_per_token(const TrainPlan *of) {
    Prediction prediction;
    Predictor predictor;
    predictor_init(&predictor, &request, NULL);
    cr_assert_eq(predict_plan(&predictor, of, false, &arena, &prediction, &error), STATUS_OK, "%s", error.message);
    predictor_free(&predictor);
    return prediction.step_s / (double)plan_tokens_per_step(of);
}

Test(sensitivity, faster_hardware_never_takes_longer) {
    static const char *const rates[] = {"gemm_rate", "attention_rate", "memory_bandwidth", "fabric_bandwidth"};
    ask();
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        const Sensitivity *row = known(rates[i]);
        cr_expect_geq(row->less.change, 0, "%s", rates[i]);
        cr_expect_leq(row->more.change, 0, "%s", rates[i]);
    }
    cr_expect_gt(known("gemm_rate")->less.change, 0.05);
}

Test(sensitivity, what_moves_most_comes_first) {
    ask();
    cr_assert_gt(all.count, 5);
    for (int i = 1; i < all.count; i++) {
        const Sensitivity *before = &all.rows[i - 1], *row = &all.rows[i];
        cr_expect_geq(fmax(fabs(before->less.change), fabs(before->more.change)),
                      fmax(fabs(row->less.change), fabs(row->more.change)));
    }
}

Test(sensitivity, a_world_within_a_node_does_not_hang_on_the_network) {
    request.world = plan.mesh.size[AXIS_DP_SHARD] = 8;
    ask();
    cr_expect_eq(known("fabric_bandwidth")->less.change, 0);
    cr_expect_eq(known("fabric_bandwidth")->more.change, 0);
}

Test(sensitivity, the_numbers_are_those_of_predict) {
    ask();
    const double before = seconds_per_token(&plan);
    TrainPlan longer = plan;
    longer.seq = 4928;  // 77 * 64, nearest to 1.2 * 4096
    cr_expect_float_eq(known("sequence")->more.factor, 4928.0 / 4096, 1e-12);
    cr_expect_float_eq(known("sequence")->more.change, seconds_per_token(&longer) / before - 1, 1e-12);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        request.cluster.accelerator.gemm[dtype].burst_flop_per_s *= 0.8;
        request.cluster.accelerator.gemm[dtype].sustained_flop_per_s *= 0.8;
    }
    cr_expect_float_eq(known("gemm_rate")->less.change, seconds_per_token(&plan) / before - 1, 1e-12);
}

Test(sensitivity, accumulation_moves_by_whole_micro_batches_and_few_are_not_asked) {
    ask();
    cr_expect_eq(known("accumulation")->less.factor, 0.75);
    cr_expect_eq(known("accumulation")->more.factor, 1.25);
    plan.grad_accum = 2;
    ask();
    cr_expect_null(row_of("accumulation"));
}

Test(sensitivity, a_sequence_that_cannot_be_cut_is_not_asked) {
    plan.mesh.size[AXIS_DP_SHARD] = plan.mesh.size[AXIS_CP] = 4;
    plan.seq = 56;  // in 8 chunks; 45 and 67 are not
    ask();
    cr_expect_null(row_of("sequence"));
}
