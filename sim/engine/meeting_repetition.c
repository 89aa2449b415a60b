// Skips what stages repeat. Whenever the first stage begins another round of its loop of micro-steps,
// everything that the future depends on is recorded relative to now and to each stage's place in its loop: where
// the walk is, what is queued, what runs with how much time left, which messages are in flight. Two equal states mean
// that what happened between them repeats, shifted, as long as every stage stays in its loop; so all but the last
// rounds are skipped: labels and event slots move (walker_skip), totals are added, nothing is simulated. The host's
// lead may change as in repetition.c. Not handled: meetings with several ranks of a stage; rounds
// whose gathers nothing holds back, to which the walk goes ahead of the simulation (lookahead.c): all but the last of
// these rounds are gone through.

#include <string.h>

#include "sim/base/integer.h"
#include "sim/engine/meeting.h"

enum { MOST_LAG = 2, FAR_AHEAD = 1 << 14 };

// A stage's part of a state.
typedef struct StageMark {
    int32_t loop_run, iteration;
    int64_t host_ps, host_lag_ps, slack_ps, done;
    Totals totals;
} StageMark;

typedef struct MeetingState {
    bool known;      // every stage was in a loop of micro-steps
    int64_t now_ps;  // on the step's clock
    int64_t *words;
    size_t count, capacity;
    StageMark *stages;
} MeetingState;

struct MeetingRepetition {
    MeetingState states[MOST_LAG + 1];  // the newest one is at `newest`
    int newest;
    int32_t loop_run, iteration;  // of the first stage, seen last
    int64_t now_ps;               // of all stages: not all were looked at in this instant
    int64_t *slack_ps;            // by stage
    int64_t queued[MOST_LAG];     // tasks of all stages, at the last checks
    Arena *arena;
};

MeetingRepetition *meeting_repetition_new(Meeting *meeting, Arena *arena) {
    for (int32_t s = 0; s < meeting->count; s++) {
        if (meeting->stages[s].simulation.classes.actors > 1) {
            return NULL;
        }
    }
    MeetingRepetition *repetition = ARENA_NEW(arena, MeetingRepetition);
    repetition->arena = arena;
    repetition->slack_ps = ARENA_ARRAY(arena, int64_t, meeting->count);
    for (int i = 0; i <= MOST_LAG; i++) {
        repetition->states[i].stages = ARENA_ARRAY(arena, StageMark, meeting->count);
        for (int32_t s = 0; s < meeting->count; s++) {
            repetition->states[i].stages[s].totals = totals_new(&meeting->stages[s].simulation, arena);
        }
    }
    return repetition;
}

// ---- recording a state

static void put(MeetingRepetition *repetition, int64_t word) {
    MeetingState *state = &repetition->states[repetition->newest];
    if (state->count == state->capacity) {  // millions of words: mostly there is room
        state->words =
            arena_grow(repetition->arena, state->words, state->count, &state->capacity, sizeof *state->words);
    }
    state->words[state->count++] = word;
}

static void put_pair(MeetingRepetition *repetition, int32_t high, int32_t low) {
    put(repetition, (int64_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low));
}

static void put_set(MeetingRepetition *repetition, int32_t number, uint32_t lanes) {
    put_pair(repetition, number, (int32_t)lanes);
}

static void put_double(MeetingRepetition *repetition, double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(repetition, bits);
}

static void put_walk(MeetingRepetition *repetition, const Walker *walker) {
    put_pair(repetition, walker->depth, walker->segment);
    put_pair(repetition, walker->task, walker->layer);
    put(repetition, walker->loops[0].segment);
    for (int32_t depth = 1; depth < walker->depth; depth++) {
        put_pair(repetition, walker->loops[depth].segment, walker->loops[depth].iteration);
    }
}

// How much further a lane must get than where its last task ended; -1 = it had been so far before that.
static int32_t awaited(int32_t count, int32_t ended) {
    return count < ended ? -1 : count - ended;
}

// What is queued. Issued is issued, however long ago.
static void put_queue(MeetingRepetition *repetition, const Simulation *simulation, int lane) {
    const Walker *walker = &simulation->walker;
    const Actor *actor = &simulation->actors[0];
    for (int32_t i = actor->ended[lane]; i < walker->rings[lane].pulled; i++) {
        const Instance *instance = walker_head(walker, lane, i);
        const int64_t issue_ps = actor_issue_ps(actor, instance) - repetition->now_ps;
        put_set(repetition, instance->task, instance->needs);
        put_pair(repetition, instance->layer, instance->micro_step - walker->micro_step);
        put(repetition, issue_ps > 0 ? issue_ps : 0);
        for (uint32_t left = instance->needs; left; left &= left - 1) {
            const int other = __builtin_ctz(left);
            put(repetition, awaited(instance->need[other], 2 * actor->ended[other]));
        }
    }
}

// When the lane's last task ran matters as long as it ended after the compute lane was last idle (attribution.c).
static void put_lane(MeetingRepetition *repetition, const Simulation *simulation, int lane) {
    const Actor *actor = &simulation->actors[0];
    const LaneRing *ring = &simulation->walker.rings[lane];
    const int64_t now = repetition->now_ps;
    const int32_t ended = actor->ended[lane];
    const bool runs = actor->status[lane] == LANE_RUNNING;
    const bool recent = actor->end_ps[lane] > simulation->attribution.idle_since_ps;
    put_pair(repetition, actor->status[lane], actor->demand[lane]);
    put_pair(repetition, ring->pulled - ended, simulation->walker.early[lane]);
    put_pair(repetition, awaited(ring->last_collective, ended), awaited(ring->last_stop, 2 * ended));
    put(repetition, actor->waiting[lane]);
    put(repetition, recent ? actor->end_ps[lane] - now : 1);
    put(repetition, recent || runs ? actor->start_ps[lane] - now : 1);
    put(repetition, recent ? walker_head(&simulation->walker, lane, ended - 1)->task : -1);
    put(repetition, (recent || runs) && actor->host_bound[lane]);
    put(repetition, actor->next_ps[lane] == INT64_MAX ? -1 : actor->next_ps[lane] - now);
    if (runs) {
        put(repetition, actor->task[lane]);
        put(repetition, actor->update_ps[lane] - now);
        put_double(repetition, actor->remaining_ps[lane]);
        put_double(repetition, actor->rate[lane]);
        put_double(repetition, actor->demand[lane] ? actor->local_rate[lane] : 1);
    }
    put_queue(repetition, simulation, lane);
}

static void put_messages(MeetingRepetition *repetition, const Meeting *meeting, const MeetingStage *stage) {
    const int32_t keys = meeting->count * PHASE_COUNT;
    for (int32_t key = 0; key < keys; key++) {
        const Mailbox *box = stage->box_of[key] >= 0 ? &stage->boxes[stage->box_of[key]] : NULL;
        for (int32_t i = box ? box->received : 0; box && i < box->sent; i++) {
            put(repetition, box->began_ps[i] - repetition->now_ps);
        }
        if (box) {
            put_pair(repetition, box->sent - box->received, box->waiting);
        }
    }
}

static void put_stage(MeetingRepetition *repetition, const Meeting *meeting, MeetingStage *stage, StageMark *mark) {
    Simulation *simulation = &stage->simulation;
    Actor *actor = &simulation->actors[0];
    const Walker *walker = &simulation->walker;
    const int64_t idle_since_ps = simulation->attribution.idle_since_ps;
    put_walk(repetition, walker);
    put_set(repetition, (int32_t)actor->idle, actor->look);
    put_set(repetition, (int32_t)actor->empty, actor->released);
    put(repetition, idle_since_ps - repetition->now_ps);
    put(repetition, actor->message_ps > idle_since_ps ? actor->message_ps - repetition->now_ps : 1);
    for (int lane = 0; lane < simulation->program.lane_count; lane++) {
        put_lane(repetition, simulation, lane);
    }
    put_messages(repetition, meeting, stage);
    mark->loop_run = walker->loops[0].id;
    mark->iteration = walker->loops[0].iteration;
    mark->host_ps = walker->host_ps;
    mark->host_lag_ps = actor->host_lag_ps;
    mark->slack_ps = actor->new_slack_ps;
    mark->done = actor->done;
    actor->new_slack_ps = INT64_MAX;
    totals_take(simulation, &mark->totals);
}

static bool in_micro_steps(const Simulation *simulation) {
    const Walker *walker = &simulation->walker;
    return walker->depth > 0 &&
           simulation->program.step->segments[walker->loops[0].segment].kind == SEGMENT_MICRO_STEPS;
}

static int64_t queued_tasks(const Simulation *simulation) {
    int64_t queued = 0;
    for (int lane = 0; lane < simulation->program.lane_count; lane++) {
        queued += simulation->walker.rings[lane].pulled - simulation->actors[0].ended[lane];
    }
    return queued;
}

// A walk that is far ahead went to find what nothing holds back, such as the gathers of the next round. While what it
// queued becomes less the stages are not where they were: no need to record all of it in order to see that.
static bool is_worth_recording(Meeting *meeting) {
    MeetingRepetition *repetition = meeting->repetition;
    int64_t queued = 0;
    for (int32_t s = 0; s < meeting->count; s++) {
        queued += queued_tasks(&meeting->stages[s].simulation);
    }
    bool worth = queued <= FAR_AHEAD;
    for (int i = 0; i < MOST_LAG; i++) {
        worth |= queued == repetition->queued[i];
    }
    memmove(&repetition->queued[1], repetition->queued, (MOST_LAG - 1) * sizeof *repetition->queued);
    repetition->queued[0] = queued;
    return worth;
}

static void write_down(Meeting *meeting, int64_t now_ps) {
    MeetingRepetition *repetition = meeting->repetition;
    repetition->now_ps = now_ps;
    repetition->newest = (repetition->newest + 1) % (MOST_LAG + 1);
    MeetingState *state = &repetition->states[repetition->newest];
    state->count = 0;
    state->known = is_worth_recording(meeting) && meeting->pending == 0;
    for (int32_t s = 0; s < meeting->count; s++) {
        state->known &= in_micro_steps(&meeting->stages[s].simulation);
    }
    for (int32_t s = 0; s < meeting->count && state->known; s++) {
        put_stage(repetition, meeting, &meeting->stages[s], &state->stages[s]);
    }
    state->now_ps = now_ps + meeting->stages[0].simulation.skipped_ps;
}

// ---- comparing

// What all stages have in common between two states.
typedef struct Period {
    const MeetingState *before, *now;
    int64_t ps;
    int32_t iterations;
    int64_t *slack_ps;  // by stage: the least in it
} Period;

static int64_t host_gain_ps(const Period *period, int32_t s) {
    const StageMark *before = &period->before->stages[s], *now = &period->now->stages[s];
    return now->host_ps + now->host_lag_ps - before->host_ps - before->host_lag_ps - period->ps;
}

// Iterations that the stage may skip: it stays inside its loop, and its last one is gone through.
static int64_t skippable(const Simulation *simulation, const Period *period, int32_t s) {
    const StageMark *before = &period->before->stages[s], *now = &period->now->stages[s];
    const LoopRun *run = &simulation->walker.loops[0];
    const Segment *loop = &simulation->program.step->segments[run->segment];
    const LoopShape *shape = &simulation->program.shapes[run->segment];
    const int64_t gain_ps = host_gain_ps(period, s), slack_ps = period->slack_ps[s];
    if (before->loop_run != now->loop_run || now->iteration - before->iteration != period->iterations ||
        !shape->uniform || before->iteration < shape->ring_iterations || (gain_ps != 0 && slack_ps <= 0)) {
        return 0;
    }
    const int64_t left =
        loop->count - 2 - run->iteration - (walker_is_early(&simulation->walker, loop) || shape->last_differs);
    return gain_ps > 0 ? int_min(left, (slack_ps - 1) / gain_ps * period->iterations) : left;
}

static const MeetingState *state_before(const MeetingRepetition *repetition, int lag) {
    return &repetition->states[(repetition->newest + MOST_LAG + 1 - lag) % (MOST_LAG + 1)];
}

// How often the period can be skipped.
static int64_t repeats(const Meeting *meeting, int lag, Period *period) {
    const MeetingRepetition *repetition = meeting->repetition;
    const MeetingState *before = state_before(repetition, lag), *now = &repetition->states[repetition->newest];
    bool known = now->known;
    for (int i = 1; i <= lag; i++) {
        known &= state_before(repetition, i)->known;
    }
    if (!known || before->count != now->count ||
        memcmp(before->words, now->words, now->count * sizeof *now->words) != 0) {
        return 0;
    }
    period->before = before;
    period->now = now;
    period->ps = now->now_ps - before->now_ps;
    period->iterations = now->stages[0].iteration - before->stages[0].iteration;
    int64_t times = INT64_MAX;
    for (int32_t s = 0; s < meeting->count; s++) {
        period->slack_ps[s] = INT64_MAX;
        for (int i = 0; i < lag; i++) {
            period->slack_ps[s] = int_min(period->slack_ps[s], state_before(repetition, i)->stages[s].slack_ps);
        }
        const int64_t iterations = period->iterations > 0 ? skippable(&meeting->stages[s].simulation, period, s) : 0;
        times = int_min(times, iterations > 0 ? iterations / period->iterations : 0);
    }
    return times;
}

static void skip_stage(Simulation *simulation, const Period *period, int32_t s, int64_t times) {
    const StageMark *before = &period->before->stages[s], *now = &period->now->stages[s];
    Actor *actor = &simulation->actors[0];
    const int64_t done = (now->done - before->done) * times;
    totals_add(simulation, &before->totals, times);
    actor->done += done;
    simulation->instances += done;
    walker_skip(&simulation->walker, 0, (int32_t)(period->iterations * times), 0, 0, actor->ended);
    actor->host_lag_ps += host_gain_ps(period, s) * times;  // the host's own clock stays, as all clocks do
    simulation->skipped_ps += period->ps * times;
    simulation->complete = false;
}

void meeting_repetition_check(Meeting *meeting, int64_t now_ps) {
    MeetingRepetition *repetition = meeting->repetition;
    const LoopRun *run = &meeting->stages[0].simulation.walker.loops[0];
    if (!in_micro_steps(&meeting->stages[0].simulation) ||
        (run->id == repetition->loop_run && run->iteration == repetition->iteration)) {
        return;
    }
    write_down(meeting, now_ps);
    Period period = {.slack_ps = repetition->slack_ps};
    int64_t times = 0;
    for (int lag = 1; lag <= MOST_LAG && times == 0; lag++) {
        times = repeats(meeting, lag, &period);
    }
    for (int32_t s = 0; s < meeting->count && times > 0; s++) {
        skip_stage(&meeting->stages[s].simulation, &period, s, times);
    }
    for (int i = 0; i <= MOST_LAG && times > 0; i++) {
        repetition->states[i].known = false;  // nothing seen before holds after a skip
    }
    repetition->loop_run = run->id;
    repetition->iteration = run->iteration;
}
