// Skips iterations of a loop once they repeat. When the observed rank's compute lane has done iteration i, everything
// that the future depends on is compared with the same moment of iteration i-1, relative to the loop's position and to
// now: tasks ended on each lane, what runs with how much time left, the host's lead. Two equal states mean that
// iteration i+1 is iteration i shifted in time, and so on as long as the iterations' tasks are shifts of each other.
// One more iteration records what one adds to the totals; then all but the last ones are skipped: clocks, labels and
// event slots move, nothing is simulated. The host's lead may also grow: if no task waited for the host in a whole
// iteration and the host gains on the device, none will.

#include "sim/base/integer.h"
#include "sim/engine/simulation.h"

#include <stdlib.h>
#include <string.h>

#include "sim/engine/loop_parts.h"

typedef struct LaneState {
    int64_t next_ps, start_ps;  // relative to now; 0 when idle
    int64_t lag_ps;             // of its host, beyond the marker's
    double remaining_ps, rate, local_rate;
    int32_t ended;  // relative to the boundary
    int32_t status;
} LaneState;

typedef struct Snapshot {
    int32_t loop_run, iteration;            // 0 = none
    int64_t now_ps, host_ps, lag_ps, done;  // lag_ps: what of host_ps is not the walk's
    int64_t slack_ps;                       // least of the iteration before it
    int64_t step_ps;                        // now on the step's clock, skipped iterations included
    bool settled;                           // everything before the loop had ended
} Snapshot;

enum { MOST_LAG = 2 };

// One part of a loop: its states at the marker's last boundaries, and what a period adds while it repeats.
typedef struct Watch {
    Snapshot last[MOST_LAG];  // by iteration
    int32_t lag, matches;     // iterations of a period (0: does not repeat) and how often that was seen in a row
    int64_t period_ps, done, host_gain_ps, lag_gain_ps, slack_ps;
} Watch;

// Per loop depth: the parts of its loop, and what belongs to their last snapshots, by iteration.
typedef struct Level {
    Watch watches[LOOP_MAX_PARTS];
    LaneState *lanes[MOST_LAG];  // actors x lanes
    Totals totals[MOST_LAG];
} Level;

struct Repetition {
    LoopParts *parts;  // per segment
    int32_t *markers;  // of any loop
    int32_t marker_count;
    uint32_t *passed;  // per marker: boundaries that it is done with
    Level levels[STEP_MAX_DEPTH];
    LaneState *now;
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
    repetition->parts = loop_parts_find(&simulation->program, &simulation->classes, simulation->observed, arena);
    find_markers(simulation, arena, repetition);
    repetition->now = ARENA_ARRAY(arena, LaneState, states);
    for (int i = 0; i < STEP_MAX_DEPTH; i++) {
        for (int lag = 0; lag < MOST_LAG; lag++) {
            repetition->levels[i].lanes[lag] = ARENA_ARRAY(arena, LaneState, states);
            repetition->levels[i].totals[lag] = totals_new(simulation, arena);
        }
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

static int32_t slot_of(int32_t iteration) {
    return (iteration + MOST_LAG) % MOST_LAG;
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

static Snapshot take_snapshot(Simulation *simulation, const Boundary *boundary, const Place *place) {
    const int lanes = simulation->program.lane_count;
    const Actor *marker = &simulation->actors[place->parts->marker[place->part]];
    Snapshot snapshot = {.loop_run = boundary->loop_run,
                         .iteration = boundary->iteration,
                         .now_ps = simulation->now_ps,
                         .host_ps = boundary->host_ps + marker->host_lag_ps,
                         .lag_ps = marker->host_lag_ps,
                         .done = marker->done,
                         .slack_ps = INT64_MAX,
                         .step_ps = simulation->now_ps + simulation->skipped_ps,
                         .settled = true};
    for (int32_t i = 0; i < simulation->classes.actors; i++) {
        Actor *actor = &simulation->actors[i];
        if (!is_member(place, i)) {
            continue;
        }
        for (int depth = 0; depth < STEP_MAX_DEPTH; depth++) {
            actor->slack_ps[depth] = int_min(actor->slack_ps[depth], actor->new_slack_ps);
        }
        actor->new_slack_ps = INT64_MAX;
        snapshot.slack_ps = int_min(snapshot.slack_ps, actor->slack_ps[place->depth]);
        actor->slack_ps[place->depth] = INT64_MAX;
        for (int lane = 0; lane < lanes; lane++) {
            LaneState *state = &simulation->repetition->now[i * lanes + lane];
            take_lane(simulation, actor, lane, boundary->pulled[lane], state);
            state->lag_ps = actor->host_lag_ps - marker->host_lag_ps;
            snapshot.settled &= actor->ended[lane] >= place->run->entered[lane];
        }
    }
    return snapshot;
}

// Compares the part's actors with their earlier state.
static bool same_lanes(const Simulation *simulation, const Place *place, const LaneState *before) {
    const size_t lanes = (size_t)simulation->program.lane_count;
    const LaneState *now = simulation->repetition->now;
    bool same = true;
    for (int32_t i = 0; same && i < simulation->classes.actors; i++) {
        const size_t at = (size_t)i * lanes;
        same = !is_member(place, i) || memcmp(&before[at], &now[at], lanes * sizeof *now) == 0;
    }
    return same;
}

// Equal states, `lag` iterations apart: fills what a period adds.
static bool repeats(const Simulation *simulation, const Place *place, const Snapshot *now, int32_t lag, Watch *watch) {
    const Level *level = &simulation->repetition->levels[place->depth];
    const Snapshot *before = &watch->last[slot_of(now->iteration - lag)];
    if (before->loop_run != now->loop_run || before->iteration + lag != now->iteration || !before->settled ||
        !same_lanes(simulation, place, level->lanes[slot_of(before->iteration)])) {
        return false;
    }
    watch->period_ps = now->step_ps - before->step_ps;
    watch->done = now->done - before->done;
    watch->host_gain_ps = now->host_ps - before->host_ps - (now->now_ps - before->now_ps);
    watch->lag_gain_ps = now->lag_ps - before->lag_ps;
    watch->slack_ps = now->slack_ps;
    for (int32_t i = 1; i < lag; i++) {
        watch->slack_ps = int_min(watch->slack_ps, watch->last[slot_of(now->iteration - i)].slack_ps);
    }
    return watch->host_gain_ps == 0 || watch->slack_ps > 0;
}

static const Snapshot *newest_of(const Watch *watch) {
    const Snapshot *newest = &watch->last[0];
    for (int i = 1; i < MOST_LAG; i++) {
        newest = watch->last[i].step_ps > newest->step_ps ? &watch->last[i] : newest;
    }
    return newest;
}

// Iterations that may be skipped: the walk, shifted by them, must stay among iterations that are shifts of each other,
// and so must what each part has compared.
static int32_t skippable(const Simulation *simulation, const Place *place) {
    const StepProgram *program = simulation->program.step;
    const LoopRun *run = place->run;
    const Segment *loop = &program->segments[run->segment];
    const LoopShape *shape = &simulation->program.shapes[run->segment];
    int32_t first = 0, last = loop->count - 1;
    if (!shape->uniform) {
        return 0;
    }
    if (loop->kind == SEGMENT_LAYERS) {
        if (abs(loop->step) != 1) {
            return 0;
        }
        const int32_t low = shape->margin, high = program->layers - 1 - shape->margin;  // layers between the guards
        const int32_t from = loop->step > 0 ? low - loop->first : loop->first - high;
        const int32_t to = loop->step > 0 ? high - loop->first : loop->first - low;
        first = from > first ? from : first;
        last = to < last ? to : last;
    }
    // The walk must not get into an iteration that is walked in another way; what is queued early is of the next one.
    const bool early = walker_is_early(&simulation->walker, loop);
    if (early && loop->kind == SEGMENT_LAYERS) {
        return 0;
    }
    int64_t count = last - run->iteration - (early || shape->last_differs), lag = 1;
    for (int32_t part = 0; part < place->parts->count; part++) {
        const Watch *watch = &simulation->repetition->levels[place->depth].watches[part];
        const Snapshot *newest = newest_of(watch);
        const int32_t iteration = newest->iteration;
        const bool here = newest->loop_run == run->id && watch->lag > 0;
        if (!here || iteration - watch->lag < first || iteration + 1 - watch->lag < shape->ring_iterations) {
            return 0;
        }
        lag = watch->lag > lag ? watch->lag : lag;
        if (watch->host_gain_ps > 0) {
            count = int_min(count, (watch->slack_ps - 1) / watch->host_gain_ps * watch->lag);
        }
    }
    return (int32_t)(count / lag * lag);
}

// Shifts what an actor waits for and has begun.
static void shift_clocks(Simulation *simulation, int32_t index, int64_t shift_ps) {
    Actor *actor = &simulation->actors[index];
    for (int lane = 0; lane < simulation->program.lane_count; lane++) {
        actor->next_ps[lane] += actor->next_ps[lane] != INT64_MAX ? shift_ps : 0;
        actor->start_ps[lane] += shift_ps;
        actor->end_ps[lane] += shift_ps;
        actor->update_ps[lane] += shift_ps;
    }
    actor_queue_update(&simulation->queue, index, actor, simulation->lanes);
}

// How far a part's host gets on in so many of its periods, on the step's clock.
static int64_t host_ps(const Watch *watch, int64_t periods) {
    return (watch->period_ps + watch->host_gain_ps) * periods;
}

// The simulation's clock stays where it is and that of the step moves on by the observed part's periods; the others
// move by their own, and so do their hosts: the walk's clock is that of the observed part's.
static void skip(Simulation *simulation, const Place *place, int32_t count) {
    const Level *level = &simulation->repetition->levels[place->depth];
    const Watch *observed = &level->watches[place->part];
    int32_t kept[ENGINE_LANES];
    for (int lane = 0; lane < ENGINE_LANES; lane++) {
        kept[lane] = simulation->actors[0].ended[lane];
        for (int32_t i = 1; i < simulation->classes.actors; i++) {
            const int32_t ended = simulation->actors[i].ended[lane];
            kept[lane] = ended < kept[lane] ? ended : kept[lane];
        }
    }
    const int64_t periods = count / observed->lag, observed_ps = observed->period_ps * periods;
    for (int32_t i = 0; i < simulation->classes.actors; i++) {
        const Watch *watch = &level->watches[place->parts->of_actor[i]];
        const int64_t of_actor = count / watch->lag;
        simulation->actors[i].done += watch->done * of_actor;
        simulation->instances += watch->done * of_actor;
        if (!is_member(place, i)) {
            shift_clocks(simulation, i, watch->period_ps * of_actor - observed_ps);
            simulation->actors[i].host_lag_ps += host_ps(watch, of_actor) - host_ps(observed, periods);
        }
    }
    // The walk's clock takes on the lag, so that of what it has queued beyond the loop gets on by that too.
    const int64_t beyond_ps = observed->lag_gain_ps * periods - observed_ps;
    walker_skip(&simulation->walker, place->depth, count, observed->host_gain_ps * periods, beyond_ps, kept);
    simulation->skipped_ps += observed_ps;
    simulation->complete = false;
}

// Nothing seen before holds after a skip at this depth.
static void forget_levels(Repetition *repetition, int32_t depth) {
    for (int32_t d = depth; d < STEP_MAX_DEPTH; d++) {
        for (int part = 0; part < LOOP_MAX_PARTS; part++) {
            repetition->levels[d].watches[part] = (Watch){0};
        }
    }
}

// The lag at which the part repeats now.
static void update_watch(const Simulation *simulation, const Place *place, const Snapshot *now, Watch *watch) {
    int32_t lag = 0;
    for (int32_t tried = 1; tried <= MOST_LAG && lag == 0; tried++) {
        lag = repeats(simulation, place, now, tried, watch) ? tried : 0;
    }
    watch->matches = lag == 0 ? 0 : lag == watch->lag ? watch->matches + 1 : 1;
    watch->lag = lag;
}

static void keep_snapshot(const Simulation *simulation, const Place *place, const Snapshot *now, Watch *watch) {
    const size_t lanes = (size_t)simulation->program.lane_count;
    const Repetition *repetition = simulation->repetition;
    LaneState *kept = repetition->levels[place->depth].lanes[slot_of(now->iteration)];
    watch->last[slot_of(now->iteration)] = *now;
    for (int32_t i = 0; i < simulation->classes.actors; i++) {
        if (is_member(place, i)) {
            const size_t at = (size_t)i * lanes;
            memcpy(&kept[at], &repetition->now[at], lanes * sizeof *kept);
        }
    }
}

static void watch_part(Simulation *simulation, const Boundary *boundary, const Place *place) {
    Repetition *repetition = simulation->repetition;
    Level *level = &repetition->levels[place->depth];
    Watch *watch = &level->watches[place->part];
    const Snapshot now = take_snapshot(simulation, boundary, place);
    update_watch(simulation, place, &now, watch);
    keep_snapshot(simulation, place, &now, watch);
    if (watch->lag == 0 || !is_member(place, simulation->observed)) {
        return;
    }
    const int32_t count = watch->matches > watch->lag ? skippable(simulation, place) : 0;
    if (count > 0) {
        totals_add(simulation, &level->totals[slot_of(now.iteration - watch->lag)], count / watch->lag);
        skip(simulation, place, count);
        forget_levels(repetition, place->depth);
    } else {
        totals_take(simulation, &level->totals[slot_of(now.iteration)]);
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
        simulation->repetition->levels[here.depth].watches[here.part] = (Watch){0};
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
