// Orders are kept for as many micro-steps as show the pace: in a group of micro-steps the stages do what they did in
// the one before, as soon as the first stage has got a gradient back.

#include "sim/analytic/pipeline.h"

#include <math.h>
#include <string.h>

#include "sim/base/error.h"

typedef enum { PART_FORWARD, PART_FIRST_FORWARD, PART_BACKWARD, PART_LAST_BACKWARD, PART_WORKS } PartWork;

// One work of a stage. Hundreds of thousands are gone through, over and over: no more than that.
typedef struct PipelineWork {
    uint32_t after;        // what it waits for: twice the place in the order, from 1, and 1 where it is another stage's
    uint16_t stage, work;  // by part, PART_WORKS of each
} PipelineWork;

struct PipelineOrder {
    PipelineWork *works;
    int32_t count;
    ScheduleAction *actions;  // of each stage, as the schedule orders them
    int32_t stage_actions;
    int32_t stages, parts, backward_works;  // that a backward is cut into, equally long
    double *done_s;                         // while it is run: of each place, without and with the message that follows
    double *free_s;                         // of each stage
    double *issued_s;             // and when a stage's host, which never waits, has issued what was run so far
    double *work_s;               // of each part and its works, as the host issues them
    double *device_s;             // and as the device takes
    double *before_s, *behind_s;  // and as it waits at messages before and behind it
    double *sent_s;               // of each stage, when its last message has gone
    bool *sends;                  // each part and its works, to another stage
    bool queue;                   // messages that take longer than some of them
    int32_t *works_of;            // how many there are of each of these
    int16_t *stage_of;            // of each part
    int32_t *held;                // by stage
    double *kept_s;               // free_s, issued_s and sent_s where an order of fewer micro-steps goes another way
    int32_t shared;               // works until then; 0 = not counted
};

// ---- making one

typedef struct StageQueue {
    const ScheduleAction *actions;
    int32_t next;
} StageQueue;

typedef struct Orderer {
    const PipelineShape *shape;
    StageQueue *queues;
    PipelineOrder *order;
    uint32_t *done;  // of each action: its place in the order; 0 = not yet
} Orderer;

static int32_t stage_of(const PipelineShape *shape, int32_t part) {
    const bool back = shape->schedule->folded && part / shape->stages % 2 == 1;
    return back ? shape->stages - 1 - part % shape->stages : part % shape->stages;
}

// Action 0 is unused.
static int32_t action_of(const PipelineShape *shape, Work work, int32_t part, int32_t micro_step) {
    const int32_t parts = shape->stages * shape->chunks;
    return 1 + ((int32_t)work * parts + part) * shape->micro_steps + micro_step;
}

// What must be done before the action; 0: nothing. *message: of another stage.
static int32_t action_before(const PipelineShape *shape, int32_t stage, const ScheduleAction *action, bool *message) {
    const int32_t part = pipeline_part(shape, stage, action->chunk), last = shape->stages * shape->chunks - 1;
    const bool backward = action->work == WORK_BACKWARD, turns = backward && part == last;
    const int32_t next = turns ? part : part + (backward ? 1 : -1);
    const int32_t before = action->work == WORK_WEIGHTS ? -1 : next;  // weights follow the stage's own backward
    *message = before >= 0 && stage_of(shape, before) != stage;
    return before < 0 ? 0
                      : action_of(shape, backward && !turns ? WORK_BACKWARD : WORK_FORWARD, before, action->micro_step);
}

// works_of: of the part, how many of each kind there are already.
static PartWork part_work(const PipelineShape *shape, Work work, const int32_t *works_of) {
    const int32_t backwards = (schedule_works(shape->schedule) - 1) * shape->micro_steps;
    const bool forward = work == WORK_FORWARD, first = works_of[PART_FIRST_FORWARD] == 0;
    const bool last = works_of[PART_BACKWARD] == backwards - 1;
    return forward ? first ? PART_FIRST_FORWARD : PART_FORWARD : last ? PART_LAST_BACKWARD : PART_BACKWARD;
}

// To the stage of the part that follows, forward or backward.
static bool sends(const PipelineShape *shape, int32_t stage, int32_t part, Work work) {
    const int32_t next = part + (work == WORK_FORWARD ? 1 : -1), parts = shape->stages * shape->chunks;
    return work != WORK_WEIGHTS && next >= 0 && next < parts && stage_of(shape, next) != stage;
}

// Takes what a stage can do next, if what that waits for was done in an earlier round: works of a round do not wait for
// each other, and a processor runs them side by side.
static void take_ready(Orderer *orderer, int32_t stage, int32_t actions, uint32_t earlier) {
    const PipelineShape *shape = orderer->shape;
    PipelineOrder *order = orderer->order;
    StageQueue *queue = &orderer->queues[stage];
    if (queue->next < actions) {
        const ScheduleAction *action = &queue->actions[queue->next];
        const int32_t part = pipeline_part(shape, stage, action->chunk);
        bool message;
        const int32_t before = action_before(shape, stage, action, &message);
        if (before > 0 && (orderer->done[before] == 0 || orderer->done[before] > earlier)) {
            return;
        }
        const int32_t first = part * PART_WORKS;
        const int32_t work = first + (int32_t)part_work(shape, action->work, &order->works_of[first]);
        order->works[order->count++] = (PipelineWork){
            .after = 2 * orderer->done[before] + message, .stage = (uint16_t)stage, .work = (uint16_t)work};
        order->works_of[work]++;
        order->sends[work] |= sends(shape, stage, part, action->work);
        order->stage_of[part] = (int16_t)stage;
        orderer->done[action_of(shape, action->work, part, action->micro_step)] = (uint32_t)order->count;
        queue->next++;
    }
}

static int32_t most_held(const ScheduleAction *actions, int32_t count) {
    int32_t held = 0, most = 0;
    for (int32_t i = 0; i < count; i++) {
        held += actions[i].work == WORK_FORWARD ? 1 : actions[i].work == WORK_BACKWARD ? -1 : 0;
        most = held > most ? held : most;
    }
    return most;
}

static PipelineOrder *make_order(const PipelineShape *shape, Arena *arena) {
    ScheduleShape of = {
        .stages = shape->stages, .chunks = shape->chunks, .micro_steps = shape->micro_steps, .group = shape->group};
    const int32_t actions = schedule_action_count(shape->schedule, &of), places = 1 + actions * shape->stages;
    const int32_t parts = shape->stages * shape->chunks;
    PipelineOrder *order = ARENA_NEW(arena, PipelineOrder);
    *order = (PipelineOrder){.works = ARENA_UNCLEARED(arena, PipelineWork, places),
                             .actions = ARENA_UNCLEARED(arena, ScheduleAction, actions * shape->stages),
                             .stage_actions = actions,
                             .stages = shape->stages,
                             .parts = parts,
                             .backward_works = schedule_works(shape->schedule) - 1,
                             .done_s = ARENA_ARRAY(arena, double, 2 * places),
                             .free_s = ARENA_ARRAY(arena, double, shape->stages),
                             .issued_s = ARENA_ARRAY(arena, double, shape->stages),
                             .work_s = ARENA_UNCLEARED(arena, double, parts *PART_WORKS),
                             .device_s = ARENA_UNCLEARED(arena, double, parts *PART_WORKS),
                             .before_s = ARENA_UNCLEARED(arena, double, parts *PART_WORKS),
                             .behind_s = ARENA_UNCLEARED(arena, double, parts *PART_WORKS),
                             .sent_s = ARENA_ARRAY(arena, double, shape->stages),
                             .sends = ARENA_ARRAY(arena, bool, parts *PART_WORKS),
                             .works_of = ARENA_ARRAY(arena, int32_t, parts * PART_WORKS),
                             .stage_of = ARENA_ARRAY(arena, int16_t, parts),
                             .held = ARENA_ARRAY(arena, int32_t, shape->stages),
                             .kept_s = ARENA_ARRAY(arena, double, 3 * shape->stages)};
    Arena scratch = {0};
    Orderer orderer = {.shape = shape,
                       .queues = ARENA_ARRAY(&scratch, StageQueue, shape->stages),
                       .order = order,
                       .done = ARENA_ARRAY(&scratch, uint32_t, places)};
    for (of.stage = 0; of.stage < shape->stages; of.stage++) {
        ScheduleAction *queue = order->actions + (ptrdiff_t)of.stage * actions;
        orderer.queues[of.stage].actions = queue;
        schedule_order(shape->schedule, &of, queue);
        order->held[of.stage] = most_held(queue, actions);
    }
    for (int32_t earlier = -1; earlier < order->count;) {
        earlier = order->count;
        for (int32_t stage = 0; stage < shape->stages; stage++) {
            take_ready(&orderer, stage, actions, (uint32_t)earlier);
        }
    }
    ASSERT(order->count == actions * shape->stages);
    arena_free(&scratch);
    return order;
}

static PipelineOrder *find_order(PipelineOrders *known, const PipelineShape *shape) {
    const MemoKey key = {.words = {(uint64_t)(uintptr_t)shape->schedule,
                                   (uint64_t)shape->stages << 32 | (uint64_t)shape->chunks,
                                   (uint64_t)shape->group << 32 | (uint64_t)shape->micro_steps}};
    PipelineOrder *order = memo_find(&known->memo, &key);
    if (!order) {
        order = make_order(shape, known->arena);
        memo_add(&known->memo, &key, order, known->arena);
    }
    return order;
}

// ---- running one

static double last_end_s(const PipelineOrder *order) {
    double end_s = 0;
    for (int32_t stage = 0; stage < order->stages; stage++) {  // each does one after another
        end_s = order->free_s[stage] > end_s ? order->free_s[stage] : end_s;
    }
    return end_s;
}

// Where the host stops with the device it has never issued less than that has done: it need not be followed.
static void run_stopping(PipelineOrder *order, const PipelineWork *works, int32_t from, int32_t end,
                         const PipelineTimes *times) {
    const double message_s = times->message_s;
    double *known_s = order->done_s, *done_s = known_s + 2 * (from + 1), *free_s = order->free_s;
    const double *device_s = order->device_s;
#pragma GCC unroll 4
    for (const PipelineWork *work = works + from, *last = works + end; work < last; work++, done_s += 2) {
        const double ready_s = known_s[work->after], before_s = free_s[work->stage];
        const double end_s = (ready_s > before_s ? ready_s : before_s) + device_s[work->work];
        done_s[0] = free_s[work->stage] = end_s;
        done_s[1] = end_s + message_s;
    }
}

// Whether hosts stop or not, where a stage that sends does nothing until its message has gone, or its receiver slept
// before. The two others are this without either, in what most searches run.
static void run_held(PipelineOrder *order, const PipelineWork *works, int32_t from, int32_t end,
                     const PipelineTimes *times, bool stops) {
    for (int32_t at = from; at < end; at++) {
        const PipelineWork *work = &works[at];
        double *done_s = order->done_s + 2 * (at + 1), *free_s = &order->free_s[work->stage];
        const double host_s = order->issued_s[work->stage] + (stops ? 0 : order->work_s[work->work]);
        const double taken_s = fmax(order->done_s[work->after], *free_s + order->before_s[work->work]);
        done_s[0] = fmax(taken_s + order->device_s[work->work], host_s);
        done_s[1] = done_s[0] + times->message_s;
        *free_s = done_s[0] + order->behind_s[work->work];
        order->issued_s[work->stage] = host_s;
    }
}

static void run_issuing(PipelineOrder *order, const PipelineWork *works, int32_t from, int32_t end,
                        const PipelineTimes *times) {
    const double message_s = times->message_s;
    double *known_s = order->done_s, *done_s = known_s + 2 * (from + 1);
    double *free_s = order->free_s, *issued_s = order->issued_s;
    const double *work_s = order->work_s, *device_s = order->device_s;
#pragma GCC unroll 4
    for (const PipelineWork *work = works + from, *last = works + end; work < last; work++, done_s += 2) {
        const double ready_s = known_s[work->after], before_s = free_s[work->stage];
        const double host_s = issued_s[work->stage] + work_s[work->work];
        const double ahead_s = (ready_s > before_s ? ready_s : before_s) + device_s[work->work];
        const double end_s = ahead_s > host_s ? ahead_s : host_s;
        issued_s[work->stage] = host_s;
        done_s[0] = free_s[work->stage] = end_s;
        done_s[1] = end_s + message_s;
    }
}

// Whether hosts stop or not, where messages take longer than some work: one waits until the stage's last one has gone.
static void run_queued(PipelineOrder *order, const PipelineWork *works, int32_t from, int32_t end,
                       const PipelineTimes *times, bool stops) {
    for (int32_t at = from; at < end; at++) {
        const PipelineWork *work = &works[at];
        double *done_s = order->done_s + 2 * (at + 1), *free_s = &order->free_s[work->stage];
        double *sent_s = &order->sent_s[work->stage];
        const bool of_weights = work->after == 0 && work->work % PART_WORKS >= PART_BACKWARD;
        const bool sends = order->sends[work->work] && !of_weights;
        const double host_s = order->issued_s[work->stage] + (stops ? 0 : order->work_s[work->work]);
        done_s[0] = fmax(fmax(order->done_s[work->after], *free_s) + order->device_s[work->work], host_s);
        done_s[1] = (sends ? fmax(done_s[0], *sent_s) : done_s[0]) + times->message_s;
        *sent_s = sends ? done_s[1] : *sent_s;
        *free_s = done_s[0];
        order->issued_s[work->stage] = host_s;
    }
}

static bool stops(const PipelineTimes *times) {
    return times->device_share >= 1;
}

static bool stages_wait(const PipelineTimes *times) {
    return times->held_s > 0 || times->sleep_s > 0;
}

// A stage that does one work after another has sent a message before it has the next one, unless that takes longer.
static bool messages_queue(const PipelineOrder *order, const PipelineTimes *times) {
    bool queue = false;
    for (int32_t at = 0; at < order->parts * PART_WORKS && !queue; at++) {
        queue |= order->sends[at] && order->device_s[at] < times->message_s;
    }
    return queue;
}

// Of these works, with what the order has done before them; when the last stage ends.
static double run_works(PipelineOrder *order, const PipelineWork *works, int32_t from, int32_t end,
                        const PipelineTimes *times) {
    if (stages_wait(times)) {
        run_held(order, works, from, end, times, stops(times));
    } else if (order->queue) {
        run_queued(order, works, from, end, times, stops(times));
    } else if (stops(times)) {
        run_stopping(order, works, from, end, times);
    } else {
        run_issuing(order, works, from, end, times);
    }
    return last_end_s(order);
}

// A part takes from the one before it and sends to the next, and back.
static void add_waits(PipelineOrder *order, int32_t part, const PipelineTimes *times) {
    const bool before = part > 0, behind = part + 1 < order->parts;
    for (int work = 0; work < PART_WORKS; work++) {
        const int32_t at = part * PART_WORKS + work;
        const bool forward = work == PART_FORWARD || work == PART_FIRST_FORWARD;
        order->before_s[at] = (forward ? before : behind) ? times->sleep_s : 0;
        order->behind_s[at] = (forward ? behind : before) ? times->held_s : 0;
    }
}

static void begin_run(PipelineOrder *order, const PipelineTimes *times) {
    const double backward_share = (1 - times->forward_share) / order->backward_works;
    for (int32_t part = 0; part < order->parts; part++) {
        const double last_share = part < order->stages ? times->last_share : 0;
        const double share[PART_WORKS] = {times->forward_share, times->forward_share, backward_share,
                                          backward_share + last_share};
        const double waits_s[PART_WORKS] = {[PART_FIRST_FORWARD] = times->first_s ? times->first_s[part] : 0,
                                            [PART_LAST_BACKWARD] = times->last_s ? times->last_s[part] : 0};
        for (int work = 0; work < PART_WORKS; work++) {
            const int32_t at = part * PART_WORKS + work;
            order->work_s[at] = times->part_s[part] * share[work];
            order->device_s[at] = order->work_s[at] * times->device_share + waits_s[work];
        }
        if (stages_wait(times)) {
            add_waits(order, part, times);
        }
    }
    order->queue = messages_queue(order, times);
    for (int32_t stage = 0; stage < order->stages; stage++) {
        order->free_s[stage] = order->issued_s[stage] = order->sent_s[stage] = 0;
    }
}

// Works at the beginning that are the same with fewer micro-steps.
static int32_t count_shared(const PipelineOrder *order, const PipelineOrder *fewer) {
    int32_t shared = 0;
    while (shared < fewer->count && memcmp(&order->works[shared], &fewer->works[shared], sizeof *order->works) == 0) {
        shared++;
    }
    return shared;
}

// Both with these times; what they have in common is run once. *fewer_s: when the order of fewer micro-steps ends.
static double run_both(PipelineOrder *order, const PipelineOrder *fewer, const PipelineTimes *times, double *fewer_s) {
    order->shared = order->shared > 0 ? order->shared : count_shared(order, fewer);
    const int32_t shared = order->shared, stages = order->stages;
    const size_t bytes = (size_t)stages * sizeof(double);
    begin_run(order, times);
    run_works(order, fewer->works, 0, shared, times);
    memcpy(order->kept_s, order->free_s, bytes);
    memcpy(order->kept_s + stages, order->issued_s, bytes);
    memcpy(order->kept_s + 2 * stages, order->sent_s, bytes);
    *fewer_s = run_works(order, fewer->works, shared, fewer->count, times);
    memcpy(order->free_s, order->kept_s, bytes);
    memcpy(order->issued_s, order->kept_s + stages, bytes);
    memcpy(order->sent_s, order->kept_s + 2 * stages, bytes);
    return run_works(order, order->works, shared, order->count, times);
}

// Of a run that did not follow the host: what its stages have issued, but for the order of the additions.
static void sum_issued(PipelineOrder *order) {
    for (int32_t part = 0; part < order->parts; part++) {
        for (int work = 0; work < PART_WORKS; work++) {
            const int32_t at = part * PART_WORKS + work;
            order->issued_s[order->stage_of[part]] += order->works_of[at] * order->work_s[at];
        }
    }
}

// What the stage with most to issue needs for a micro-step of these.
static double issue_pace_s(const PipelineOrder *order, int32_t micro_steps) {
    double most_s = 0;
    for (int32_t stage = 0; stage < order->stages; stage++) {
        most_s = order->issued_s[stage] > most_s ? order->issued_s[stage] : most_s;
    }
    return most_s / micro_steps;
}

// No further micro-step takes less than the stage needs that has most to do in it, even where its first ones wait for
// others: of all parts' works, as the device takes.
static double work_pace_s(PipelineOrder *order) {
    double most_s = 0;
    for (int32_t stage = 0; stage < order->stages; stage++) {
        order->free_s[stage] = 0;
    }
    for (int32_t part = 0; part < order->parts; part++) {
        const double *device_s = &order->device_s[part * PART_WORKS];
        double *of_stage_s = &order->free_s[order->stage_of[part]];
        *of_stage_s += device_s[PART_FORWARD] + order->backward_works * device_s[PART_BACKWARD];
        most_s = *of_stage_s > most_s ? *of_stage_s : most_s;
    }
    return most_s;
}

// Micro-steps that go through the chunks together (interleaved.c), as many as stages where they are not grouped.
static int32_t group_of(const PipelineShape *shape) {
    const int32_t rounds = shape->micro_steps / shape->stages;
    return shape->chunks == 1 || rounds <= 1 ? shape->stages
           : shape->group > 0                ? shape->group
                                             : shape->micro_steps / rounds;
}

enum { GROUPS_BEFORE_PACE = 2 };
static const double ROUNDING = 1e-9;

// And what is left over for a last, smaller one.
static PipelineShape with_groups(const PipelineShape *shape, int32_t groups) {
    PipelineShape fewer = *shape;
    const int32_t rest = shape->group > 0 && shape->chunks > 1 ? shape->micro_steps % shape->group : 0;
    fewer.micro_steps = group_of(shape) * groups + rest;
    return fewer;
}

static bool is_short(const PipelineShape *shape) {
    return shape->schedule->written || shape->micro_steps <= with_groups(shape, GROUPS_BEFORE_PACE + 1).micro_steps;
}

bool pipeline_shows(const PipelineShape *shape, PipelineShape *few, PipelineShape *more) {
    *few = with_groups(shape, GROUPS_BEFORE_PACE);
    *more = with_groups(shape, GROUPS_BEFORE_PACE + 1);
    return !is_short(shape);
}

double pipeline_span_s(PipelineOrders *known, const PipelineShape *shape, const PipelineTimes *times) {
    PipelineShape few, more;
    if (!pipeline_shows(shape, &few, &more)) {
        PipelineOrder *all = find_order(known, shape);
        begin_run(all, times);
        return run_works(all, all->works, 0, all->count, times);
    }
    PipelineOrder *further = find_order(known, &more);
    double few_s;
    const double more_s = run_both(further, find_order(known, &few), times, &few_s);
    const double seen_s = more_s - few_s, least_s = work_pace_s(further) * group_of(shape);
    const double group_s = least_s > seen_s * (1 + ROUNDING) ? least_s : seen_s;
    const double step_s = more_s + group_s * (shape->micro_steps - more.micro_steps) / group_of(shape);
    if (stops(times)) {
        sum_issued(further);
    }
    return fmax(step_s, issue_pace_s(further, more.micro_steps) * shape->micro_steps);  // it may be slower only later
}

int32_t pipeline_held(PipelineOrders *known, const PipelineShape *shape, int32_t stage) {
    PipelineShape few, more;
    if (!pipeline_shows(shape, &few, &more)) {
        return find_order(known, shape)->held[stage];
    }
    const int32_t held = find_order(known, &more)->held[stage], rise = held - find_order(known, &few)->held[stage];
    return held + rise * (shape->micro_steps - more.micro_steps) / group_of(shape);
}

const ScheduleAction *pipeline_actions(PipelineOrders *known, const PipelineShape *shape, int32_t stage,
                                       int32_t *count) {
    const PipelineOrder *order = find_order(known, shape);
    *count = order->stage_actions;
    return order->actions + (ptrdiff_t)stage * order->stage_actions;
}
