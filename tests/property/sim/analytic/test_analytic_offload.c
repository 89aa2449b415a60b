// The estimate of plans that move what layers save to the host and back, compared with the engine, over links of all
// speeds. NDTUNE_SEED repeats a run.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/analytic/analytic.h"
#include "sim/engine/engine.h"
#include "tests/property/sim/engine/random_program.h"
#include "tests/support/sizes.h"

enum { PLANS = 60 };

typedef struct Case {
    Arena arena;
    ModelSpec model;
    ClusterProfile profile;
    Target target;
    CostModel cost;
    TrainPlan plan;
} Case;

static int drawn(Random *random, const int *values, int count) {
    return values[random_below(random, (uint32_t)count)];
}

#define DRAWN(random, ...) drawn(random, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void draw(Random *random, Case *one) {
    Error error = {0};
    *one = (Case){0};
    cr_assert_eq(model_find("llama-3-8b", &one->arena, &one->model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(cluster_find("dgx-h100", &one->arena, &one->profile, &error), STATUS_OK, "%s", error.message);
    const bool shards = random_below(random, 2) > 0;
    cr_assert_eq(target_find(shards ? "megatron@fsdp" : "megatron", &one->cost.target, &error), STATUS_OK);
    one->target = *one->cost.target;
    one->target.runtime.host_s_per_op = 4e-6;  // a host that is ahead, as it was when collectives cost it 22 us
    one->cost.target = &one->target;
    one->cost.profile = &one->profile;
    one->profile.node.host_link_bytes_per_s = 1e9 * DRAWN(random, 4, 8, 12, 16, 25, 50, 100, 200);
    one->model.layers = DRAWN(random, 2, 3, 8, 32);
    const int tp = DRAWN(random, 1, 2, 4);
    one->plan = (TrainPlan){.mesh = {SIZES(1, 8 / tp, 1, tp)},
                            .seq = DRAWN(random, 2048, 4096, 8192),
                            .micro_batch = DRAWN(random, 1, 2),
                            .grad_accum = DRAWN(random, 1, 2, 3, 8),
                            .zero = shards ? 3 : 1,
                            .precision = DTYPE_BF16,
                            .offload = OFFLOAD_ACTIVATIONS};
    one->plan.offload_layers = 1 + (int)random_below(random, (uint32_t)one->model.layers - 1);
}

static double time_error(Case *one) {
    StepProgram program;
    EngineResult result;
    Estimate estimate;
    Error error = {0};
    Analytic *analytic = analytic_new(&one->model, &one->cost, &one->arena);
    analytic_ignore_contention(analytic);
    cr_assert_eq(step_lower(&one->model, &one->plan, one->cost.target, &one->arena, &program, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert_eq(
        engine_run(&program, &one->cost, &(EngineOptions){.no_contention = true}, &one->arena, &result, &error),
        STATUS_OK, "%s", error.message);
    cr_assert_eq(analytic_estimate(analytic, &one->plan, &estimate, &error), STATUS_OK, "%s", error.message);
    analytic_free(analytic);
    return fabs(estimate.step_s / result.step_s - 1);
}

// A bound of the whole step by all that is copied was up to 38 % short of it: forward does not overlap what backward
// waits for, and two layers of one slot do not overlap at all.
Test(analytic_offload, copies_of_what_layers_save_delay_the_pass_that_they_are_in) {
    Random random = random_begin("offload");
    for (int i = 0; i < PLANS; i++) {
        Case one;
        char text[PLAN_TEXT_BYTES];
        draw(&random, &one);
        plan_text(&one.plan, text);
        const double error = time_error(&one);
        cr_assert_lt(error, 0.02, "%.2f %%: %s@%s, %d layers, %.0f GB/s: %s", 100 * error, one.cost.target->name,
                     one.cost.target->version, one.model.layers, one.profile.node.host_link_bytes_per_s / 1e9, text);
        arena_free(&one.arena);
    }
}

// Its time was up to 4 % short, by what the host needs to issue the copies between the kernels of layers.
Test(analytic_offload, a_host_that_is_behind_is_so_by_the_copies_too) {
    static const double hosts_s[] = {3e-6, 4e-6, 8e-6, 12e-6};  // an operation
    for (size_t i = 0; i < sizeof hosts_s / sizeof *hosts_s; i++) {
        Random random = {1};
        Error error = {0};
        Case one;
        draw(&random, &one);
        cr_assert_eq(target_find("megatron@fsdp", &one.cost.target, &error), STATUS_OK);
        one.target = *one.cost.target;
        one.target.runtime.host_s_per_op = hosts_s[i];
        one.cost.target = &one.target;
        one.profile.node.host_link_bytes_per_s = 200e9;
        one.model.layers = 32;
        one.plan = (TrainPlan){.mesh = {SIZES(1, 2, 1, 4)},
                               .seq = 2048,
                               .micro_batch = 1,
                               .grad_accum = 3,
                               .zero = 3,
                               .precision = DTYPE_BF16,
                               .offload = OFFLOAD_ACTIVATIONS,
                               .offload_layers = 24};
        const double error_of_time = time_error(&one);
        cr_expect_lt(error_of_time, 0.001, "%g us: %.2f %%", 1e6 * hosts_s[i], 100 * error_of_time);
        arena_free(&one.arena);
    }
}
