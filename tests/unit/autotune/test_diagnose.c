// A step time with a single cause is explained by that cause, with the slowdown that produced it.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "autotune/explain/diagnose.h"
#include "autotune/explain/sensitivity.h"
#include "autotune/predict/predict.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static TuneRequest request;
static Prediction sound;
static Diagnosis diagnosis;
static Error error;

static void begin(void) {
    request = request_for(&arena, 16, "llama-3-8b", "dgx-h100", "torchtitan");
    request.threads = 1;
    TrainPlan plan = {.mesh = {.size = SIZES(1, 16, 1, 1)},
                      .seq = 8192,
                      .micro_batch = 1,
                      .grad_accum = 4,
                      .zero = 3,
                      .recompute = RECOMPUTE_SELECTIVE,
                      .precision = DTYPE_BF16,
                      .attention = request.target->default_attention,
                      .fused = request.target->default_fused};
    plan_canonical(&plan);
    cr_assert_eq(predict_once(&request, NULL, &plan, &arena, &sound, &error), STATUS_OK, "%s", error.message);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(diagnose, .init = begin, .fini = end);

static void ask(double measured_s) {
    cr_assert_eq(diagnose(&request, &sound, measured_s, NULL, &diagnosis, &error), STATUS_OK, "%s", error.message);
}

static const Cause *cause_of(const char *name) {
    for (int i = 0; i < diagnosis.cause_count; i++) {
        if (strcmp(diagnosis.causes[i].name, name) == 0) {
            return &diagnosis.causes[i];
        }
    }
    cr_assert_fail("no cause %s", name);
    return NULL;
}

static double step_with(const char *parameter, double factor) {
    TuneRequest slow = request;
    Target target = *request.target;
    Prediction prediction;
    slow.target = &target;
    cr_assert(sensitivity_scale(parameter, factor, &slow.cluster, &target.runtime, &arena));
    cr_assert_eq(predict_once(&slow, NULL, &sound.plan, &arena, &prediction, &error), STATUS_OK, "%s", error.message);
    return prediction.step_s;
}

Test(diagnose, the_cause_that_made_the_time_is_found_with_its_size) {
    ask(step_with("gemm_rate", 1 / 1.7));
    cr_expect_float_eq(cause_of("matrix products")->slowness, 1.7, 0.05);
    ask(step_with("fabric_bandwidth", 1 / 20.0));
    cr_expect_float_eq(cause_of("network between nodes")->slowness, 20, 0.6);
    cr_expect_not(diagnosis.within);
}

Test(diagnose, what_explains_comes_first_and_the_least_deviation_of_it) {
    ask(1.8 * sound.step_s);
    cr_assert_geq(diagnosis.cause_count, 2);
    for (int i = 1; i < diagnosis.cause_count; i++) {
        const Cause *before = &diagnosis.causes[i - 1], *after = &diagnosis.causes[i];
        cr_expect(before->slowness > 0 || after->slowness == 0);
        cr_expect(after->slowness == 0 || before->slowness <= after->slowness);
    }
    cr_expect_str_eq(diagnosis.causes[0].name, "one slow rank");
}

Test(diagnose, a_config_that_recomputes_more_is_suspected) {
    TrainPlan plan = sound.plan;
    Prediction prediction;
    plan.recompute = RECOMPUTE_FULL;
    plan_canonical(&plan);
    cr_assert_eq(predict_once(&request, NULL, &plan, &arena, &prediction, &error), STATUS_OK, "%s", error.message);
    ask(prediction.step_s);
    cr_assert_geq(diagnosis.suspect_count, 1);
    cr_expect_str_eq(diagnosis.suspects[0].choice, "recompute full");
}

Test(diagnose, the_time_of_a_micro_step_is_known_as_such) {
    ask(sound.step_s / 4);
    cr_expect(diagnosis.micro_step);
    cr_expect_eq(diagnosis.cause_count, 0);
    ask(sound.step_s);
    cr_expect_not(diagnosis.micro_step);
    cr_expect(diagnosis.within);
}

Test(diagnose, a_step_of_several_micro_batches_is_known_as_such) {
    TrainPlan plan = sound.plan;
    plan.grad_accum = 1;
    cr_assert_eq(predict_once(&request, NULL, &plan, &arena, &sound, &error), STATUS_OK, "%s", error.message);
    ask(8.2 * sound.step_s);
    cr_expect_eq(diagnosis.micro_batches, 8);
    ask(1.5 * sound.step_s);
    cr_expect_eq(diagnosis.micro_batches, 0);
}
