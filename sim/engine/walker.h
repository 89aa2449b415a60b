// The host's side: takes task instances from the program in issue order and queues them on their lanes, with what each
// must wait for and when the host has issued it. All simulated ranks share one walker, because all ranks issue the
// same tasks. A wait is a count: "this many tasks of that lane have begun and ended"; lanes run in order, so nothing
// else is needed.

#pragma once

#include "sim/engine/walk_path.h"

typedef struct Instance {
    // Per lane: how far it must be before this one may start. Its tasks start and end in turn, each of which counts:
    // 2 n is the end of its nth and 2 n - 1 the start.
    int32_t need[ENGINE_LANES];
    uint32_t needs;  // lanes of which any must have
    int32_t task;
    int64_t issue_ps;
    int64_t position;  // in issue order
    int32_t layer, micro_step;
} Instance;

typedef struct LaneRing {
    Instance *slots;
    uint32_t mask;
    int32_t pulled;           // instances queued so far
    int32_t last_collective;  // count including the latest collective on this lane
    int32_t last_stop;        // how far it must be for the host to go on behind the latest task that stops it
} LaneRing;

// One running loop of the walk.
typedef struct LoopRun {
    int32_t id;
    int32_t segment, iteration;
    int32_t entered[ENGINE_LANES];  // instances that the walk had reached when the loop began
} LoopRun;

// The walk passed the end of an iteration. Kept until the simulation has run that far.
typedef struct Boundary {
    int32_t loop_run, depth, iteration;
    int32_t pulled[ENGINE_LANES];
    int64_t host_ps;
} Boundary;

enum { WALKER_BOUNDARIES = 64 };  // the walk is at most a few iterations ahead; further ones are not recorded

typedef struct Walker {
    const EngineProgram *compiled;
    Arena *arena;
    LaneRing rings[ENGINE_LANES];
    int32_t early[ENGINE_LANES];  // the last ones of a ring that the walk has not reached yet
    WalkStretch stretch;          // what is being walked
    const WalkNeeds *needs;       // of the stretch
    uint32_t eager;               // lanes for which the walk goes on where it is
    WalkPath path;                // scratch
    int32_t *slot_counts;         // per event slot: tasks of its lane that must have ended; 0 = never recorded
    LoopRun loops[STEP_MAX_DEPTH];
    int32_t depth, loop_runs;
    int32_t segment, task;
    int32_t layer, micro_step;
    int64_t host_ps, position;
    bool ended;
    Boundary boundaries[WALKER_BOUNDARIES];  // ring, by how many came before
    uint32_t boundary_first, boundary_count;
} Walker;

void walker_begin(Walker *walker, const EngineProgram *compiled, Arena *arena);

// Queues the next instance and returns its lane; -1 at the end of the program. kept: per lane, the count of tasks
// ended on every rank (instances before the last of them may be overwritten).
int walker_pull(Walker *walker, const int32_t *kept);

// Lanes whose next task can be queued before the walk has reached it.
static inline uint32_t walker_early_lanes(const Walker *walker) {
    uint32_t lanes = 0;
    for (uint32_t left = walker->needs->early; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        lanes |= walker->early[lane] < walker->needs->early_tasks[lane] ? 1u << lane : 0;
    }
    return lanes;
}

// Is a task of the loop queued early?
bool walker_is_early(const Walker *walker, const Segment *loop);

// Queues that task, issued when the host will have reached it.
void walker_pull_early(Walker *walker, int lane, const int32_t *kept);

// ---- walker_distance.c
typedef struct WalkDistance {
    int64_t host_ps, tasks;
} WalkDistance;

// From where the walk is to a place on the path after its stretch, excluding it.
WalkDistance walker_distance(const Walker *walker, const WalkPath *path, PathPlace place);

static inline const Instance *walker_head(const Walker *walker, int lane, int32_t ended) {
    const LaneRing *ring = &walker->rings[lane];
    return ended < ring->pulled ? &ring->slots[(uint32_t)ended & ring->mask] : NULL;
}

// The boundary that `number` came before, or NULL when the walk has not been there yet.
static inline const Boundary *walker_boundary(const Walker *walker, uint32_t number) {
    const bool noted = number - walker->boundary_first < walker->boundary_count;
    return noted ? &walker->boundaries[number % WALKER_BOUNDARIES] : NULL;
}

// Those before `number` are no longer needed.
static inline void walker_drop_boundaries(Walker *walker, uint32_t number) {
    walker->boundary_count -= number - walker->boundary_first;
    walker->boundary_first = number;
}

// Moves the walk `count` iterations ahead inside the loop at `depth`: what is queued belongs to later iterations from
// now on. host_shift_ps: added to the host's clock and to what it has issued but not yet seen ended. beyond_shift_ps:
// to what was queued early from beyond a layer loop, which is nearer by what the clock lags that of the step from now
// on. Of a loop of micro-steps what was queued early belongs to its next iteration, which must be one.
void walker_skip(Walker *walker, int32_t depth, int32_t count, int64_t host_shift_ps, int64_t beyond_shift_ps,
                 const int32_t *kept);
