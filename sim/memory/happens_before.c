// One pass in issue order. A task starts after the last task of its lane and after what the event protocol says of
// every other lane (sim/step/event_replay.h): the clock is the maximum over those predecessors.
// Not modelled: order between ranks; buffers belong to one rank and every rank issues the same program.

#include "sim/memory/happens_before.h"

#include <string.h>

#include "sim/step/event_replay.h"

typedef struct OrderBuilder {
    HappensBefore *order;
    EventReplay replay;
    int32_t *need;        // by lane: of the current instance
    int32_t *lane_clock;  // [lanes][stride]: clock of a task that would start now on that lane
} OrderBuilder;

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
    const int lane = happens_before_lane(order, index);
    int32_t *lane_clock = builder->lane_clock + lane * order->stride;
    int32_t *clock = order->clock + (size_t)index * (size_t)order->stride;
    memcpy(clock, lane_clock, (size_t)order->stride * sizeof(int32_t));
    event_replay_issue(&builder->replay, &order->instances[index], builder->need);
    for (int other = 0; other < order->program->lane_count; other++) {
        if (builder->need[other] > 0) {
            clock_join(order, clock, happens_before_in_lane(order, other, builder->need[other] - 1));
        }
    }
    memcpy(lane_clock, clock, (size_t)order->stride * sizeof(int32_t));
    lane_clock[lane] = order->position[index] + 1;
}

// Instances in issue order, and by lane.
static void list_instances(HappensBefore *order, Arena *arena) {
    const StepProgram *program = order->program;
    int32_t *length = ARENA_ARRAY(arena, int32_t, program->lane_count);
    StepCursor cursor = step_cursor_begin(program);
    for (int32_t i = 0; i < order->count; i++) {
        const bool more = step_cursor_next(&cursor, &order->instances[i]);
        ASSERT(more);
        order->position[i] = length[happens_before_lane(order, i)]++;
    }
    for (int lane = 0; lane < program->lane_count; lane++) {
        order->lane_first[lane + 1] = order->lane_first[lane] + length[lane];
    }
    for (int32_t i = 0; i < order->count; i++) {
        order->in_lane[order->lane_first[happens_before_lane(order, i)] + order->position[i]] = i;
    }
}

void happens_before_build(const StepProgram *program, Arena *arena, HappensBefore *order) {
    const int64_t count = step_instance_count(program);
    ASSERT(count <= INT32_MAX);
    *order = (HappensBefore){.program = program, .count = (int32_t)count};
    order->stride = (program->lane_count + CLOCK_ALIGN - 1) / CLOCK_ALIGN * CLOCK_ALIGN;
    order->instances = ARENA_ARRAY(arena, StepInstance, count);
    order->position = ARENA_ARRAY(arena, int32_t, count);
    order->lane_first = ARENA_ARRAY(arena, int32_t, program->lane_count + 1);
    order->in_lane = ARENA_ARRAY(arena, int32_t, count);
    order->clock = ARENA_ARRAY(arena, int32_t, count * order->stride);
    list_instances(order, arena);
    OrderBuilder builder = {.order = order,
                            .replay = event_replay_new(program, arena),
                            .need = ARENA_ARRAY(arena, int32_t, program->lane_count),
                            .lane_clock = ARENA_ARRAY(arena, int32_t, program->lane_count * order->stride)};
    for (int32_t i = 0; i < order->count; i++) {
        builder_issue(&builder, i);
    }
}
