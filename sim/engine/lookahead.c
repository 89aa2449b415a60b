// How far the walk must be ahead of the simulation. A lane without a queued task forces the walk on only if its next
// task could start before the walk gets there anyway. It cannot when it waits for a task that has not been walked yet:
// when something between the stretch being walked and the task surely records the very slot that it waits for, or is
// an earlier collective of its communicator. Nor need the walk go there for a task outside the loops when nothing on
// the way to it can change what it waits for: it is queued early, with the time at which the host will have issued it,
// and the walk passes over it later. Everything else is looked for eagerly, slots of a micro-step of their own too:
// always right, but it costs memory, and a loop that the walk has left is not repeated.

#include <string.h>

#include "sim/engine/engine_program.h"

// Tasks of a segment, all or the first of them.
typedef struct TaskRange {
    int32_t first, count;
    int32_t layer_loop;  // its segment, or -1
} TaskRange;

typedef struct Ahead {
    const EngineProgram *compiled;
    uint32_t lanes;     // of the whole program
    TaskRange *ranges;  // collected so far, in the order in which they are first issued after the stretch
    int32_t count;
    int32_t passed;      // tasks of the lane that are left out of account: queued early
    bool *queued_early;  // per task, of the stretch: the walk need not come there before it runs
    int32_t most_early;  // per lane
} Ahead;

static bool surely_runs(const EngineTask *task) {
    return task->guard == 0;
}

// A task that waits for this one cannot start before the walk has been here.
static bool holds_back(const Ahead *ahead, int32_t task) {
    return surely_runs(&ahead->compiled->tasks[task]) && !ahead->queued_early[task];
}

static bool surely_records(const EngineTask *recorder, const EventSite *sites, const EventSite *wait, bool same_layer) {
    for (int32_t i = 0; i < recorder->record_count; i++) {
        const EventSite *record = &sites[recorder->first_record + i];
        if (record->event != wait->event || record->micro_steps > 1 || wait->micro_steps > 1) {
            continue;
        }
        const bool fixed = record->index.layer_scale == 0 && wait->index.layer_scale == 0;
        const bool shifted = record->index.layer_scale == wait->index.layer_scale && same_layer;
        if (wait->slots == 1 || ((fixed || shifted) && record->index.layer_offset == wait->index.layer_offset)) {
            return true;
        }
    }
    return false;
}

static bool waits_for(const EngineProgram *compiled, const EngineTask *task, const EngineTask *other, bool same_layer) {
    if (task->group >= 0 && other->group >= 0 && (compiled->siblings[task->lane] >> other->lane & 1)) {
        return true;
    }
    for (int32_t k = 0; k < task->wait_count; k++) {
        if (surely_records(other, compiled->sites, &compiled->sites[task->first_wait + k], same_layer)) {
            return true;
        }
    }
    return false;
}

// Does the task, which comes after the ranges, wait for one of them?
static bool waits_ahead(const Ahead *ahead, int32_t index) {
    const EngineProgram *compiled = ahead->compiled;
    const EngineTask *task = &compiled->tasks[index];
    if (task->wait_count == 0 && task->group < 0) {
        return false;
    }
    for (int32_t i = 0; i < ahead->count; i++) {
        const TaskRange *range = &ahead->ranges[i];
        const bool same_layer = range->layer_loop == ahead->ranges[ahead->count - 1].layer_loop;
        for (int32_t t = range->first; t < range->first + range->count; t++) {
            if (holds_back(ahead, t) && waits_for(compiled, task, &compiled->tasks[t], same_layer)) {
                return true;
            }
        }
    }
    return false;
}

typedef enum { NOT_FOUND, FOUND_SAFE, FOUND_EAGER } Found;

// Collects the tasks of segments [from, to) until one of this lane comes that is not passed over.
static Found collect(Ahead *ahead, int32_t from, int32_t to, int lane) {
    const StepProgram *program = ahead->compiled->step;
    int32_t loop = -1, loop_end = -1, left = ahead->passed;
    for (int32_t s = from; s < to; s++) {
        const Segment *segment = &program->segments[s];
        loop = s >= loop_end ? -1 : loop;
        if (segment->kind == SEGMENT_LAYERS) {
            loop = s;
            loop_end = segment->end;
        }
        if (segment->kind != SEGMENT_TASKS) {
            continue;
        }
        TaskRange *range = &ahead->ranges[ahead->count++];
        *range = (TaskRange){segment->first_task, segment->task_count, loop};
        const bool has_lane = ahead->compiled->shapes[s].lanes >> lane & 1;
        for (int32_t t = 0; has_lane && t < segment->task_count; t++) {
            if (ahead->compiled->tasks[segment->first_task + t].lane == lane && left-- <= 0) {
                range->count = t;
                // A guarded first task may be skipped over; what comes after it is not looked at: eager.
                const bool surely = surely_runs(&ahead->compiled->tasks[segment->first_task + t]);
                return surely && waits_ahead(ahead, segment->first_task + t) ? FOUND_SAFE : FOUND_EAGER;
            }
        }
    }
    return NOT_FOUND;
}

// Is the lane's next task after segments [.., end) safely far away? repeat: segment of the micro-step loop around, or
// -1.
static bool lane_is_eager(Ahead *ahead, int32_t end, int32_t repeat, int lane) {
    const StepProgram *program = ahead->compiled->step;
    ahead->count = 0;
    const int32_t body_end = repeat >= 0 ? program->segments[repeat].end : program->segment_count;
    const Found here = collect(ahead, end, body_end, lane);
    if (here != NOT_FOUND || repeat < 0) {
        return here == FOUND_EAGER;
    }
    const int32_t before = ahead->count;
    const Found again = program->segments[repeat].count > 1 ? collect(ahead, repeat + 1, end, lane) : NOT_FOUND;
    ahead->count = before;
    return again == FOUND_EAGER || collect(ahead, body_end, program->segment_count, lane) == FOUND_EAGER;
}

static bool records_event(const EngineProgram *compiled, const EngineTask *task, int32_t event) {
    for (int32_t i = 0; i < task->record_count; i++) {
        if (compiled->sites[task->first_record + i].event == event) {
            return true;
        }
    }
    return false;
}

// May it change what a later task waits for?
static bool may_hold_back(const EngineProgram *compiled, const EngineTask *other, const EngineTask *task) {
    if (task->group >= 0 && other->group >= 0 && (compiled->siblings[task->lane] >> other->lane & 1)) {
        return true;
    }
    for (int32_t i = 0; i < task->wait_count; i++) {
        if (records_event(compiled, other, compiled->sites[task->first_wait + i].event)) {
            return true;
        }
    }
    return false;
}

// Tasks of segment s before this one (count: all) leave it alone.
static bool leaves_alone(const EngineProgram *compiled, int32_t s, int32_t count, const EngineTask *task) {
    const Segment *segment = &compiled->step->segments[s];
    for (int32_t t = 0; segment->kind == SEGMENT_TASKS && t < segment->task_count && t < count; t++) {
        if (may_hold_back(compiled, &compiled->tasks[segment->first_task + t], task)) {
            return false;
        }
    }
    return true;
}

// Is the lane's task after `passed` others outside the loops, and left alone from segment `from` on? Nothing of the
// lane may come before segment `after`.
static bool task_is_early(const EngineProgram *compiled, int32_t from, int32_t after, int lane, int32_t passed) {
    for (int32_t s = from; s < after; s++) {
        if (compiled->shapes[s].lanes >> lane & 1) {
            return false;
        }
    }
    const EngineTaskPlace place = engine_task_after(compiled, after, lane, passed);
    if (place.segment < 0 || compiled->tasks[place.task].guard != 0) {
        return false;
    }
    const EngineTask *task = &compiled->tasks[place.task];
    bool alone =
        leaves_alone(compiled, place.segment, place.task - compiled->step->segments[place.segment].first_task, task);
    for (int32_t s = from; alone && s < place.segment; s++) {
        alone = leaves_alone(compiled, s, INT32_MAX, task);
    }
    return alone;
}

EngineTaskPlace engine_task_after(const EngineProgram *compiled, int32_t after, int lane, int32_t passed) {
    const StepProgram *program = compiled->step;
    for (int32_t s = after; s < program->segment_count; s++) {
        const Segment *segment = &program->segments[s];
        if (segment->kind != SEGMENT_TASKS) {
            if (compiled->shapes[s].lanes >> lane & 1) {
                break;
            }
            s = segment->end - 1;
            continue;
        }
        for (int32_t t = segment->first_task; t < segment->first_task + segment->task_count; t++) {
            if (compiled->tasks[t].lane == lane && passed-- == 0) {
                return (EngineTaskPlace){s, t};
            }
        }
    }
    return (EngineTaskPlace){-1, -1};
}

// What is walked before the simulation goes on: a layer loop or a segment of tasks; and the micro-step loop around it,
// or -1.
typedef struct Stretch {
    int32_t segment, end, repeat;
} Stretch;

// How many tasks of a lane that the stretch does not use can be queued early, the next one being safely far away; -1
// when the walk must look for them.
static int32_t early_tasks(Ahead *ahead, const Stretch *stretch, int lane) {
    const Segment *segments = ahead->compiled->step->segments;
    const bool again = stretch->repeat >= 0 && segments[stretch->repeat].count > 1;
    const int32_t from = again ? stretch->repeat + 1 : stretch->segment;
    const int32_t after = stretch->repeat >= 0 ? segments[stretch->repeat].end : stretch->end;
    for (ahead->passed = 0; lane_is_eager(ahead, stretch->end, stretch->repeat, lane); ahead->passed++) {
        if (ahead->passed == ahead->most_early || !task_is_early(ahead->compiled, from, after, lane, ahead->passed)) {
            return -1;
        }
        ahead->queued_early[engine_task_after(ahead->compiled, after, lane, ahead->passed).task] = true;
    }
    return ahead->passed;
}

// False when tasks that are queued early lead to others that would have to be.
static bool find_stretch(Ahead *ahead, const Stretch *stretch, LoopShape *shape) {
    memset(ahead->queued_early, 0, (size_t)ahead->compiled->step->task_count);
    shape->eager_lanes = shape->lanes;
    shape->early_lanes = 0;
    for (int round = 0; round < 2 && (round == 0 || shape->early_lanes); round++) {
        for (uint32_t left = ahead->lanes & ~shape->lanes; left; left &= left - 1) {
            const int lane = __builtin_ctz(left);
            const int32_t early = early_tasks(ahead, stretch, lane);
            if (round > 0 && (early < 0 ? !(shape->eager_lanes >> lane & 1) : early != shape->early[lane])) {
                return false;
            }
            shape->eager_lanes |= early < 0 ? 1u << lane : 0;
            shape->early_lanes |= early > 0 ? 1u << lane : 0;
            shape->early[lane] = (uint8_t)(early > 0 ? early : 0);
        }
    }
    return true;
}

static bool find_all(Ahead *ahead, EngineProgram *compiled) {
    const Segment *segments = compiled->step->segments;
    Stretch stretch = {.repeat = -1};
    bool found = true;
    for (int32_t s = 0; found && s < compiled->step->segment_count; s++) {
        const int32_t repeat = stretch.repeat >= 0 && s >= segments[stretch.repeat].end ? -1 : stretch.repeat;
        stretch = (Stretch){.segment = s,
                            .end = segments[s].kind == SEGMENT_TASKS ? s + 1 : segments[s].end,
                            .repeat = segments[s].kind == SEGMENT_MICRO_STEPS ? s : repeat};
        if (segments[s].kind == SEGMENT_MICRO_STEPS) {
            compiled->shapes[s].eager_lanes = compiled->shapes[s].lanes;
        } else {
            found = find_stretch(ahead, &stretch, &compiled->shapes[s]);
        }
    }
    return found;
}

void engine_find_eager_lanes(EngineProgram *compiled, Arena *arena) {
    const int32_t tasks = compiled->step->task_count;
    Ahead ahead = {.compiled = compiled,
                   .ranges = ARENA_UNCLEARED(arena, TaskRange, 2 * compiled->step->segment_count + 1),
                   .queued_early = ARENA_ARRAY(arena, bool, tasks),
                   .most_early = UINT8_MAX};
    for (int32_t s = 0; s < compiled->step->segment_count; s++) {
        ahead.lanes |= compiled->shapes[s].lanes;
    }
    if (!find_all(&ahead, compiled)) {
        ahead.most_early = 0;
        find_all(&ahead, compiled);
    }
}
