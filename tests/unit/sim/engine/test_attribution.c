// Where the step's time is charged, on hand-computed schedules; microseconds.

#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/sim/engine/small_program.h"

static void same_us(double actual_s, double expected) {
    cr_assert(fabs(actual_s * 1e6 - expected) < 1e-6, "%.9g us, expected %.9g us", actual_s * 1e6, expected);
}

static int32_t event_of(Small *small, const char *name, int16_t lane) {
    return builder_event(&small->builder, builder_buffer(&small->builder, name, ROLE_ACTIVATION, 1, 256), lane, true);
}

static void same_sum(const EngineResult *result) {
    double sum = result->compute_s + result->optimizer_s + result->overhead_s;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        sum += result->exposed_s[axis];
    }
    cr_assert(fabs(sum - result->step_s) < 1e-15, "%.17g and %.17g", sum, result->step_s);
}

// first 0-3, gather 0-10, second 10-14: compute 7, exposed 3..10 = 7 on the slowest axis of the group.
Test(attribution, waiting_for_a_collective_is_charged_to_its_slowest_axis) {
    const struct {
        AxisMask axes;
        Axis axis;
    } cases[] = {{AXES_SHARD_GROUP, AXIS_DP_SHARD},
                 {AXIS_BIT(AXIS_CP), AXIS_CP},
                 {AXIS_BIT(AXIS_TP), AXIS_TP},
                 {AXIS_BIT(AXIS_DP_REPLICATE), AXIS_DP_REPLICATE}};
    for (int i = 0; i < 4; i++) {
        Small small;
        small_begin(&small, 1, true, cases[i].axes);
        const int32_t event = event_of(&small, "weights", small.ag);
        small_collective(&small, "gather", small.ag, 10, 0);
        builder_record(&small.builder, event, 0, 0);
        small_kernel(&small, "first", 3);
        small_kernel(&small, "second", 4);
        builder_wait(&small.builder, event, 0, 0);
        const EngineResult result = small_run(&small, (EngineOptions){0});
        same_us(result.compute_s, 7);
        same_us(result.exposed_s[cases[i].axis], 7);
        same_us(result.overhead_s, 0);
        same_sum(&result);
        small_end(&small);
    }
}

// The gather is issued at 4 and runs 4-10: idle 0-4 is the host's, 4-10 the gather's; then the kernel, issued at 8.
Test(attribution, a_collective_that_waited_for_the_host_shares_the_blame_with_it) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    const int32_t event = event_of(&small, "weights", small.ag);
    small_collective(&small, "gather", small.ag, 6, 0);
    small_last_cost(&small)->host_s = 4e-6;
    builder_record(&small.builder, event, 0, 0);
    small_kernel(&small, "work", 4);
    small_last_cost(&small)->host_s = 4e-6;
    builder_wait(&small.builder, event, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(result.compute_s, 4);
    same_us(result.overhead_s, 4);
    same_us(result.exposed_s[AXIS_DP_SHARD], 6);
    same_sum(&result);
    small_end(&small);
}

// gather 0-1, kernel issued at 2, runs 2-3: 0-1 is the gather's, 1-2 the host's.
Test(attribution, after_the_collective_the_host_is_to_blame) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    const int32_t event = event_of(&small, "weights", small.ag);
    small_collective(&small, "gather", small.ag, 1, 0);
    builder_record(&small.builder, event, 0, 0);
    small_kernel(&small, "work", 1);
    small_last_cost(&small)->host_s = 2e-6;
    builder_wait(&small.builder, event, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(result.compute_s, 1);
    same_us(result.exposed_s[AXIS_DP_SHARD], 1);
    same_us(result.overhead_s, 1);
    same_sum(&result);
    small_end(&small);
}

Test(attribution, a_tail_after_the_last_kernel_belongs_to_the_collective_that_ends_last) {
    Small small;
    small_begin(&small, 1, false, AXES_SHARD_GROUP);
    const int32_t done = event_of(&small, "gradient", small.compute);
    small_kernel(&small, "work", 5);
    builder_record(&small.builder, done, 0, 0);
    small_collective(&small, "scatter", small.rs, 8, 0);
    builder_wait(&small.builder, done, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(result.compute_s, 5);
    same_us(result.exposed_s[AXIS_DP_SHARD], 8);
    same_sum(&result);
    small_end(&small);
}

Test(attribution, the_optimizer_phase_and_control_scalars_have_their_own_terms) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    const int32_t norm = event_of(&small, "norm", small.compute), all = event_of(&small, "all", small.ctl);
    small_kernel(&small, "work", 5);
    builder_record(&small.builder, norm, 0, 0);
    small_collective(&small, "norm", small.ctl, 2, 0);
    builder_wait(&small.builder, norm, 0, 0);
    builder_record(&small.builder, all, 0, 0);
    small_kernel(&small, "adamw", 3)->phase = PHASE_OPTIMIZER;
    builder_wait(&small.builder, all, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(result.compute_s, 5);
    same_us(result.overhead_s, 2);
    same_us(result.optimizer_s, 3);
    same_sum(&result);
    small_end(&small);
}

// Slowed by the concurrent collective the kernel is busy 13 instead of 8 (see test_schedule): busy is compute.
Test(attribution, slowed_compute_is_compute) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    small_collective(&small, "gather", small.ag, 10, 0.5);
    small_last_cost(&small)->sm_share = 0.5f;
    small_kernel(&small, "kernel", 8);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(result.compute_s, 13);
    same_us(result.totals[1].seconds, 13);
    same_sum(&result);
    small_end(&small);
}
