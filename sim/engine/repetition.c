// Skips iterations of a loop once they repeat. When the observed rank's compute lane has done iteration i, everything
// that the future depends on is compared with the same moment of iteration i-1, relative to the loop's position and to
// now: tasks ended on each lane, what runs with how much time left, the host's lead. Two equal states mean that
// iteration i+1 is iteration i shifted in time, and so on as long as the iterations' tasks are shifts of each other.
// One more iteration records what one adds to the totals; then all but the last ones are skipped: clocks, labels and
// event slots move, nothing is simulated. The host's lead may also grow: if no task waited for the host in a whole
// iteration and the host gains on the device, none will.

#include "sim/engine/simulation.h"

#include <string.h>

typedef struct LaneState {
    int64_t next_ps, start_ps;  // relative to now; 0 when idle
    double remaining_ps, rate, local_rate;
    int32_t ended;  // relative to the boundary
    int32_t status;
} LaneState;

typedef struct Snapshot {
    int32_t loop_run, iteration;  // 0 = none
    int64_t now_ps, host_ps, host_waits;
    int64_t step_ps;  // now on the step's clock, skipped iterations included
    int32_t pulled[ENGINE_LANES];
    bool settled;      // everything before the loop had ended
    LaneState *lanes;  // actors x lanes
} Snapshot;

typedef struct Totals {
    Attribution attribution;
    int64_t instances;
    TaskSum *sums;
} Totals;

// Per loop depth: the last snapshot, and the totals at it once it matched the one before.
typedef struct Level {
    Snapshot last, now;
    bool matched;
    Totals totals;
} Level;

struct Repetition {
    Level levels[STEP_MAX_DEPTH];
    size_t lane_bytes, sum_bytes;
};

Repetition *repetition_new(const Simulation *simulation, Arena *arena) {
    Repetition *repetition = ARENA_NEW(arena, Repetition);
    const size_t lanes = (size_t)simulation->classes.actors * (size_t)simulation->program.lane_count;
    repetition->lane_bytes = lanes * sizeof(LaneState);
    repetition->sum_bytes = (size_t)simulation->program.step->task_count * sizeof(TaskSum);
    for (int i = 0; i < STEP_MAX_DEPTH; i++) {
        repetition->levels[i].last.lanes = arena_alloc(arena, repetition->lane_bytes);
        repetition->levels[i].now.lanes = arena_alloc(arena, repetition->lane_bytes);
        repetition->levels[i].totals.sums = arena_alloc(arena, repetition->sum_bytes);
    }
    return repetition;
}

static void take_lane(const Simulation *simulation, const Actor *actor, int lane, int32_t pulled, LaneState *state) {
    const int64_t now = simulation->now_ps;
    *state = (LaneState){.ended = actor->ended[lane] - pulled, .status = actor->status[lane]};
    if (actor->status[lane] == LANE_RUNNING) {
        const bool leads = actor->next_ps[lane] != INT64_MAX;
        state->start_ps = actor->start_ps[lane] - now;
        state->local_rate = actor->demand[lane] ? actor->local_rate[lane] : 1;
        if (leads) {
            state->next_ps = actor->next_ps[lane] - now;
            state->rate = actor->rate[lane];
            state->remaining_ps =
                actor->remaining_ps[lane] - (double)(now - actor->update_ps[lane]) * actor->rate[lane];
        }
    } else if (actor->status[lane] == LANE_ISSUING) {
        state->next_ps = actor->next_ps[lane] - now;
    }
}

static void take_snapshot(const Simulation *simulation, const Boundary *boundary, const LoopRun *run,
                          Snapshot *snapshot) {
    const int lanes = simulation->program.lane_count;
    snapshot->loop_run = boundary->loop_run;
    snapshot->iteration = boundary->iteration;
    snapshot->now_ps = simulation->now_ps;
    snapshot->host_ps = boundary->host_ps;
    snapshot->step_ps = simulation->now_ps + simulation->skipped_ps;
    snapshot->host_waits = simulation->host_waits;
    snapshot->settled = true;
    memcpy(snapshot->pulled, boundary->pulled, sizeof snapshot->pulled);
    for (int32_t i = 0; i < simulation->classes.actors; i++) {
        for (int lane = 0; lane < lanes; lane++) {
            const Actor *actor = &simulation->actors[i];
            take_lane(simulation, actor, lane, boundary->pulled[lane], &snapshot->lanes[i * lanes + lane]);
            snapshot->settled &= actor->ended[lane] >= run->entered[lane];
        }
    }
}

// Equal states, one iteration apart; *host_shift_ps: what the host gains per iteration.
static bool repeats(const Repetition *repetition, const Snapshot *before, const Snapshot *after,
                    int64_t *host_shift_ps) {
    if (before->loop_run != after->loop_run || before->iteration + 1 != after->iteration || !before->settled) {
        return false;
    }
    const int64_t period = after->now_ps - before->now_ps;
    *host_shift_ps = after->host_ps - before->host_ps - period;
    const bool host_free = after->host_waits == before->host_waits && *host_shift_ps < 0;
    return (*host_shift_ps == 0 || host_free) && memcmp(before->lanes, after->lanes, repetition->lane_bytes) == 0;
}

static void take_totals(const Simulation *simulation, const Repetition *repetition, Totals *totals) {
    totals->attribution = simulation->attribution;
    totals->instances = simulation->events + simulation->instances;
    memcpy(totals->sums, simulation->sums, repetition->sum_bytes);
}

// Iterations that may be skipped: the walk, shifted by them, must stay among iterations that are shifts of each other.
static int32_t skippable(const Simulation *simulation, const Level *level, const LoopRun *run) {
    const StepProgram *program = simulation->program.step;
    const Segment *loop = &program->segments[run->segment];
    const LoopShape *shape = &simulation->program.shapes[run->segment];
    int32_t first = 0, last = loop->count - 1;
    if (loop->kind == SEGMENT_LAYERS) {
        if (abs(loop->step) != 1 || !shape->uniform) {
            return 0;
        }
        const int32_t low = shape->margin, high = program->layers - 1 - shape->margin;  // layers between the guards
        const int32_t from = loop->step > 0 ? low - loop->first : loop->first - high;
        const int32_t to = loop->step > 0 ? high - loop->first : loop->first - low;
        first = from > first ? from : first;
        last = to < last ? to : last;
    }
    if (level->last.iteration - 1 < first || level->last.iteration < shape->ring_slots) {
        return 0;
    }
    return last - run->iteration;
}

static void add_totals(Simulation *simulation, const Totals *before, int64_t count) {
    Attribution *sum = &simulation->attribution;
    const Attribution *old = &before->attribution;
    sum->compute_ps += (sum->compute_ps - old->compute_ps) * count;
    sum->optimizer_ps += (sum->optimizer_ps - old->optimizer_ps) * count;
    sum->overhead_ps += (sum->overhead_ps - old->overhead_ps) * count;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        sum->exposed_ps[axis] += (sum->exposed_ps[axis] - old->exposed_ps[axis]) * count;
    }
    for (int32_t i = 0; i < simulation->program.step->task_count; i++) {
        simulation->sums[i].count += (simulation->sums[i].count - before->sums[i].count) * count;
        simulation->sums[i].ps += (simulation->sums[i].ps - before->sums[i].ps) * count;
    }
    simulation->instances += (simulation->events + simulation->instances - before->instances) * count;
}

static void skip(Simulation *simulation, const Level *level, int32_t depth, int32_t count, int64_t host_shift_ps) {
    const int64_t period = level->now.step_ps - level->last.step_ps;
    int32_t kept[ENGINE_LANES];
    for (int lane = 0; lane < ENGINE_LANES; lane++) {
        kept[lane] = simulation->actors[0].ended[lane];
        for (int32_t i = 1; i < simulation->classes.actors; i++) {
            const int32_t ended = simulation->actors[i].ended[lane];
            kept[lane] = ended < kept[lane] ? ended : kept[lane];
        }
    }
    add_totals(simulation, &level->totals, count);
    walker_skip(&simulation->walker, depth, count, host_shift_ps * count, kept);
    simulation->skipped_ps += period * count;
    simulation->complete = false;
}

static void at_boundary(Simulation *simulation, const Boundary *boundary) {
    Repetition *repetition = simulation->repetition;
    const int32_t depth = boundary->depth;
    const LoopRun *run = &simulation->walker.loops[depth];
    Level *level = &repetition->levels[depth];
    const bool left = simulation->walker.depth <= depth || run->id != boundary->loop_run;
    if (left || simulation->actors[simulation->observed].end_ps[0] != simulation->now_ps) {
        level->last.loop_run = 0;  // nothing to skip, or no compute task marks the iteration's end
        return;
    }
    int64_t host_shift_ps = 0;
    take_snapshot(simulation, boundary, run, &level->now);
    const bool match = repeats(repetition, &level->last, &level->now, &host_shift_ps);
    if (match && level->matched) {
        const int32_t count = skippable(simulation, level, run);
        if (count > 0) {
            skip(simulation, level, depth, count, host_shift_ps);
            level->last.loop_run = 0;
            level->matched = false;
            return;
        }
    }
    level->matched = match;
    if (match) {
        take_totals(simulation, repetition, &level->totals);
    }
    const Snapshot spare = level->last;
    level->last = level->now;
    level->now = spare;
}

void repetition_check(Simulation *simulation) {
    const Actor *actor = &simulation->actors[simulation->observed];
    const Boundary *next = walker_boundary(&simulation->walker);
    while (next && actor->ended[0] >= next->pulled[0]) {
        const Boundary boundary = *next;
        walker_drop_boundary(&simulation->walker);
        at_boundary(simulation, &boundary);
        next = walker_boundary(&simulation->walker);
    }
}
