// A skipped iteration is exactly a simulated one: everything reported equals the unrolled program, with fewer events.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/support/sizes.h"
#include "tests/unit/sim/engine/small_program.h"

typedef struct Shape {
    double gather_us, forward_us, backward_us, scatter_us, host_us;
    bool shared;
    int layers, micro_steps, slots;
} Shape;

static int32_t event_of(Small *small, const char *name, int slots, int16_t lane) {
    return builder_event(&small->builder, builder_buffer(&small->builder, name, ROLE_ACTIVATION, slots, 256), lane,
                         true);
}

static void host_time(Small *small, const Shape *shape) {
    for (int i = 0; i < small->tasks; i++) {
        small->costs[i].host_s = shape->host_us * 1e-6;
    }
}

// One layer's gather (of layer + offset), compute and, backward, scatter, with slots gathered buffers.
static void add_pass(Small *small, const Shape *shape, bool backward) {
    ProgramBuilder *builder = &small->builder;
    const int ahead = backward ? -1 : 1, first = backward ? shape->layers - 1 : 0;
    const int32_t gathered = event_of(small, "gathered", shape->slots, small->ag);
    const int32_t used = event_of(small, "used", shape->slots, small->compute);
    const int32_t gradient = event_of(small, "gradient", shape->slots, small->compute);
    const int32_t reduced = event_of(small, "reduced", shape->slots, small->rs);
    small_collective(small, "first gather", small->ag, shape->gather_us, 0.75);
    builder_record(builder, gathered, 0, first % shape->slots);
    builder_loop(builder, SEGMENT_LAYERS, backward ? "backward" : "forward", first, shape->layers, ahead);
    small_collective(small, "gather", small->ag, shape->gather_us, 0.75)->layer_guard = (int16_t)ahead;
    small_last_cost(small)->sm_share = 0.2f;
    builder_wait(builder, used, 1, ahead);
    builder_record(builder, gathered, 1, ahead);
    small_kernel(small, "layer", backward ? shape->backward_us : shape->forward_us);
    builder_wait(builder, gathered, 1, 0);
    builder_wait(builder, reduced, 1, 0);
    builder_record(builder, used, 1, 0);
    builder_record(builder, gradient, 1, 0);
    if (backward) {
        small_collective(small, "scatter", small->rs, shape->scatter_us, 0.5);
        builder_wait(builder, gradient, 1, 0);
        builder_record(builder, reduced, 1, 0);
    }
    builder_end(builder);
}

static void add_step(Small *small, const Shape *shape) {
    small_begin(small, shape->layers, shape->shared, AXES_SHARD_GROUP);
    small->interference = (Interference){.hbm_factor = 2.5, .collective_slowdown = 1.1, .residue = 1.03};
    small_kernel(small, "load", 1);
    builder_loop(&small->builder, SEGMENT_MICRO_STEPS, "micro-batches", 0, shape->micro_steps, 1);
    small_kernel(small, "embed", 2);
    add_pass(small, shape, false);
    small_kernel(small, "loss", 3);
    add_pass(small, shape, true);
    builder_end(&small->builder);
    small_kernel(small, "adamw", 9)->phase = PHASE_OPTIMIZER;
    host_time(small, shape);
}

static EngineResult same_as_unrolled(const Shape *shape) {
    Small small;
    add_step(&small, shape);
    EngineResult skipped = small_run(&small, (EngineOptions){0});
    const EngineResult whole = small_run(&small, (EngineOptions){.unroll = true});
    cr_assert_eq(skipped.step_s, whole.step_s, "%.17g and %.17g", skipped.step_s, whole.step_s);
    cr_assert_eq(skipped.compute_s, whole.compute_s);
    cr_assert_eq(skipped.optimizer_s, whole.optimizer_s);
    cr_assert_eq(skipped.overhead_s, whole.overhead_s);
    cr_assert_eq(memcmp(skipped.exposed_s, whole.exposed_s, sizeof whole.exposed_s), 0);
    cr_assert_eq(skipped.instances, whole.events);
    cr_assert_eq(whole.events, step_instance_count(&small.builder.program));
    for (int i = 0; i < small.tasks; i++) {
        cr_assert_eq(skipped.totals[i].count, whole.totals[i].count, "task %d", i);
        cr_assert_eq(skipped.totals[i].seconds, whole.totals[i].seconds, "task %d", i);
    }
    cr_assert(whole.timeline.complete);
    cr_assert_eq(skipped.timeline.complete, skipped.events == whole.events);
    const EngineResult again = small_run(&small, (EngineOptions){.unroll = true});
    cr_assert_eq(again.step_s, whole.step_s);
    skipped.timeline.spans = NULL;
    skipped.totals = NULL;
    small_end(&small);
    return skipped;
}

static const Shape compute_bound = {5, 20, 43, 9, 1, true, 40, 30, 2};

Test(repetition, a_compute_bound_step_is_skipped_over) {
    const EngineResult result = same_as_unrolled(&compute_bound);
    cr_assert_lt(result.events * 20, result.instances, "%ld of %ld", (long)result.events, (long)result.instances);
}

Test(repetition, a_communication_bound_step_is_skipped_over) {
    Shape shape = compute_bound;
    shape.gather_us = 31.7;
    shape.scatter_us = 61.3;
    const EngineResult result = same_as_unrolled(&shape);
    cr_assert_lt(result.events * 10, result.instances, "%ld of %ld", (long)result.events, (long)result.instances);
}

Test(repetition, lanes_with_their_own_communicators_are_skipped_over) {
    Shape shape = compute_bound;
    shape.shared = false;
    shape.gather_us = 23;
    const EngineResult result = same_as_unrolled(&shape);
    cr_assert_lt(result.events * 10, result.instances, "%ld of %ld", (long)result.events, (long)result.instances);
}

Test(repetition, a_host_bound_step_is_skipped_over) {
    Shape shape = compute_bound;
    shape.host_us = 50;
    const EngineResult result = same_as_unrolled(&shape);
    cr_assert_lt(result.events * 10, result.instances, "%ld of %ld", (long)result.events, (long)result.instances);
}

Test(repetition, odd_counts_slots_and_depths_give_the_same) {
    for (int layers = 1; layers <= 9; layers++) {
        for (int micro_steps = 1; micro_steps <= 7; micro_steps++) {
            for (int slots = 1; slots <= layers; slots += 2) {
                Shape shape = compute_bound;
                shape.layers = layers;
                shape.micro_steps = micro_steps;
                shape.slots = slots;
                shape.gather_us = 3 + 7 * slots;
                same_as_unrolled(&shape);
            }
        }
    }
}

// The loss is summed over ranks as soon as it exists, which the host issues last: at 10 us, in the first of 60 layers
// of 20 us. The walk need not leave the loop for it; the step ends 5 us after the last layer.
Test(repetition, a_loop_is_skipped_over_though_a_later_task_has_run) {
    Small small;
    small_begin(&small, 60, false, AXES_SHARD_GROUP);
    const int32_t loss = event_of(&small, "loss", 1, small.compute), sum = event_of(&small, "sum", 1, small.ctl);
    small_kernel(&small, "loss", 10);
    builder_record(&small.builder, loss, 0, 0);
    builder_loop(&small.builder, SEGMENT_LAYERS, "layers", 59, 60, -1);
    small_kernel(&small, "layer", 20);
    builder_end(&small.builder);
    small_collective(&small, "loss sum", small.ctl, 5, 0);
    builder_wait(&small.builder, loss, 0, 0);
    builder_record(&small.builder, sum, 0, 0);
    small_kernel(&small, "update", 5);
    builder_wait(&small.builder, sum, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    const EngineResult whole = small_run(&small, (EngineOptions){.unroll = true});
    cr_assert_eq(whole.step_s, result.step_s);
    cr_assert_float_eq(result.step_s, 1215e-6, 1e-12);
    cr_assert_float_eq(small_start_us(&small, &whole, "loss sum"), 10, 1e-9);
    cr_assert_float_eq(small_start_us(&small, &result, "loss sum"), 10, 1e-9);
    cr_assert_eq(result.instances, 63);
    cr_assert_leq(result.events, 12, "%lld", (long long)result.events);
    small_end(&small);
}

// Nothing holds the next micro-step's gathers back but its first layers, which free their two buffers: embedding and
// two layers are gathered while the loop backward repeats. A micro-step computes for 2 + 60 x 10 + 60 x 20
// us, the first waits 5 for the table and 2 for its first layer.
Test(repetition, a_loop_is_skipped_over_though_the_next_micro_step_is_being_gathered) {
    Small small;
    small_begin(&small, 60, false, AXES_SHARD_GROUP);
    const int32_t gathered = event_of(&small, "gathered", 2, small.ag),
                  used = event_of(&small, "used", 2, small.compute);
    const int32_t table = event_of(&small, "table", 1, small.ag), looked_up = event_of(&small, "x", 1, small.compute);
    builder_loop(&small.builder, SEGMENT_MICRO_STEPS, "micro-steps", 0, 12, 1);
    small_collective(&small, "gather table", small.ag, 5, 0);
    builder_wait(&small.builder, looked_up, 0, 0);
    builder_record(&small.builder, table, 0, 0);
    small_kernel(&small, "embed", 2);
    builder_wait(&small.builder, table, 0, 0);
    builder_record(&small.builder, looked_up, 0, 0);
    builder_loop(&small.builder, SEGMENT_LAYERS, "forward", 0, 60, 1);
    small_collective(&small, "gather", small.ag, 4, 0);
    builder_wait(&small.builder, used, 1, 0);
    builder_record(&small.builder, gathered, 1, 0);
    small_kernel(&small, "layer", 10);
    builder_wait(&small.builder, gathered, 1, 0);
    builder_record(&small.builder, used, 1, 0);
    builder_end(&small.builder);
    builder_loop(&small.builder, SEGMENT_LAYERS, "backward", 59, 60, -1);
    small_kernel(&small, "layer backward", 20);
    builder_end(&small.builder);
    builder_end(&small.builder);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    const EngineResult whole = small_run(&small, (EngineOptions){.unroll = true});
    cr_assert_eq(whole.step_s, result.step_s);
    cr_assert_float_eq(result.step_s, (12 * 1802 + 7) * 1e-6, 1e-12);
    cr_assert_eq(result.instances, whole.events);
    cr_assert_leq(result.events, 200, "%lld", (long long)result.events);
    small_end(&small);
}

// Two replicas that meet only after the loop, one 1.5 times slower: each repeats 10 or 15 us by itself, though they
// drift apart; the reduction starts when the slow one is through, at 61 x 15.
Test(repetition, ranks_that_do_not_meet_in_a_loop_repeat_each_by_itself) {
    float slowdown[2] = {1, 1.5f};
    Small small;
    small_begin(&small, 60, false, AXIS_BIT(AXIS_DP_REPLICATE));
    small.builder.program.plan.mesh = (Mesh){.size = SIZES(2, 1, 1, 1)};
    const int32_t x = event_of(&small, "x", 1, small.compute);
    builder_loop(&small.builder, SEGMENT_LAYERS, "layers", 0, 60, 1);
    small_kernel(&small, "layer", 10);
    builder_end(&small.builder);
    small_kernel(&small, "head", 10);
    builder_record(&small.builder, x, 0, 0);
    small_collective(&small, "reduce", small.rs, 5, 0);
    builder_wait(&small.builder, x, 0, 0);
    const EngineResult result = small_run(&small, (EngineOptions){.rank_slowdown = slowdown});
    const EngineResult whole = small_run(&small, (EngineOptions){.rank_slowdown = slowdown, .unroll = true});
    cr_assert_eq(whole.step_s, result.step_s);
    cr_assert_float_eq(result.step_s, 920e-6, 1e-12);
    cr_assert_float_eq(result.compute_s, 915e-6, 1e-12);
    cr_assert_eq(result.instances, 124);
    cr_assert_leq(result.events, 30, "%lld", (long long)result.events);
    small_end(&small);
}

// The host takes 6 us to issue what runs for 5, from a lead of 500 us: it is behind from the 500th on, so that the skip
// ends there and the step is 600 x 6 us of issuing and the last kernel.
Test(repetition, a_shrinking_lead_of_the_host_is_skipped_as_far_as_it_goes) {
    Small small;
    small_begin(&small, 1, false, AXES_SHARD_GROUP);
    small_kernel(&small, "wait", 506);
    small_last_cost(&small)->host_s = 0;
    builder_loop(&small.builder, SEGMENT_MICRO_STEPS, "micro-batches", 0, 600, 1);
    small_kernel(&small, "layer", 5);
    small_last_cost(&small)->host_s = 6e-6;
    builder_end(&small.builder);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    const EngineResult whole = small_run(&small, (EngineOptions){.unroll = true});
    cr_assert_eq(whole.step_s, result.step_s);
    cr_assert_float_eq(result.step_s, 3605e-6, 1e-12);
    cr_assert_eq(result.instances, 601);
    cr_assert_leq(result.events, 40);
    small_end(&small);
}

// In each of 600 layers the host waits for a kernel of 10 us, which it issues in 1, then issues in 4 what runs for 7:
// 21 us each, the next first kernel being issued beside it, behind the first issue.
Test(repetition, a_host_that_waits_for_the_device_in_each_iteration_is_skipped) {
    Small small;
    small_begin(&small, 1, false, AXES_SHARD_GROUP);
    builder_loop(&small.builder, SEGMENT_MICRO_STEPS, "micro-batches", 0, 600, 1);
    small_kernel(&small, "counts", 10);
    *small_last_cost(&small) = (TaskCost){.seconds = 10e-6, .host_s = 1e-6, .host_stop = HOST_WAITS_FOR_END};
    small_kernel(&small, "experts", 7);
    small_last_cost(&small)->host_s = 4e-6;
    builder_end(&small.builder);
    const EngineResult result = small_run(&small, (EngineOptions){0});
    const EngineResult whole = small_run(&small, (EngineOptions){.unroll = true});
    cr_assert_eq(whole.step_s, result.step_s);
    cr_assert_float_eq(result.step_s, 1e-6 + 600 * 21e-6, 1e-12);
    cr_assert_leq(result.events, 40, "%lld", (long long)result.events);
    small_end(&small);
}

static double last_start_us(const EngineResult *result, int rank) {
    double start_s = 0;
    for (int64_t i = 0; i < result->timeline.span_count; i++) {
        const Span *span = &result->timeline.spans[i];
        start_s = span->rank == rank ? fmax(start_s, span->start_s) : start_s;
    }
    return 1e6 * start_s;
}

// Two replicas that meet only at the end, one 1.5 times slower, whose hosts wait for a kernel in each of 60 layers and
// issue the next one late: 10 + 30 + 1 us a layer on the fast one; 15 + 30 + 1.5 on the slow one, whose next kernel
// waits for that of 1.5. By how much a host lags behind the walk is another number on each, in what is skipped too.
Test(repetition, hosts_that_lag_at_a_pace_of_their_own_are_skipped) {
    float slowdown[2] = {1, 1.5f};
    Small small;
    small_begin(&small, 60, false, AXIS_BIT(AXIS_DP_REPLICATE));
    small.builder.program.plan.mesh = (Mesh){.size = SIZES(2, 1, 1, 1)};
    builder_loop(&small.builder, SEGMENT_LAYERS, "layers", 0, 60, 1);
    small_kernel(&small, "counts", 10);
    *small_last_cost(&small) = (TaskCost){.seconds = 10e-6, .host_s = 1e-6, .host_stop = HOST_WAITS_FOR_END};
    small_kernel(&small, "experts", 1);
    small_last_cost(&small)->host_s = 30e-6;
    builder_end(&small.builder);
    small_kernel(&small, "head", 1);
    small_last_cost(&small)->host_s = 1e-6;
    const EngineResult result = small_run(&small, (EngineOptions){.rank_slowdown = slowdown, .all_ranks = true});
    const EngineResult whole =
        small_run(&small, (EngineOptions){.rank_slowdown = slowdown, .all_ranks = true, .unroll = true});
    cr_expect_leq(result.events, 40, "%lld", (long long)result.events);
    cr_expect_eq(result.step_s, whole.step_s);
    for (int rank = 0; rank < 2; rank++) {
        cr_expect_eq(last_start_us(&result, rank), last_start_us(&whole, rank), "rank %d: %g and %g", rank,
                     last_start_us(&result, rank), last_start_us(&whole, rank));
    }
    cr_expect_float_eq(last_start_us(&result, 0), 60 * 41 + 1, 1e-6);
    cr_expect_float_eq(last_start_us(&result, 1), 60 * 46.5 + 1, 1e-6);
    small_end(&small);
}
