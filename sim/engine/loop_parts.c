// See the header. Union of actors over the groups of the loop's collectives, guarded ones included.

#include "sim/engine/loop_parts.h"

static int32_t root_of(int32_t *parent, int32_t actor) {
    while (parent[actor] != actor) {
        parent[actor] = parent[parent[actor]];
        actor = parent[actor];
    }
    return actor;
}

static void join_group(const RankClasses *classes, int group, int32_t *parent) {
    for (int32_t actor = 0; actor < classes->actors; actor++) {
        const int32_t leader = classes->members[classes->first[group * classes->actors + actor]];
        parent[root_of(parent, actor)] = root_of(parent, leader);
    }
}

static void number_parts(const RankClasses *classes, int32_t *parent, int32_t *number, LoopParts *parts) {
    for (int32_t actor = 0; actor < classes->actors; actor++) {
        number[actor] = -1;
    }
    for (int32_t actor = 0; actor < classes->actors; actor++) {
        int32_t *part = &number[root_of(parent, actor)];
        if (*part < 0) {
            *part = parts->count++;
            if (*part < LOOP_MAX_PARTS) {
                parts->marker[*part] = actor;
            }
        }
        parts->of_actor[actor] = *part;
    }
}

static void find_parts(const EngineProgram *program, const RankClasses *classes, int32_t segment, int32_t *scratch,
                       LoopParts *parts) {
    const StepProgram *step = program->step;
    int32_t *parent = scratch, *number = parent + classes->actors, *joined = number + classes->actors;
    for (int32_t actor = 0; actor < classes->actors; actor++) {
        parent[actor] = actor;
    }
    for (int32_t s = segment + 1; s < step->segments[segment].end; s++) {
        const Segment *body = &step->segments[s];
        for (int32_t t = 0; body->kind == SEGMENT_TASKS && t < body->task_count; t++) {
            const EngineTask *task = &program->tasks[body->first_task + t];
            if (task->group >= 0 && joined[task->group] != segment + 1) {
                joined[task->group] = segment + 1;
                join_group(classes, task->group, parent);
            }
        }
    }
    number_parts(classes, parent, number, parts);
}

LoopParts *loop_parts_find(const EngineProgram *program, const RankClasses *classes, int32_t observed, Arena *arena) {
    const StepProgram *step = program->step;
    LoopParts *rows = ARENA_ARRAY(arena, LoopParts, step->segment_count);
    int32_t *scratch = ARENA_ARRAY(arena, int32_t, 2 * classes->actors + step->group_count);
    for (int32_t s = 0; s < step->segment_count; s++) {
        LoopParts *parts = &rows[s];
        if (step->segments[s].kind == SEGMENT_TASKS) {
            continue;
        }
        parts->of_actor = ARENA_ARRAY(arena, int32_t, classes->actors);
        if (classes->actors > 1) {
            find_parts(program, classes, s, scratch, parts);
        }
        if (parts->count > LOOP_MAX_PARTS || classes->actors == 1) {
            parts->count = 1;
            for (int32_t actor = 0; actor < classes->actors; actor++) {
                parts->of_actor[actor] = 0;
            }
        }
        parts->marker[parts->of_actor[observed]] = observed;
    }
    return rows;
}
