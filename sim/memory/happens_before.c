// One pass in issue order. A task starts after the last task of its lane, after the latest record of every event slot
// it waits for, and, when it is a collective, after the last collective of its communicator: the clock is the maximum
// over those predecessors.
// Not modelled: order between ranks; buffers belong to one rank and every rank issues the same program.

#include "sim/memory/happens_before.h"

#include "sim/step/slots.h"

#include <string.h>

typedef struct OrderBuilder {
    HappensBefore *order;
    int32_t *lane_clock;       // [lanes][stride]: clock of a task that would start now on that lane
    int32_t *lane_length;      // instances so far
    int32_t *last_collective;  // per communicator, -1 = none
    int32_t communicators;
    const int32_t *first_slot;  // of each event in event_record
    int32_t *event_record;      // latest instance that recorded the slot, -1 = none
} OrderBuilder;

static int32_t *filled(Arena *arena, int32_t count, int32_t value) {
    int32_t *array = ARENA_ARRAY(arena, int32_t, count);
    for (int32_t i = 0; i < count; i++) {
        array[i] = value;
    }
    return array;
}

static OrderBuilder builder_begin(HappensBefore *order, Arena *arena) {
    const StepProgram *program = order->program;
    OrderBuilder builder = {.order = order};
    builder.lane_clock = ARENA_ARRAY(arena, int32_t, program->lane_count * order->stride);
    builder.lane_length = ARENA_ARRAY(arena, int32_t, program->lane_count);
    for (int32_t i = 0; i < program->lane_count; i++) {
        const int32_t communicator = program->lanes[i].communicator;
        builder.communicators = communicator >= builder.communicators ? communicator + 1 : builder.communicators;
    }
    builder.last_collective = filled(arena, builder.communicators, -1);
    builder.first_slot = step_event_slots(program, arena);
    builder.event_record = filled(arena, builder.first_slot[program->event_count], -1);
    return builder;
}

// clock: now also after instance `before`.
static void clock_join(const HappensBefore *order, int32_t *clock, int32_t before) {
    const int32_t *other = happens_before_clock(order, before);
    for (int32_t k = 0; k < order->stride; k++) {
        clock[k] = clock[k] > other[k] ? clock[k] : other[k];
    }
    const int lane = happens_before_lane(order, before);
    const int32_t ended = order->position[before] + 1;
    clock[lane] = clock[lane] > ended ? clock[lane] : ended;
}

static void builder_issue(OrderBuilder *builder, int32_t index) {
    HappensBefore *order = builder->order;
    const StepProgram *program = order->program;
    const StepInstance *instance = &order->instances[index];
    const Task *task = &program->tasks[instance->task];
    const int lane = task->lane;
    int32_t *lane_clock = builder->lane_clock + lane * order->stride;
    int32_t *clock = order->clock + (size_t)index * (size_t)order->stride;
    memcpy(clock, lane_clock, (size_t)order->stride * sizeof(int32_t));
    for (int32_t i = 0; i < task->wait_count; i++) {
        const EventRef *wait = &program->event_refs[task->first_wait + i];
        const int32_t recorded = builder->event_record[step_event_slot(program, builder->first_slot, wait, instance)];
        if (recorded >= 0) {
            clock_join(order, clock, recorded);
        }
    }
    const int communicator = program->lanes[lane].communicator;
    if (task_is_collective(task) && communicator >= 0) {
        if (builder->last_collective[communicator] >= 0) {
            clock_join(order, clock, builder->last_collective[communicator]);
        }
        builder->last_collective[communicator] = index;
    }
    order->position[index] = builder->lane_length[lane]++;
    memcpy(lane_clock, clock, (size_t)order->stride * sizeof(int32_t));
    lane_clock[lane] = order->position[index] + 1;
    for (int32_t i = 0; i < task->record_count; i++) {
        const EventRef *record = &program->event_refs[task->first_record + i];
        builder->event_record[step_event_slot(program, builder->first_slot, record, instance)] = index;
    }
}

void happens_before_build(const StepProgram *program, Arena *arena, HappensBefore *order) {
    const int64_t count = step_instance_count(program);
    ASSERT(count <= INT32_MAX);
    *order = (HappensBefore){.program = program, .count = (int32_t)count};
    order->stride = (program->lane_count + CLOCK_ALIGN - 1) / CLOCK_ALIGN * CLOCK_ALIGN;
    order->instances = ARENA_ARRAY(arena, StepInstance, count);
    order->position = ARENA_ARRAY(arena, int32_t, count);
    order->clock = ARENA_ARRAY(arena, int32_t, count * order->stride);
    OrderBuilder builder = builder_begin(order, arena);
    StepCursor cursor = step_cursor_begin(program);
    for (int32_t i = 0; i < order->count; i++) {
        const bool more = step_cursor_next(&cursor, &order->instances[i]);
        ASSERT(more);
        builder_issue(&builder, i);
    }
}
