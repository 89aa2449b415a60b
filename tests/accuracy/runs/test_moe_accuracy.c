// Published runs of MoE models: no class gets worse than RESULTS.md states. A bound is the stated figure plus a small
// margin.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/base/sorted.h"
#include "sim/frameworks/framework.h"
#include "tests/support/kept_predictions.h"

static Arena arena;
static Accuracy accuracy;

static void score_sample(void) {
    const AccuracyOptions options = {.runs_paths =
                                         (const char *const[]){NDTUNE_SOURCE_DIR "/tests/accuracy/runs/moe.csv", NULL}};
    Error error = {0};
    cr_assert_eq(accuracy_run_once(&options, &arena, &accuracy, &error), STATUS_OK, "%s", error.message);
}

static void forget(void) {
    arena_free(&arena);
}

TestSuite(runs_of_experts, .init = score_sample, .fini = forget);

// Other expert setups: a non-default dispatcher, exchanges overlapping another micro-step, ep combined with tp.
typedef struct Stated {
    const char *target;
    Dtype precision;
    bool other_ways;
    double median, ninetieth;
} Stated;

// Context parallelism apart.
static bool is_of(const RunCase *run, const Stated *stated) {
    const TrainPlan *plan = &run->plan;
    if (plan->mesh.size[AXIS_CP] > 1) {
        return false;
    }
    const bool other = plan->dispatch != DISPATCH_TARGET || plan->ep_overlap ||
                       (plan->mesh.size[AXIS_EP] > 1 && plan->mesh.size[AXIS_TP] > 1);
    return !run->skipped && plan->precision == stated->precision && other == stated->other_ways &&
           strcmp(run->request.target->name, stated->target) == 0;
}

static void check_stated(const Stated *stated) {
    double *errors = ARENA_ARRAY(&arena, double, accuracy.runs.count);
    int n = 0;
    for (int i = 0; i < accuracy.runs.count; i++) {
        const RunCase *run = &accuracy.cases[i];
        if (is_of(run, stated)) {
            errors[n++] = fabs(accuracy_step_error(run));
        }
    }
    cr_assert_gt(n, 0, "%s", stated->target);
    sorted_doubles(errors, n);
    cr_expect_leq(errors[n / 2], stated->median, "%s: %.3f", stated->target, errors[n / 2]);
    cr_expect_leq(errors[n * 9 / 10], stated->ninetieth, "%s: %.3f", stated->target, errors[n * 9 / 10]);
}

// Recorded anew on 2026-11-28 (RESULTS.md): Megatron's have the loss that its recipes run, 0.05, 0.04 and 0.156 before;
// torchtitan's were 0.286, 0.316 and 0.24, 0.334 while its eager RMSNorm was priced as a chain, which it is not since
// PyTorch 2.9, and its traced graphs' collectives as hidden. torchtitan's second was 0.295 until 2026-11-29:
// traffic of attention as separate operations is not slower on slow chips. Megatron's, since its host's parameters and
// collectives are counted and mxfp8's products have their own rate: 0.051, 0.08, 0.048, 0.142, 0.48, 0.08 and 0.16
// before; the first is now that of GPT-OSS on GB300, too slow by 0.1 points more. Since a call for each expert costs
// the host what was measured: 0.052, 0.03, 0.28, 0.055 and 0.135 before.
Test(runs_of_experts, step_times_are_within_the_stated_errors) {
    static const Stated stated[] = {
        {"megatron", DTYPE_BF16, false, 0.048, 0.06},   {"megatron", DTYPE_BF16, true, 0.046, 0.046},
        {"megatron", DTYPE_FP8, false, 0.025, 0.24},    {"megatron", DTYPE_FP8, true, 0.053, 0.125},
        {"torchtitan", DTYPE_BF16, false, 0.21, 0.345}, {"torchtitan", DTYPE_BF16, true, 0.297, 0.305},
        {"torchtitan", DTYPE_FP8, false, 0.145, 0.145}};
    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        check_stated(&stated[i]);
    }
}

// One row, of torchtitan: -0.344 when first predicted.
Test(runs_of_experts, context_parallelism_of_latent_attention_is_no_further_off_than_when_first_predicted) {
    int n = 0;
    for (int i = 0; i < accuracy.runs.count; i++) {
        const RunCase *run = &accuracy.cases[i];
        if (!run->skipped && run->plan.mesh.size[AXIS_CP] > 1) {
            cr_expect_leq(fabs(accuracy_step_error(run)), 0.345, "%s", run->row->id);
            n++;
        }
    }
    cr_expect_eq(n, 1);
}

Test(runs_of_experts, what_is_said_of_each_framework_is_what_the_runs_say) {
    static const char *const names[] = {"megatron", "torchtitan"};
    for (size_t f = 0; f < sizeof names / sizeof names[0]; f++) {
        const MeasuredExperts *said = &framework_of(names[f])->experts;
        double *errors = ARENA_ARRAY(&arena, double, accuracy.runs.count);
        double *sizes = ARENA_ARRAY(&arena, double, accuracy.runs.count);
        int n = 0;
        for (int i = 0; i < accuracy.runs.count; i++) {
            if (!accuracy.cases[i].skipped && strcmp(accuracy.cases[i].request.target->name, names[f]) == 0) {
                errors[n] = accuracy_step_error(&accuracy.cases[i]);
                sizes[n] = fabs(errors[n]);
                n++;
            }
        }
        cr_assert_eq(n, said->runs, "%s: %d", names[f], n);
        sorted_doubles(errors, n);
        sorted_doubles(sizes, n);
        cr_expect_float_eq(errors[n / 2], said->bias, 0.01, "%s: bias %.3f", names[f], errors[n / 2]);
        cr_expect_float_eq(sizes[n / 2], said->error, 0.01, "%s: error %.3f", names[f], sizes[n / 2]);
    }
}
