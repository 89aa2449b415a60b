// Schedules small enough to compute by hand; times in microseconds.

#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/sim/engine/small_program.h"

static void same_us(double actual, double expected) {
    cr_assert(fabs(actual - expected) < 1e-6, "%.9g us, expected %.9g us", actual, expected);
}

static int32_t event_of(Small *small, const char *name, int slots, int16_t lane) {
    return builder_event(&small->builder, builder_buffer(&small->builder, name, ROLE_ACTIVATION, slots, 256), lane,
                         true);
}

// gather 0-10 on ag; first 0-3; second waits for the gather: 10-14.
Test(schedule, a_task_starts_when_its_lane_is_free_and_its_events_have_happened) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    const int32_t event = event_of(&small, "weights", 1, small.ag);
    small_collective(&small, "gather", small.ag, 10, 0);
    builder_record(&small.builder, event, 0, 0);
    small_kernel(&small, "first", 3);
    small_kernel(&small, "second", 4);
    builder_wait(&small.builder, event, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(small_start_us(&small, &result, "gather"), 0);
    same_us(small_start_us(&small, &result, "first"), 0);
    same_us(small_start_us(&small, &result, "second"), 10);
    same_us(result.step_s * 1e6, 14);
    small_end(&small);
}

// The kernel is issued between the two gathers: it waits for the first (5), not for the second (10).
Test(schedule, a_wait_means_the_latest_record_issued_before) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    const int32_t event = event_of(&small, "weights", 1, small.ag);
    small_collective(&small, "one", small.ag, 5, 0);
    builder_record(&small.builder, event, 0, 0);
    small_kernel(&small, "kernel", 1);
    builder_wait(&small.builder, event, 0, 0);
    small_collective(&small, "two", small.ag, 5, 0);
    builder_record(&small.builder, event, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(small_start_us(&small, &result, "kernel"), 5);
    small_end(&small);
}

Test(schedule, an_event_that_was_never_recorded_holds_nobody_back) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    const int32_t event = event_of(&small, "weights", 1, small.ag);
    small_kernel(&small, "kernel", 1);
    builder_wait(&small.builder, event, 0, 0);
    small_collective(&small, "late", small.ag, 5, 0);
    builder_record(&small.builder, event, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(small_start_us(&small, &result, "kernel"), 0);
    small_end(&small);
}

// One communicator: gather 0-5, then scatter 5-12 in issue order although both could start at 0; own ones: both at 0.
Test(schedule, collectives_of_one_communicator_follow_one_another) {
    for (int shared = 0; shared < 2; shared++) {
        Small small;
        small_begin(&small, 1, shared, AXES_SHARD_GROUP);
        small_collective(&small, "gather", small.ag, 5, 0);
        small_collective(&small, "scatter", small.rs, 7, 0);
        small_collective(&small, "again", small.ag, 1, 0);
        const EngineResult result = small_run(&small, (EngineOptions){0});
        same_us(small_start_us(&small, &result, "scatter"), shared ? 5 : 0);
        same_us(small_start_us(&small, &result, "again"), shared ? 12 : 5);
        small_end(&small);
    }
}

// Host: 4 us per task. Issued at 4, 8, 12: the kernels of 1 us run 4-5, 8-9, 12-13.
Test(schedule, no_task_starts_before_the_host_has_issued_it) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    const char *names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        small_kernel(&small, names[i], 1);
        small_last_cost(&small)->host_s = 4e-6;
    }
    const EngineResult result = small_run(&small, (EngineOptions){0});
    for (int i = 0; i < 3; i++) {
        same_us(small_start_us(&small, &result, names[i]), 4 * (i + 1));
    }
    same_us(result.step_s * 1e6, 13);
    small_end(&small);
}

// Both want the whole NIC. 0-8: half rate each, gather has done 4 of 4 -> ends 8; scatter has done 4 of 10, the rest
// alone: 14.
Test(schedule, concurrent_collectives_share_a_link) {
    Small small;
    small_begin(&small, 1, false, AXES_SHARD_GROUP);
    small_collective(&small, "gather", small.ag, 4, 1);
    small_collective(&small, "scatter", small.rs, 10, 1);
    EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(small_end_us(&small, &result, "gather"), 8);
    same_us(small_end_us(&small, &result, "scatter"), 14);
    result = small_run(&small, (EngineOptions){.no_contention = true});
    same_us(small_end_us(&small, &result, "gather"), 4);
    same_us(small_end_us(&small, &result, "scatter"), 10);
    small_end(&small);
}

// The collective takes half of the SMs for 10 us: of the kernel's 8 us, 5 are done by then, the other 3 alone: 13.
Test(schedule, a_kernel_is_slower_only_while_a_collective_runs) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    small_collective(&small, "gather", small.ag, 10, 0.5);
    small_last_cost(&small)->sm_share = 0.5f;
    small_kernel(&small, "kernel", 8);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(small_end_us(&small, &result, "gather"), 10);
    same_us(small_end_us(&small, &result, "kernel"), 13);
    small_end(&small);
}

// collective_slowdown 2: from 0 to 6, overlapping the kernel, the gather does 3 of 5, the rest alone: 8.
Test(schedule, a_collective_is_slower_only_while_a_kernel_runs) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    small.interference.collective_slowdown = 2;
    small_collective(&small, "gather", small.ag, 5, 0.5);
    small_kernel(&small, "kernel", 6);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(small_end_us(&small, &result, "kernel"), 6);
    same_us(small_end_us(&small, &result, "gather"), 8);
    small_end(&small);
}

// Prefetch over layers: gather(l+1) is issued before layer l and writes slot (l+1) mod 2, so it waits for layer l-1.
// gather 3, layer 5: gathers 0-3, 3-6, then with the layers: layer0 3-8, layer1 8-13, gather2 8-11, layer2 13-18.
Test(schedule, layer_indexed_events_order_a_prefetch) {
    Small small;
    small_begin(&small, 3, true, AXES_SHARD_GROUP);
    const int32_t gathered = event_of(&small, "weights", 2, small.ag);
    const int32_t used = event_of(&small, "weights read", 2, small.compute);
    small_collective(&small, "gather 0", small.ag, 3, 0);
    builder_record(&small.builder, gathered, 0, 0);
    builder_loop(&small.builder, SEGMENT_LAYERS, "forward", 0, 3, 1);
    small_collective(&small, "gather next", small.ag, 3, 0)->layer_guard = 1;
    builder_wait(&small.builder, used, 1, 1);
    builder_record(&small.builder, gathered, 1, 1);
    small_kernel(&small, "layer", 5);
    builder_wait(&small.builder, gathered, 1, 0);
    builder_record(&small.builder, used, 1, 0);
    builder_end(&small.builder);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(result.step_s * 1e6, 18);
    cr_assert_eq(result.totals[1].count, 2, "the guard closes the gather of the last layer");
    cr_assert_eq(result.totals[2].count, 3);
    const double expected[][2] = {{0, 3}, {3, 6}, {3, 8}, {8, 11}, {8, 13}, {13, 18}};
    cr_assert_eq(result.timeline.span_count, 6);
    for (int i = 0; i < 6; i++) {
        same_us(result.timeline.spans[i].start_s * 1e6, expected[i][0]);
        same_us(result.timeline.spans[i].end_s * 1e6, expected[i][1]);
    }
    small_end(&small);
}

Test(schedule, tasks_of_no_length_pass_within_an_instant) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    const int32_t event = event_of(&small, "weights", 1, small.ag);
    small_kernel(&small, "work", 2);
    const int32_t done = event_of(&small, "done", 1, small.compute);
    builder_record(&small.builder, done, 0, 0);
    small_collective(&small, "nothing", small.ag, 0, 0);
    builder_wait(&small.builder, done, 0, 0);
    builder_record(&small.builder, event, 0, 0);
    small_kernel(&small, "rest", 3);
    builder_wait(&small.builder, event, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(small_start_us(&small, &result, "rest"), 2);
    same_us(result.step_s * 1e6, 5);
    small_end(&small);
}

Test(schedule, the_fixed_time_of_a_step_is_added_once) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    small.step_fixed_s = 7e-6;
    small_kernel(&small, "work", 2);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(result.step_s * 1e6, 9);
    same_us(result.overhead_s * 1e6, 7);
    small_end(&small);
}

Test(schedule, a_cost_that_is_no_time_is_an_error) {
    Small small;
    small_begin(&small, 1, true, AXES_SHARD_GROUP);
    small_kernel(&small, "work", -1);
    const StepProgram *program = builder_program(&small.builder);
    const EngineCosts costs = {.tasks = small.costs};
    EngineResult result;
    Error error = {0};
    cr_assert_eq(engine_run_costs(program, &costs, &(EngineOptions){0}, &small.arena, &result, &error),
                 STATUS_INTERNAL);
    cr_assert(strstr(error.message, "work"), "%s", error.message);
    small_end(&small);
}

// A gather and a replica sum that each fill the uplink but a quarter of the NICs; the scatter needs the NICs only.
// Until 20 the first two have half of the uplink each, and the scatter its 0.7 of the NICs next to their quarter.
Test(schedule, different_collectives_across_an_uplink_slow_each_other) {
    Small small;
    small_begin(&small, 1, false, AXES_SHARD_GROUP);
    small.interference = (Interference){.hbm_factor = 1, .collective_slowdown = 1, .residue = 1};
    small_collective(&small, "gather", small.ag, 10, 0.25);
    small_last_cost(&small)->use[RESOURCE_UPLINK] = 1;
    small_collective(&small, "sum", LANE_REP, 10, 0.25);
    small_last_cost(&small)->use[RESOURCE_UPLINK] = 1;
    small_collective(&small, "scatter", small.rs, 12, 0.7);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    same_us(small_end_us(&small, &result, "gather"), 20);
    same_us(small_end_us(&small, &result, "sum"), 20);
    same_us(small_end_us(&small, &result, "scatter"), 12);
    small_end(&small);
}

// Behind an exchange from 4 to 9 the host needs 1 us for a gather that waits for nothing else.
Test(schedule, other_lanes_begin_what_a_host_issues_once_the_task_it_waits_for_has_started) {
    static const double begins_us[] = {[HOST_GOES_ON] = 1, [HOST_WAITS_FOR_START] = 5, [HOST_WAITS_FOR_END] = 10};
    for (int stop = HOST_GOES_ON; stop <= HOST_WAITS_FOR_END; stop++) {
        Small small;
        small_begin(&small, 1, false, AXES_SHARD_GROUP);
        small_kernel(&small, "order", 4);
        const int32_t ordered = builder_event(
            &small.builder, builder_buffer(&small.builder, "x", ROLE_ACTIVATION, 1, 256), small.compute, true);
        builder_record(&small.builder, ordered, 0, 0);
        small_collective(&small, "dispatch", small.rs, 5, 0);
        builder_wait(&small.builder, ordered, 0, 0);
        small_last_cost(&small)->host_stop = (HostStop)stop;
        small_collective(&small, "gather", small.ag, 3, 0);
        small_last_cost(&small)->host_s = 1e-6;
        const EngineResult result = small_run(&small, (EngineOptions){0});
        same_us(small_start_us(&small, &result, "gather"), begins_us[stop]);
        small_end(&small);
    }
}

// 4 us beside which the next two are issued: the second one from 5 to 10. The host needs 7 for the third, from 2 on, or
// from where the second begins or ends.
Test(schedule, a_host_that_waits_for_a_task_issues_the_next_one_later) {
    static const double begins_us[] = {[HOST_GOES_ON] = 10, [HOST_WAITS_FOR_START] = 12, [HOST_WAITS_FOR_END] = 17};
    for (int stop = HOST_GOES_ON; stop <= HOST_WAITS_FOR_END; stop++) {
        Small small;
        small_begin(&small, 1, true, AXES_SHARD_GROUP);
        small_kernel(&small, "order", 4);
        small_last_cost(&small)->host_s = 1e-6;
        small_kernel(&small, "counts", 5);
        small_last_cost(&small)->host_s = 1e-6;
        small_last_cost(&small)->host_stop = (HostStop)stop;
        small_kernel(&small, "send", 3);
        small_last_cost(&small)->host_s = 7e-6;
        const EngineResult result = small_run(&small, (EngineOptions){0});
        same_us(small_start_us(&small, &result, "counts"), 5);
        same_us(small_start_us(&small, &result, "send"), begins_us[stop]);
        small_end(&small);
    }
}
