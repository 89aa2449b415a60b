// Skips iterations of a loop once they repeat. When the observed rank's compute lane has done iteration i, everything
// that the future depends on is compared with the same moment of iteration i-1, relative to the loop's position and to
// now: tasks ended on each lane, what runs with how much time left, the host's lead. Two equal states mean that
// iteration i+1 is iteration i shifted in time, and so on as long as the iterations' tasks are shifts of each other.
// One more iteration records what one adds to the totals; then all but the last ones are skipped: clocks, labels and
// event slots move, nothing is simulated. The host's lead may also grow: if no task waited for the host in a whole
// iteration and the host gains on the device, none will.

#include "sim/engine/simulation.h"

#include <stdlib.h>
#include <string.h>

#include "sim/engine/loop_parts.h"

typedef struct LaneState {
    int64_t next_ps, start_ps;  // relative to now; 0 when idle
    double remaining_ps, rate, local_rate;
    int32_t ended;  // relative to the boundary
    int32_t status;
} LaneState;

typedef struct Snapshot {
    int32_t loop_run, iteration;  // 0 = none
    int64_t now_ps, host_ps, host_waits, done;
    int64_t step_ps;  // now on the step's clock, skipped iterations included
    bool settled;     // everything before the loop had ended
} Snapshot;

// One part of a loop: its state at the marker's last boundary.
typedef struct Watch {
    Snapshot last;
    bool matched;  // and at the one before: it repeats from there on
    int64_t period_ps, done;
} Watch;

typedef struct Totals {
    Attribution attribution;
    TaskSum *sums;
} Totals;

// Per loop depth: the parts of its loop, and the totals at the observed part's last boundary once it matched.
typedef struct Level {
    Watch watches[LOOP_MAX_PARTS];
    LaneState *lanes;  // actors x lanes, of each watch's last snapshot
    Totals totals;
} Level;

struct Repetition {
    LoopParts *parts;  // per segment
    int32_t *markers;  // of any loop
    int32_t marker_count;
    uint32_t *passed;  // per marker: boundaries that it is done with
    Level levels[STEP_MAX_DEPTH];
    LaneState *now;
    size_t sum_bytes;
};

static void find_markers(const Simulation *simulation, Arena *arena, Repetition *repetition) {
    const StepProgram *step = simulation->program.step;
    const int32_t actors = simulation->classes.actors;
    repetition->markers = ARENA_ARRAY(arena, int32_t, actors);
    repetition->passed = ARENA_ARRAY(arena, uint32_t, actors);
    for (int32_t actor = 0; actor < actors; actor++) {
        bool marks = false;
        for (int32_t s = 0; s < step->segment_count; s++) {
            const LoopParts *parts = &repetition->parts[s];
            marks |= parts->count > 0 && parts->marker[parts->of_actor[actor]] == actor;
        }
        if (marks) {
            repetition->markers[repetition->marker_count++] = actor;
        }
    }
}

Repetition *repetition_new(const Simulation *simulation, Arena *arena) {
    Repetition *repetition = ARENA_NEW(arena, Repetition);
    const int32_t states = simulation->classes.actors * simulation->program.lane_count;
    repetition->sum_bytes = (size_t)simulation->program.step->task_count * sizeof(TaskSum);
    repetition->parts = loop_parts_find(&simulation->program, &simulation->classes, simulation->observed, arena);
    find_markers(simulation, arena, repetition);
    repetition->now = ARENA_ARRAY(arena, LaneState, states);
    for (int i = 0; i < STEP_MAX_DEPTH; i++) {
        repetition->levels[i].lanes = ARENA_ARRAY(arena, LaneState, states);
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

// A part of the loop that the boundary ends an iteration of.
typedef struct Place {
    const LoopRun *run;
    const LoopParts *parts;
    int32_t part;
    int32_t depth;
} Place;

static bool is_member(const Place *place, int32_t actor) {
    return place->parts->of_actor[actor] == place->part;
}

static Snapshot take_snapshot(const Simulation *simulation, const Boundary *boundary, const Place *place) {
    const int lanes = simulation->program.lane_count;
    const Actor *marker = &simulation->actors[place->parts->marker[place->part]];
    Snapshot snapshot = {.loop_run = boundary->loop_run,
                         .iteration = boundary->iteration,
                         .now_ps = simulation->now_ps,
                         .host_ps = boundary->host_ps,
                         .done = marker->done,
                         .step_ps = simulation->now_ps + simulation->skipped_ps,
                         .settled = true};
    for (int32_t i = 0; i < simulation->classes.actors; i++) {
        const Actor *actor = &simulation->actors[i];
        if (!is_member(place, i)) {
            continue;
        }
        snapshot.host_waits += actor->host_waits;
        for (int lane = 0; lane < lanes; lane++) {
            take_lane(simulation, actor, lane, boundary->pulled[lane], &simulation->repetition->now[i * lanes + lane]);
            snapshot.settled &= actor->ended[lane] >= place->run->entered[lane];
        }
    }
    return snapshot;
}

// Compares the lanes of the part's actors with those of the last snapshot, which they become.
static bool same_lanes(const Simulation *simulation, const Place *place) {
    const size_t lanes = (size_t)simulation->program.lane_count, bytes = lanes * sizeof(LaneState);
    const LaneState *now = simulation->repetition->now;
    LaneState *last = simulation->repetition->levels[place->depth].lanes;
    bool same = true;
    for (int32_t i = 0; i < simulation->classes.actors; i++) {
        if (is_member(place, i)) {
            const size_t at = (size_t)i * lanes;
            same = same && memcmp(&last[at], &now[at], bytes) == 0;
            memcpy(&last[at], &now[at], bytes);
        }
    }
    return same;
}

// Equal states, one iteration apart.
static bool repeats(const Simulation *simulation, const Place *place, const Snapshot *before, const Snapshot *after) {
    const bool same = same_lanes(simulation, place);
    if (!same || before->loop_run != after->loop_run || before->iteration + 1 != after->iteration ||
        !before->settled) {
        return false;
    }
    const int64_t host_gain_ps = after->host_ps - before->host_ps - (after->now_ps - before->now_ps);
    const bool host_free = after->host_waits == before->host_waits && host_gain_ps < 0;
    return host_gain_ps == 0 || host_free;
}

static void take_totals(const Simulation *simulation, Totals *totals) {
    totals->attribution = simulation->attribution;
    memcpy(totals->sums, simulation->sums, simulation->repetition->sum_bytes);
}

// Iterations that may be skipped: the walk, shifted by them, must stay among iterations that are shifts of each other,
// and so must what each part has compared.
static int32_t skippable(const Simulation *simulation, const Place *place) {
    const StepProgram *program = simulation->program.step;
    const LoopRun *run = place->run;
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
    for (int32_t part = 0; part < place->parts->count; part++) {
        const Watch *watch = &simulation->repetition->levels[place->depth].watches[part];
        const int32_t iteration = watch->last.iteration;
        const bool here = watch->last.loop_run == run->id && watch->matched;
        if (!here || iteration - 1 < first || iteration < shape->ring_slots) {
            return 0;
        }
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
}

// Moves what an actor waits for and has begun.
static void shift_clocks(Simulation *simulation, int32_t index, int64_t shift_ps) {
    Actor *actor = &simulation->actors[index];
    for (int lane = 0; lane < simulation->program.lane_count; lane++) {
        actor->next_ps[lane] += actor->next_ps[lane] != INT64_MAX ? shift_ps : 0;
        actor->start_ps[lane] += shift_ps;
        actor->end_ps[lane] += shift_ps;
        actor->update_ps[lane] += shift_ps;
    }
    actor_queue_update(&simulation->queue, index, actor, simulation->program.lane_count);
}

// The simulation's clock stays where it is and that of the step moves on by the observed part's periods; the others move
// by their own.
static void skip(Simulation *simulation, const Place *place, int32_t count, int64_t host_period_ps) {
    const Level *level = &simulation->repetition->levels[place->depth];
    const int64_t period = level->watches[place->part].period_ps;
    int32_t kept[ENGINE_LANES];
    for (int lane = 0; lane < ENGINE_LANES; lane++) {
        kept[lane] = simulation->actors[0].ended[lane];
        for (int32_t i = 1; i < simulation->classes.actors; i++) {
            const int32_t ended = simulation->actors[i].ended[lane];
            kept[lane] = ended < kept[lane] ? ended : kept[lane];
        }
    }
    add_totals(simulation, &level->totals, count);
    for (int32_t i = 0; i < simulation->classes.actors; i++) {
        const Watch *watch = &level->watches[place->parts->of_actor[i]];
        simulation->actors[i].done += watch->done * count;
        simulation->instances += watch->done * count;
        if (!is_member(place, i)) {
            shift_clocks(simulation, i, (watch->period_ps - period) * count);
        }
    }
    walker_skip(&simulation->walker, place->depth, count, (host_period_ps - period) * count, kept);
    simulation->skipped_ps += period * count;
    simulation->complete = false;
}

// Nothing seen before holds after a skip at this depth.
static void forget_levels(Repetition *repetition, int32_t depth) {
    for (int32_t d = depth; d < STEP_MAX_DEPTH; d++) {
        for (int part = 0; part < LOOP_MAX_PARTS; part++) {
            repetition->levels[d].watches[part].last.loop_run = 0;
        }
    }
}

static void watch_part(Simulation *simulation, const Boundary *boundary, const Place *place) {
    Repetition *repetition = simulation->repetition;
    Level *level = &repetition->levels[place->depth];
    Watch *watch = &level->watches[place->part];
    const Snapshot before = watch->last, now = take_snapshot(simulation, boundary, place);
    const bool observed = is_member(place, simulation->observed), matched_before = watch->matched;
    watch->last = now;
    watch->matched = repeats(simulation, place, &before, &now);
    watch->period_ps = now.step_ps - before.step_ps;
    watch->done = now.done - before.done;
    if (!watch->matched || !observed) {
        return;
    }
    const int32_t count = matched_before ? skippable(simulation, place) : 0;
    if (count > 0) {
        const int64_t skipped_ps = watch->period_ps - (now.now_ps - before.now_ps);  // inside the iteration
        skip(simulation, place, count, now.host_ps - before.host_ps + skipped_ps);
        forget_levels(repetition, place->depth);
    } else {
        take_totals(simulation, &level->totals);
    }
}

// The marker's compute lane has passed a boundary of the walk.
static void at_boundary(Simulation *simulation, const Boundary *boundary, int32_t marker) {
    const Place place = {.run = &simulation->walker.loops[boundary->depth], .depth = boundary->depth};
    const bool left = simulation->walker.depth <= boundary->depth || place.run->id != boundary->loop_run;
    if (left) {
        return;  // nothing to skip
    }
    Place here = place;
    here.parts = &simulation->repetition->parts[place.run->segment];
    here.part = here.parts->of_actor[marker];
    if (here.parts->marker[here.part] != marker) {
        return;
    }
    if (simulation->actors[marker].end_ps[0] == simulation->now_ps) {
        watch_part(simulation, boundary, &here);
    } else {  // no compute task marks the iteration's end
        simulation->repetition->levels[here.depth].watches[here.part].last.loop_run = 0;
    }
}

void repetition_check(Simulation *simulation) {
    Repetition *repetition = simulation->repetition;
    Walker *walker = &simulation->walker;
    if (walker->boundary_count == 0) {
        return;
    }
    uint32_t dropped = UINT32_MAX;
    for (int32_t i = 0; i < repetition->marker_count; i++) {
        const int32_t marker = repetition->markers[i];
        const Boundary *next = walker_boundary(walker, repetition->passed[i]);
        while (next && simulation->actors[marker].ended[0] >= next->pulled[0]) {
            const Boundary boundary = *next;
            repetition->passed[i]++;
            at_boundary(simulation, &boundary, marker);
            next = walker_boundary(walker, repetition->passed[i]);
        }
        const uint32_t before = repetition->passed[i] - walker->boundary_first;
        dropped = before < dropped ? before : dropped;
    }
    walker_drop_boundaries(walker, walker->boundary_first + dropped);
}
