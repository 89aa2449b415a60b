// The order of a schedule as loops over micro-steps: what repeats from one micro-step to the next is one loop. First,
// middle and last micro-steps are lowered separately (gradients start with the first and are reduced after the last),
// so at each of its positions a loop covers micro-steps of one kind. Where the schedule runs several times, gradients
// start and are reduced in each of its rounds; reductions of rounds after the first add to what was reduced before.

#pragma once

#include "sim/base/arena.h"
#include "sim/step/schedules/schedule.h"

// Of a round; of a later one ADD_ONLY, ADD_FIRST, MIDDLE, ADD_LAST.
typedef enum {
    MICRO_ONLY,
    MICRO_FIRST,
    MICRO_MIDDLE,
    MICRO_LAST,
    MICRO_ADD_ONLY,
    MICRO_ADD_FIRST,
    MICRO_ADD_LAST,
    MICRO_KINDS
} MicroKind;

MicroKind micro_kind(int32_t micro_step, int32_t round_steps);

static inline bool micro_kind_begins(MicroKind kind) {
    return kind == MICRO_ONLY || kind == MICRO_FIRST || kind == MICRO_ADD_ONLY || kind == MICRO_ADD_FIRST;
}

static inline bool micro_kind_ends(MicroKind kind) {
    return kind == MICRO_ONLY || kind == MICRO_LAST || kind == MICRO_ADD_ONLY || kind == MICRO_ADD_LAST;
}

typedef struct MicroWork {
    Work work;
    int32_t chunk;
    MicroKind kind;
    int32_t micro_offset;  // micro-step = the loop's + micro_offset
} MicroWork;

typedef struct MicroLoop {
    MicroKind kind;              // of the first position with micro_offset 0
    int32_t first, count, step;  // micro-steps of that position: first, first + step, ...
    bool steady;  // an iteration does each kind of work of each chunk for `step` micro-steps: as much stays in flight
    int32_t first_work, work_count;
} MicroLoop;

typedef struct MicroLoops {
    MicroLoop *loops;
    int32_t count;
    MicroWork *works;
    int32_t work_count;
    // Maximum number of a chunk's micro-steps that have run forward but not yet backward; whose weight gradients are
    // pending, counted from forward (0 where nothing is split) and from backward; and over all chunks, from the latest
    // that ran backward to the oldest with pending weight gradients.
    int32_t in_flight, until_weights, held, spread;
} MicroLoops;

MicroLoops micro_loops_find(const Schedule *schedule, const ScheduleShape *shape, Arena *arena);
