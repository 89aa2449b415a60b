// The state of one simulation. Private to sim/engine; files that share it:
//   simulation.c   instants: what ends, what starts
//   rates.c        progress of what runs together
//   attribution.c  attribution of the representative rank's time
//   repetition.c   skipping iterations that would repeat, by the parts of loop_parts.c

#pragma once

#include "sim/engine/engine_program.h"
#include "sim/engine/rank_classes.h"
#include "sim/engine/walker.h"

typedef enum { LANE_IDLE, LANE_ISSUING, LANE_ARRIVED, LANE_RUNNING } LaneStatus;  // ISSUING: waits for the host

// One simulated rank. Times are on the simulation's clock; the step's clock is ahead of it by skipped_ps.
typedef struct Actor {
    int64_t next_ps
        [ENGINE_LANES];  // when the lane's task ends or the host has issued its head; INT64_MAX: no event pending
    int32_t ended[ENGINE_LANES];    // tasks of the lane that have ended
    uint16_t demand[ENGINE_LANES];  // of what is running; 0 nothing
    uint8_t status[ENGINE_LANES];
    // Sets of lanes. An idle lane is looked at once its task has ended, something is queued for it or what held it
    // back has ended; it then starts, or is empty, or waits for another lane.
    uint32_t idle;
    uint32_t look, empty;                 // of the idle ones: to be looked at; nothing was queued
    uint32_t waiting[ENGINE_LANES];       // per lane: idle ones whose head it holds back
    int32_t blocked_until[ENGINE_LANES];  // how far that lane must be (Instance)
    int32_t task[ENGINE_LANES];           // running
    bool host_bound[ENGINE_LANES];        // the running or last task started the moment the host issued it
    int32_t leader[ENGINE_LANES];         // running collective: the actor that keeps its clock
    double remaining_ps[ENGINE_LANES];    // isolated time left at update_ps (kept by the leader)
    double rate[ENGINE_LANES];
    double local_rate[ENGINE_LANES];  // what this rank's sharing would allow
    int64_t update_ps[ENGINE_LANES];
    int64_t start_ps[ENGINE_LANES];
    int64_t end_ps[ENGINE_LANES];      // of the last ended task
    int64_t slack_ps[STEP_MAX_DEPTH];  // least time between issue and start since the depth's last boundary,
    int64_t new_slack_ps;              // and since the last boundary of any depth
    int64_t done;                      // tasks ended, skipped ones included
    int64_t host_lag_ps;               // by which the host issues later than the walk, because tasks stopped it
    int64_t message_ps;                // when the last received message was sent
    uint32_t released;                 // lanes whose head waited for other stages and no longer has to
    bool touched;                      // in the list of this instant
    bool changed;                      // the set of running tasks has changed at this instant
} Actor;

static inline int64_t actor_issue_ps(const Actor *actor, const Instance *instance) {
    return instance->issue_ps + actor->host_lag_ps;
}

// Of the lane, as Instance counts it.
static inline int32_t actor_progress(const Actor *actor, int lane) {
    return 2 * actor->ended[lane] + (actor->status[lane] == LANE_RUNNING);
}

static inline void actor_set_idle(Actor *actor, int lane) {
    actor->status[lane] = LANE_IDLE;
    actor->idle |= 1u << lane;
    actor->look |= 1u << lane;
}

static inline void actor_set_busy(Actor *actor, int lane, LaneStatus status) {
    actor->status[lane] = (uint8_t)status;
    actor->idle &= ~(1u << lane);
}

typedef struct Attribution {
    int64_t compute_ps, optimizer_ps, bubble_ps, overhead_ps;
    int64_t exposed_ps[AXIS_COUNT];
    int64_t idle_since_ps;  // compute lane
} Attribution;

typedef struct TaskSum {
    int64_t count, ps;
} TaskSum;

// Of the observed rank, at some moment.
typedef struct Totals {
    Attribution attribution;
    TaskSum *sums;
} Totals;

typedef struct SpanEntry {
    int64_t position;
    Span span;
} SpanEntry;

typedef struct ActorQueue {
    int64_t *key;        // per actor: its earliest next_ps
    int32_t *heap, *at;  // actors by (key, actor); place of an actor in the heap
    int32_t count;
    bool scanned;    // so few actors that a scan of all keys is faster than keeping the heap
    uint32_t stale;  // scanned: actors whose key is recomputed when it is needed
} ActorQueue;

typedef struct Meeting Meeting;
typedef struct RateCache RateCache;
typedef struct Repetition Repetition;

typedef struct Simulation {
    EngineProgram program;
    EngineOptions options;
    RankClasses classes;
    Walker walker;
    Arena *arena;
    Meeting *meeting;  // with other stages; NULL = there are none
    Actor *actors;
    int32_t *arrived;  // members ready: (group * lanes + lane) * actors + leader
    ActorQueue queue;
    int64_t now_ps, skipped_ps;
    int32_t *touched;  // ring: actors on which something may start now
    int32_t touched_first, touched_count;
    int32_t *changed;
    int32_t changed_count;
    uint32_t lanes;              // all of the program
    uint32_t pulled_lanes;       // lanes that got tasks since other actors last looked
    int32_t kept[ENGINE_LANES];  // tasks ended on every actor: older instances are forgotten
    int32_t observed;            // the actor of attribution and totals
    Attribution attribution;
    TaskSum *sums;  // per task, on the observed actor
    int64_t events, instances;
    int64_t next_update;  // of what is kept: the event that it comes after
    RateCache *rates;
    Repetition *repetition;
    SpanEntry *spans;
    size_t span_count, span_capacity;
    bool complete;
} Simulation;

// ---- simulation.c
Status simulation_run(Simulation *simulation, Error *error);

// The same step by step, for several on one clock: start at 0, find the next instant, process it, then process
// what others release at that instant.
void simulation_begin(Simulation *simulation);
int64_t simulation_next_ps(Simulation *simulation);  // INT64_MAX: no event pending
void simulation_instant(Simulation *simulation, int64_t now_ps);
void simulation_wake(Simulation *simulation, int32_t actor, int lane);  // its head may start now
void simulation_settle(Simulation *simulation);
Status simulation_check_ended(const Simulation *simulation, Error *error);

// ---- meeting.c: what stages wait for from each other
bool meeting_joins(const Simulation *simulation, int32_t group);  // the group has ranks of other stages
bool meeting_arrive(Simulation *simulation, int32_t actor, int lane, int32_t group);  // true: the last one
void meeting_send(Simulation *simulation, int32_t actor, const Task *task, int64_t began_ps);
bool meeting_receive(Simulation *simulation, int32_t actor, int lane, const Task *task, int64_t *began_ps);

// ---- meeting_repetition.c
typedef struct MeetingRepetition MeetingRepetition;
MeetingRepetition *meeting_repetition_new(Meeting *meeting, Arena *arena);
void meeting_repetition_check(Meeting *meeting, int64_t now_ps);  // all that can go on at the instant has

// ---- rates.c
RateCache *rate_cache_new(Arena *arena);
void rates_update(Simulation *simulation);

// ---- attribution.c
void attribution_start(Simulation *simulation, const Actor *actor, const Instance *instance);
void attribution_end(Simulation *simulation, const Actor *actor);
void attribution_finish(Simulation *simulation, const Actor *actor);

// Adds what has been added since `before` that many more times.
Totals totals_new(const Simulation *simulation, Arena *arena);
void totals_take(const Simulation *simulation, Totals *totals);
void totals_add(Simulation *simulation, const Totals *before, int64_t count);

// ---- repetition.c
Repetition *repetition_new(const Simulation *simulation, Arena *arena);
void repetition_check(Simulation *simulation);

// ---- actor_queue.c
void actor_queue_init(ActorQueue *queue, int32_t actors, Arena *arena);
void actor_queue_sift(ActorQueue *queue, int32_t actor);

static inline int64_t actor_next(const Actor *actor, uint32_t lanes) {
    int64_t next = INT64_MAX;
    for (uint32_t busy = lanes & ~actor->idle; busy; busy &= busy - 1) {
        const int64_t of_lane = actor->next_ps[__builtin_ctz(busy)];
        next = of_lane < next ? of_lane : next;
    }
    return next;
}

// The actor with the least key, of equal ones the lowest.
static inline int32_t actor_queue_first(ActorQueue *queue, const Actor *actors, uint32_t lanes) {
    if (!queue->scanned) {
        return queue->heap[0];
    }
    for (; queue->stale; queue->stale &= queue->stale - 1) {
        const int actor = __builtin_ctz(queue->stale);
        queue->key[actor] = actor_next(&actors[actor], lanes);
    }
    int32_t first = 0;
    for (int32_t i = 1; i < queue->count; i++) {
        first = queue->key[i] < queue->key[first] ? i : first;
    }
    return first;
}

static inline void actor_queue_update(ActorQueue *queue, int32_t actor, const Actor *state, uint32_t lanes) {
    if (queue->scanned) {
        queue->stale |= 1u << actor;
        return;
    }
    const int64_t next = actor_next(state, lanes);
    if (next != queue->key[actor]) {
        queue->key[actor] = next;
        actor_queue_sift(queue, actor);
    }
}
