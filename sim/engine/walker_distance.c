// How far ahead a task is, without going there: host time and number of the tasks in between, by loops.

#include "sim/engine/walker.h"

static int64_t open_iterations(const StepProgram *program, const Task *task, const Segment *loop, int32_t from) {
    if (task->layer_guard == 0) {
        return loop->count - from;
    }
    int64_t open = 0;
    for (int32_t i = from; i < loop->count; i++) {
        open += step_guard_open(program, task, loop->first + i * loop->step);
    }
    return open;
}

static void add_task(const EngineProgram *compiled, int32_t index, int64_t times, WalkDistance *distance) {
    distance->tasks += times;
    distance->host_ps += times * compiled->tasks[index].host_ps;
}

// Tasks first .. end - 1, once, at this layer.
static void add_once(const EngineProgram *compiled, int32_t first, int32_t end, int32_t layer, WalkDistance *distance) {
    for (int32_t t = first; t < end; t++) {
        add_task(compiled, t, step_guard_open(compiled->step, &compiled->step->tasks[t], layer), distance);
    }
}

// A layer loop from an iteration on, so many times.
static void add_layers(const EngineProgram *compiled, int32_t index, int32_t from, int64_t times,
                       WalkDistance *distance) {
    const Segment *loop = &compiled->step->segments[index];
    for (int32_t s = index + 1; s < loop->end; s++) {
        const Segment *body = &compiled->step->segments[s];
        for (int32_t t = body->first_task; t < body->first_task + body->task_count; t++) {
            const int64_t open = open_iterations(compiled->step, &compiled->step->tasks[t], loop, from);
            add_task(compiled, t, open * times, distance);
        }
    }
}

static void add_segments(const EngineProgram *compiled, int32_t from, int32_t end, int64_t times,
                         WalkDistance *distance) {
    const Segment *segments = compiled->step->segments;
    for (int32_t s = from; s < end; s++) {
        if (segments[s].kind == SEGMENT_MICRO_STEPS) {
            add_segments(compiled, s + 1, segments[s].end, times * segments[s].count, distance);
            s = segments[s].end - 1;
        } else if (segments[s].kind == SEGMENT_LAYERS) {
            add_layers(compiled, s, 0, times, distance);
            s = segments[s].end - 1;
        } else {
            WalkDistance once = {0};
            add_once(compiled, segments[s].first_task, segments[s].first_task + segments[s].task_count, 0, &once);
            distance->tasks += times * once.tasks;
            distance->host_ps += times * once.host_ps;
        }
    }
}

WalkDistance walker_distance(const Walker *walker, EngineTaskPlace place) {
    const EngineProgram *compiled = walker->compiled;
    const Segment *segments = compiled->step->segments;
    WalkDistance distance = {0};
    int32_t s = walker->segment;
    if (segments[s].kind == SEGMENT_TASKS) {
        const int32_t first = segments[s].first_task;
        add_once(compiled, first + walker->task, first + segments[s].task_count, walker->layer, &distance);
        s++;
    }
    for (int32_t depth = walker->depth - 1; depth >= 0; depth--) {
        const LoopRun *run = &walker->loops[depth];
        const Segment *loop = &segments[run->segment];
        if (loop->kind == SEGMENT_LAYERS) {
            for (; s < loop->end; s++) {
                add_once(compiled, segments[s].first_task, segments[s].first_task + segments[s].task_count,
                         walker->layer, &distance);
            }
            add_layers(compiled, run->segment, run->iteration + 1, 1, &distance);
        } else {
            add_segments(compiled, s, loop->end, 1, &distance);
            add_segments(compiled, run->segment + 1, loop->end, loop->count - run->iteration - 1, &distance);
        }
        s = loop->end;
    }
    add_segments(compiled, s, place.segment, 1, &distance);
    add_once(compiled, segments[place.segment].first_task, place.task, 0, &distance);
    return distance;
}
