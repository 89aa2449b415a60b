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

// A segment in a layer loop, from an iteration on, for the given number of iterations.
static void add_layers(const EngineProgram *compiled, const Segment *body, const Segment *loop, int32_t from,
                       int64_t times, WalkDistance *distance) {
    for (int32_t t = body->first_task; t < body->first_task + body->task_count; t++) {
        add_task(compiled, t, times * open_iterations(compiled->step, &compiled->step->tasks[t], loop, from), distance);
    }
}

// What is left of the stretch.
static void add_stretch(const Walker *walker, WalkDistance *distance) {
    const EngineProgram *compiled = walker->compiled;
    const Segment *segments = compiled->step->segments;
    const Segment *stretch = &segments[walker->stretch.segment], *here = &segments[walker->segment];
    const int32_t end = here->first_task + here->task_count;
    if (stretch->kind == SEGMENT_TASKS) {
        add_once(compiled, here->first_task + walker->task, end, 0, distance);
        return;
    }
    const bool entered = here != stretch;
    if (entered) {
        add_once(compiled, here->first_task + walker->task, end, walker->layer, distance);
        for (const Segment *rest = here + 1; rest < &segments[walker->stretch.end]; rest++) {
            add_once(compiled, rest->first_task, rest->first_task + rest->task_count, walker->layer, distance);
        }
    }
    const int32_t from = entered ? walker->loops[walker->depth - 1].iteration + 1 : 0;
    for (const Segment *body = stretch + 1; body < &segments[walker->stretch.end]; body++) {
        add_layers(compiled, body, stretch, from, 1, distance);
    }
}

WalkDistance walker_distance(const Walker *walker, const WalkPath *path, PathPlace place) {
    const EngineProgram *compiled = walker->compiled;
    const Segment *segments = compiled->step->segments;
    const PathStep *last = walk_path_step(path, place.step);
    WalkDistance distance = {0};
    add_stretch(walker, &distance);
    for (int32_t i = 0; i < place.step; i++) {
        const PathStep *step = walk_path_step(path, i);
        const Segment *segment = &segments[step->segment];
        const bool whole = step->micro_loop >= 0 && step->micro_loop != last->micro_loop;
        const int64_t times = whole ? segments[step->micro_loop].count : 1;
        if (step->rest) {
            add_layers(compiled, segment, &segments[step->layer_loop], PATH_ITERATIONS, times, &distance);
        } else {
            WalkDistance once = {0};
            add_once(compiled, segment->first_task, segment->first_task + segment->task_count, step->layer, &once);
            distance.tasks += times * once.tasks;
            distance.host_ps += times * once.host_ps;
        }
    }
    add_once(compiled, segments[last->segment].first_task, place.task, last->layer, &distance);
    return distance;
}
