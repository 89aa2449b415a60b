// One communicator per (id of the lane, axes of the group): two lanes with one id share it and serialise, as the
// program says.

#include "exec/launch/communicators.h"

enum { WORLD_ID = -1, AXES_ID = -2 };  // no lane of a program has them

static int find_or_add(CommunicatorSet *set, const Communicator *wanted) {
    for (int i = 0; i < set->count; i++) {
        if (set->entries[i].id == wanted->id && set->entries[i].axes == wanted->axes) {
            return i;
        }
    }
    if (set->count == TRANSPORT_MAX_COMMUNICATORS) {
        return -1;
    }
    set->entries[set->count] = *wanted;
    return set->count++;
}

static Status too_many(Error *error) {
    return error_set(error, STATUS_INTERNAL, "the program needs more than %d communicators",
                     TRANSPORT_MAX_COMMUNICATORS);
}

// Axes of size 1 join nobody: only masks of the others.
static Status add_axes(const Mesh *mesh, Arena *arena, CommunicatorSet *set, Error *error) {
    const AxisMask real = mesh_real_axes(mesh, AXES_OWN);
    for (AxisMask axes = 1; axes <= AXIS_ALL; axes++) {
        if ((axes & ~real) != 0) {
            continue;
        }
        if (find_or_add(set, &(Communicator){.name = mesh_axes_words(axes, arena), .id = AXES_ID, .axes = axes}) < 0) {
            return too_many(error);
        }
    }
    return STATUS_OK;
}

int communicators_of_axes(const CommunicatorSet *set, AxisMask axes) {
    for (int i = 0; i < set->count; i++) {
        if (set->entries[i].id == AXES_ID && set->entries[i].axes == axes) {
            return i;
        }
    }
    return -1;
}

Status communicators_find(const StepProgram *program, WorkerJob job, Arena *arena, CommunicatorSet *set, Error *error) {
    *set = (CommunicatorSet){.of_task = ARENA_ARRAY(arena, int16_t, program->task_count)};
    set->world = find_or_add(set, &(Communicator){.name = "run", .id = WORLD_ID, .axes = AXIS_ALL});
    for (int32_t t = 0; t < program->task_count; t++) {
        const Task *task = &program->tasks[t];
        set->of_task[t] = -1;
        if (!task_is_collective(task)) {
            continue;
        }
        const Lane *lane = &program->lanes[task->lane];
        const int index = find_or_add(
            set,
            &(Communicator){.name = lane->name, .id = lane->communicator, .axes = program->groups[task->group].axes});
        if (index < 0) {
            return too_many(error);
        }
        set->of_task[t] = (int16_t)index;
    }
    return job == JOB_TRAIN ? STATUS_OK : add_axes(&program->plan.mesh, arena, set, error);
}
