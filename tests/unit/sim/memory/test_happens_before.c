// The relation itself: lanes, events with slots, communicators.

#include <criterion/criterion.h>

#include "sim/memory/happens_before.h"
#include "tests/unit/sim/memory/examples.h"

static int16_t lanes[2];

// Two lanes, one buffer of two slots, an event recorded by lane 0; the test issues tasks.
static ProgramBuilder two_lanes(Arena *arena, int communicator, int32_t *event) {
    ProgramBuilder builder = builder_begin(arena, 8);
    lanes[0] = builder_lane(&builder, "a", communicator);
    lanes[1] = builder_lane(&builder, "b", communicator);
    const int32_t buffer = builder_buffer(&builder, "data", ROLE_ACTIVATION, 2, STEP_ALIGN_BYTES);
    *event = builder_event(&builder, buffer, lanes[0], true);
    return builder;
}

Test(happens_before, tasks_of_one_lane_are_ordered_and_lanes_are_not) {
    Arena arena = {0};
    int32_t event;
    ProgramBuilder builder = two_lanes(&arena, -1, &event);
    builder_task(&builder, "a0", TASK_ADD, lanes[0], PHASE_FORWARD);
    builder_task(&builder, "b0", TASK_ADD, lanes[1], PHASE_FORWARD);
    builder_task(&builder, "a1", TASK_ADD, lanes[0], PHASE_FORWARD);
    HappensBefore order;
    happens_before_build(builder_program(&builder), &arena, &order);
    cr_assert(happens_before(&order, 0, 2));
    cr_assert_not(happens_before(&order, 0, 1));
    cr_assert_not(happens_before(&order, 1, 2));
    arena_free(&arena);
}

Test(happens_before, a_wait_orders_everything_before_the_record) {
    Arena arena = {0};
    int32_t event;
    ProgramBuilder builder = two_lanes(&arena, -1, &event);
    builder_task(&builder, "a0", TASK_ADD, lanes[0], PHASE_FORWARD);
    builder_task(&builder, "a1", TASK_ADD, lanes[0], PHASE_FORWARD);
    builder_record(&builder, event, 0, 0);
    builder_task(&builder, "a2", TASK_ADD, lanes[0], PHASE_FORWARD);
    builder_task(&builder, "b0", TASK_ADD, lanes[1], PHASE_FORWARD);
    builder_wait(&builder, event, 0, 0);
    HappensBefore order;
    happens_before_build(builder_program(&builder), &arena, &order);
    cr_assert(happens_before(&order, 0, 3));
    cr_assert(happens_before(&order, 1, 3));
    cr_assert_not(happens_before(&order, 2, 3), "a2 was issued after the record");
    arena_free(&arena);
}

Test(happens_before, waiting_means_the_latest_record_of_that_slot) {
    Arena arena = {0};
    int32_t event;
    ProgramBuilder builder = two_lanes(&arena, -1, &event);
    builder_task(&builder, "slot 0", TASK_ADD, lanes[0], PHASE_FORWARD);
    builder_record(&builder, event, 0, 0);
    builder_task(&builder, "slot 1", TASK_ADD, lanes[0], PHASE_FORWARD);
    builder_record(&builder, event, 0, 1);
    builder_task(&builder, "waits for slot 2 = 0", TASK_ADD, lanes[1], PHASE_FORWARD);
    builder_wait(&builder, event, 0, 2);
    HappensBefore order;
    happens_before_build(builder_program(&builder), &arena, &order);
    cr_assert(happens_before(&order, 0, 2));
    cr_assert_not(happens_before(&order, 1, 2));
    arena_free(&arena);
}

Test(happens_before, a_slot_never_recorded_holds_nobody_back) {
    Arena arena = {0};
    int32_t event;
    ProgramBuilder builder = two_lanes(&arena, -1, &event);
    builder_task(&builder, "a0", TASK_ADD, lanes[0], PHASE_FORWARD);
    builder_task(&builder, "b0", TASK_ADD, lanes[1], PHASE_FORWARD);
    builder_wait(&builder, event, 0, 0);
    builder_task(&builder, "a1, records too late", TASK_ADD, lanes[0], PHASE_FORWARD);
    builder_record(&builder, event, 0, 0);
    HappensBefore order;
    happens_before_build(builder_program(&builder), &arena, &order);
    cr_assert_not(happens_before(&order, 0, 1));
    arena_free(&arena);
}

Test(happens_before, collectives_of_one_communicator_are_ordered_across_lanes) {
    Arena arena = {0};
    int32_t event;
    ProgramBuilder builder = two_lanes(&arena, 3, &event);
    builder_task(&builder, "gather", TASK_ALL_GATHER, lanes[0], PHASE_FORWARD);
    builder_task(&builder, "reduce", TASK_REDUCE_SCATTER, lanes[1], PHASE_FORWARD);
    HappensBefore order;
    happens_before_build(builder_program(&builder), &arena, &order);
    cr_assert(happens_before(&order, 0, 1));
    builder.program.lanes[1].communicator = 4;
    happens_before_build(&builder.program, &arena, &order);
    cr_assert_not(happens_before(&order, 0, 1), "another communicator");
    arena_free(&arena);
}

Test(happens_before, order_is_transitive_through_a_third_lane) {
    Arena arena = {0};
    int32_t event;
    ProgramBuilder builder = two_lanes(&arena, -1, &event);
    const int16_t third = builder_lane(&builder, "c", -1);
    const int32_t relay = builder_event(&builder, 0, lanes[1], true);
    builder_task(&builder, "a0", TASK_ADD, lanes[0], PHASE_FORWARD);
    builder_record(&builder, event, 0, 0);
    builder_task(&builder, "b0", TASK_ADD, lanes[1], PHASE_FORWARD);
    builder_wait(&builder, event, 0, 0);
    builder_record(&builder, relay, 0, 0);
    builder_task(&builder, "c0", TASK_ADD, third, PHASE_FORWARD);
    builder_wait(&builder, relay, 0, 0);
    HappensBefore order;
    happens_before_build(builder_program(&builder), &arena, &order);
    cr_assert(happens_before(&order, 0, 2));
    arena_free(&arena);
}
