// See the header.

#include "sim/engine/walk_path.h"

WalkPath walk_path_new(const EngineProgram *compiled, Arena *arena) {
    const int32_t most = 2 * compiled->step->segment_count * (PATH_ITERATIONS + 1) + 1;
    return (WalkPath){.steps = ARENA_UNCLEARED(arena, PathStep, most)};
}

static void add_layers(const Segment *segments, int32_t index, int32_t micro, WalkPath *path) {
    const Segment *loop = &segments[index];
    for (int32_t i = 0; i < loop->count && i <= PATH_ITERATIONS; i++) {
        for (int32_t s = index + 1; s < loop->end; s++) {
            path->steps[path->count++] = (PathStep){.segment = s,
                                                    .layer_loop = index,
                                                    .layer = loop->first + i * loop->step,
                                                    .rest = i == PATH_ITERATIONS,
                                                    .micro_loop = micro};
        }
    }
}

// Segments [from, end). behind: these come after the stretch's micro-step loop, or there is no such loop.
static void add_segments(const EngineProgram *compiled, int32_t from, int32_t end, bool behind, WalkPath *path) {
    const Segment *segments = compiled->step->segments;
    int32_t micro = -1;
    for (int32_t s = from; s < end; s++) {
        if (segments[s].kind == SEGMENT_MICRO_STEPS) {
            micro = s;
            continue;
        }
        if (segments[s].kind == SEGMENT_LAYERS) {
            add_layers(segments, s, micro, path);
            s = segments[s].end - 1;
        } else {
            path->steps[path->count++] = (PathStep){.segment = s, .layer_loop = -1, .micro_loop = micro};
        }
        if (micro >= 0 && s + 1 == segments[micro].end) {
            const bool again = behind && segments[micro].count > 1;
            path->steps[path->count - 1].again = again ? compiled->shapes[micro].lanes : 0;
            micro = -1;
        }
    }
}

void walk_path_make(const EngineProgram *compiled, const WalkStretch *stretch, WalkPath *path) {
    const Segment *segments = compiled->step->segments;
    const int32_t body_end = stretch->repeat >= 0 ? segments[stretch->repeat].end : stretch->end;
    path->count = 0;
    add_segments(compiled, stretch->end, body_end, false, path);
    if (!stretch->last) {
        add_segments(compiled, stretch->repeat + 1, stretch->segment, false, path);
        if (path->count > 0) {
            path->steps[path->count - 1].again = compiled->shapes[stretch->repeat].lanes;
        }
    }
    path->in_loop = path->count;
    add_segments(compiled, body_end, compiled->step->segment_count, true, path);
}

PathPlace walk_path_find(const EngineProgram *compiled, const WalkPath *path, int lane, int32_t passed) {
    const StepProgram *program = compiled->step;
    for (int32_t i = 0; i < path->count; i++) {
        const PathStep *step = &path->steps[i];
        const Segment *segment = &program->segments[step->segment];
        const bool has_lane = compiled->shapes[step->segment].lanes >> lane & 1;
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
