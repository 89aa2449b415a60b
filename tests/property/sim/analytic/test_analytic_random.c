// The analytic estimate compared with the engine and the memory breakdown on random plans. NDTUNE_SEED repeats a run.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/analytic/analytic.h"
#include "sim/base/sorted.h"
#include "sim/engine/engine.h"
#include "tests/property/sim/engine/random_request.h"

enum { PLANS = 600, PLANS_PER_REQUEST = 4 };

static void print_distribution(const char *what, double *errors, int count) {
    sorted_doubles(errors, count);
    fprintf(stderr, "%s over %d plans: median %.3f %%, 90th %.3f %%, 99th %.3f %%, largest %.3f %%\n", what, count,
            100 * errors[count / 2], 100 * errors[count * 9 / 10], 100 * errors[count * 99 / 100],
            100 * errors[count - 1]);
}

typedef struct Case {
    const RandomRequest *request;
    const CostModel *cost;
    Analytic *analytic;
    Arena *arena;
    TrainPlan plan;
} Case;

typedef double (*CaseError)(const Case *one);

enum { WORST_TEXT_BYTES = PLAN_TEXT_BYTES + 128 };

static void case_text(const Case *one, char out[WORST_TEXT_BYTES]) {
    char plan[PLAN_TEXT_BYTES];
    plan_text(&one->plan, plan);
    snprintf(out, WORST_TEXT_BYTES, "%s@%s, %d layers: %s", one->request->target->name, one->request->target->version,
             one->request->model.layers, plan);
}

// One error per plan; *worst: what the plan that has the largest is.
static void measure(const char *name, CaseError error_of, double *errors, char worst[WORST_TEXT_BYTES]) {
    Random random = random_begin(name);
    double largest = -1;
    int count = 0;
    while (count < PLANS) {
        Arena arena = {0};
        const RandomRequest request = random_request(&random, &arena);
        const CostModel cost = {.profile = &request.profile, .target = request.target};
        Case one = {.request = &request,
                    .cost = &cost,
                    .arena = &arena,
                    .analytic = analytic_new(&request.model, &cost, &arena)};
        for (int i = 0; i < PLANS_PER_REQUEST && count < PLANS; i++) {
            if (!random_plan(&random, &request, &arena, &one.plan)) {
                continue;
            }
            errors[count] = error_of(&one);
            if (errors[count] > largest) {
                largest = errors[count];
                case_text(&one, worst);
            }
            count++;
        }
        analytic_free(one.analytic);
        arena_free(&arena);
    }
}

static StepProgram lower(const Case *one) {
    StepProgram program;
    Error error = {0};
    cr_assert_eq(step_lower(&one->request->model, &one->plan, one->request->target, one->arena, &program, &error),
                 STATUS_OK, "%s", error.message);
    return program;
}

static Estimate estimate_of(const Case *one, const TrainPlan *plan) {
    Estimate estimate;
    Error error = {0};
    cr_assert_eq(analytic_estimate(one->analytic, plan, &estimate, &error), STATUS_OK, "%s", error.message);
    return estimate;
}

static double time_error(const Case *one) {
    analytic_ignore_contention(one->analytic);
    const StepProgram program = lower(one);
    EngineResult result;
    Error error = {0};
    cr_assert_eq(engine_run(&program, one->cost, &(EngineOptions){.no_contention = true}, one->arena, &result, &error),
                 STATUS_OK);
    return fabs(estimate_of(one, &one->plan).step_s / result.step_s - 1);
}

Test(analytic_random, step_time_is_within_3_percent_of_the_engine_where_nothing_contends) {
    static double errors[PLANS];
    char worst[WORST_TEXT_BYTES];
    measure("time", time_error, errors, worst);
    print_distribution("step time", errors, PLANS);
    cr_assert_lt(errors[PLANS - 1], 0.03, "%s", worst);
    cr_assert_lt(errors[PLANS / 2], 0.001, "the usual plan is much closer");
}

// The memory of another plan is asked for first: this one is then read from planes that were made for that one.
static double memory_error(const Case *one) {
    TrainPlan cousin = one->plan;
    cousin.micro_batch *= 2;
    cousin.mesh.size[AXIS_DP_SHARD] *= one->plan.zero > 0 ? 4 : 1;
    cousin.mesh.order = (AxisOrder){0};
    estimate_of(one, &cousin);
    const StepProgram program = lower(one);
    MemoryBreakdown breakdown;
    Error error = {0};
    cr_assert_eq(memory_breakdown(&program, one->arena, &breakdown, &error), STATUS_OK, "%s", error.message);
    const Estimate estimate = estimate_of(one, &one->plan);
    cr_assert(fabs(estimate.reserved_bytes / breakdown.reserved_bytes - 1) <=
              fabs(estimate.peak_bytes / breakdown.peak_bytes - 1) + 1e-9);
    return fabs(estimate.peak_bytes / breakdown.peak_bytes - 1);
}

Test(analytic_random, memory_is_within_2_percent_of_the_breakdown) {
    static double errors[PLANS];
    char worst[WORST_TEXT_BYTES];
    measure("memory", memory_error, errors, worst);
    print_distribution("memory", errors, PLANS);
    cr_assert_lt(errors[PLANS - 1], 0.02, "%s", worst);
}

// 0 when the terms are not negative and sum to the step.
static double terms_error(const Case *one) {
    const Estimate estimate = estimate_of(one, &one->plan);
    double sum = estimate.compute_s + estimate.optimizer_s + estimate.overhead_s;
    double least = fmin(estimate.compute_s, fmin(estimate.optimizer_s, estimate.overhead_s));
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        sum += estimate.exposed_s[axis];
        least = fmin(least, estimate.exposed_s[axis]);
    }
    return fabs(sum / estimate.step_s - 1) + fmax(0, -least / estimate.step_s);
}

Test(analytic_random, the_terms_sum_to_the_step_and_none_is_negative) {
    static double errors[PLANS];
    char worst[WORST_TEXT_BYTES];
    measure("terms", terms_error, errors, worst);
    print_distribution("terms", errors, PLANS);
    cr_assert_lt(errors[PLANS - 1], 1e-9, "%s", worst);
}
