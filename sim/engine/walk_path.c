// See the header.

#include "sim/engine/walk_path.h"

// Steps that are being listed.
typedef struct StepList {
    PathStep *steps;
    int32_t count;
} StepList;

static PathStep *room_for_steps(const EngineProgram *compiled, Arena *arena) {
    return ARENA_UNCLEARED(arena, PathStep, compiled->step->segment_count * (PATH_ITERATIONS + 1) + 1);
}

static bool step_has_lane(const PathStep *step, int lane) {
    return (step->lanes | step->again) >> lane & 1;
}

WalkPath walk_path_new(const EngineProgram *compiled, Arena *arena) {
    return (WalkPath){.in_loop = room_for_steps(compiled, arena)};
}

static void add_layers(const EngineProgram *compiled, int32_t index, int32_t micro, StepList *list) {
    const Segment *loop = &compiled->step->segments[index];
    for (int32_t i = 0; i < loop->count && i <= PATH_ITERATIONS; i++) {
        for (int32_t s = index + 1; s < loop->end; s++) {
            list->steps[list->count++] = (PathStep){.segment = s,
                                                    .layer_loop = index,
                                                    .layer = loop->first + i * loop->step,
                                                    .rest = i == PATH_ITERATIONS,
                                                    .micro_loop = micro,
                                                    .lanes = compiled->shapes[s].lanes};
        }
    }
}

// Segments [from, end). behind: these come after the stretch's micro-step loop, or there is no such loop.
static void add_segments(const EngineProgram *compiled, int32_t from, int32_t end, bool behind, StepList *list) {
    const Segment *segments = compiled->step->segments;
    int32_t micro = -1;
    for (int32_t s = from; s < end; s++) {
        if (segments[s].kind == SEGMENT_MICRO_STEPS) {
            micro = s;
            continue;
        }
        if (segments[s].kind == SEGMENT_LAYERS) {
            add_layers(compiled, s, micro, list);
            s = segments[s].end - 1;
        } else {
            list->steps[list->count++] =
                (PathStep){.segment = s, .layer_loop = -1, .micro_loop = micro, .lanes = compiled->shapes[s].lanes};
        }
        if (micro >= 0 && s + 1 == segments[micro].end) {
            const bool again = behind && segments[micro].count > 1;
            list->steps[list->count - 1].again = again ? compiled->shapes[micro].lanes : 0;
            micro = -1;
        }
    }
}

// Of each lane: the first step from each step on that concerns it.
static void find_next(EngineProgram *compiled, const StepList *whole, Arena *arena) {
    const int32_t stride = whole->count + 1;
    int32_t *const next = ARENA_UNCLEARED(arena, int32_t, ENGINE_LANES * stride);
    for (int lane = 0; lane < ENGINE_LANES; lane++) {
        int32_t *of_lane = next + lane * stride;
        of_lane[whole->count] = whole->count;
        for (int32_t i = whole->count - 1; i >= 0; i--) {
            of_lane[i] = step_has_lane(&whole->steps[i], lane) ? i : of_lane[i + 1];
        }
    }
    compiled->path_next = next;
}

void walk_path_compile(EngineProgram *compiled, Arena *arena) {
    const Segment *segments = compiled->step->segments;
    StepList whole = {.steps = room_for_steps(compiled, arena)};
    int32_t *const first = ARENA_UNCLEARED(arena, int32_t, compiled->step->segment_count + 1);
    for (int32_t s = 0, end; s < compiled->step->segment_count; s = end) {
        end = segments[s].kind == SEGMENT_TASKS ? s + 1 : segments[s].end;
        first[s] = whole.count;
        add_segments(compiled, s, end, true, &whole);
    }
    first[compiled->step->segment_count] = whole.count;
    compiled->path = whole.steps;
    compiled->path_first = first;
    find_next(compiled, &whole, arena);
}

void walk_path_make(const EngineProgram *compiled, const WalkStretch *stretch, WalkPath *path) {
    StepList list = {.steps = path->in_loop};
    int32_t end = stretch->end;
    if (stretch->repeat >= 0) {
        end = compiled->step->segments[stretch->repeat].end;
        add_segments(compiled, stretch->end, end, false, &list);
        if (!stretch->last) {
            add_segments(compiled, stretch->repeat + 1, stretch->segment, false, &list);
            if (list.count > 0) {
                list.steps[list.count - 1].again = compiled->shapes[stretch->repeat].lanes;
            }
        }
    }
    path->loop_count = list.count;
    path->behind = compiled->path + compiled->path_first[end];
    path->count = list.count + compiled->path_first[compiled->step->segment_count] - compiled->path_first[end];
}

// The first step from this one on that concerns the lane; the path's count where there is none.
static int32_t next_step(const EngineProgram *compiled, const WalkPath *path, int lane, int32_t from) {
    for (; from < path->loop_count; from++) {
        if (step_has_lane(&path->in_loop[from], lane)) {
            return from;
        }
    }
    const int32_t stride = compiled->path_first[compiled->step->segment_count] + 1;
    const int32_t before = (int32_t)(path->behind - compiled->path) - path->loop_count;
    return compiled->path_next[lane * stride + before + from] - before;
}

PathPlace walk_path_find(const EngineProgram *compiled, const WalkPath *path, int lane, int32_t passed) {
    const StepProgram *program = compiled->step;
    for (int32_t i = 0; (i = next_step(compiled, path, lane, i)) < path->count; i++) {
        const PathStep *step = walk_path_step(path, i);
        const Segment *segment = &program->segments[step->segment];
        const bool has_lane = step->lanes >> lane & 1;
        if (has_lane && step->rest) {
            return (PathPlace){-1, -1, false};
        }
        for (int32_t t = segment->first_task; has_lane && t < segment->first_task + segment->task_count; t++) {
            if (compiled->tasks[t].lane == lane && step_guard_open(program, &program->tasks[t], step->layer) &&
                passed-- == 0) {
                return (PathPlace){i, t, true};
            }
        }
        if (step->again >> lane & 1) {
            return (PathPlace){-1, -1, false};
        }
    }
    return (PathPlace){-1, -1, true};
}
