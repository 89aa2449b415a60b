// One communicator per (id of the lane, axes of the group): two lanes with the same id share it and serialise, as the
// program requires.

#include "exec/protocol/communicators.h"

#include "exec/protocol/link_room.h"
#include "exec/protocol/program_words.h"
#include "sim/base/integer.h"

enum { WORLD_ID = -1, AXES_ID = -2, LINKS_ID = -3 };  // ids no program lane uses; links: and below, by phase
static const int64_t WORLD_BYTES = 32 << 10;          // of a round of what a run is gathered with

static bool same_link(Link a, Link b) {
    return a.step == b.step && a.class == b.class;
}

static int find_or_add(CommunicatorSet *set, const Mesh *mesh, const Communicator *wanted) {
    for (int i = 0; i < set->count; i++) {
        const Communicator *entry = &set->entries[i];
        if (entry->id == wanted->id && entry->axes == wanted->axes && same_link(entry->link, wanted->link)) {
            return i;
        }
    }
    if (set->count == TRANSPORT_MAX_COMMUNICATORS) {
        return -1;
    }
    set->entries[set->count] = *wanted;
    set->entries[set->count].across_stages = (mesh_real_axes(mesh, wanted->axes) & AXES_STAGE) != 0;
    return set->count++;
}

static Status too_many(Error *error) {
    return error_set(error, STATUS_INTERNAL, "the program needs more than %d communicators",
                     TRANSPORT_MAX_COMMUNICATORS);
}

static int64_t given_bytes(const StepProgram *program, const Task *task, bool exact) {
    const bool to_each = task->kind == TASK_REDUCE_SCATTER || task->kind == TASK_ALL_TO_ALL;
    const int64_t bytes = program_collective_bytes(program, task);
    return bytes * (to_each ? program->groups[task->group].size : 1) * (exact ? EXACT_SUM_BYTES : 1);
}

// Axes of size 1 join no ranks: only masks of the others.
static Status add_axes(const Mesh *mesh, Arena *arena, CommunicatorSet *set, Error *error) {
    const AxisMask real = mesh_real_axes(mesh, AXES_OWN);
    for (AxisMask axes = 1; axes <= AXIS_ALL; axes++) {
        if ((axes & ~real) != 0) {
            continue;
        }
        const Communicator wanted = {.name = mesh_axes_words(axes, arena), .id = AXES_ID, .axes = axes};
        FAIL_WITH(find_or_add(set, mesh, &wanted) < 0, too_many(error));
    }
    return STATUS_OK;
}

static Communicator collective_lane(const StepProgram *program, const Task *task) {
    const Lane *lane = &program->lanes[task->lane];
    return (Communicator){.name = lane->name, .id = lane->communicator, .axes = program->groups[task->group].axes};
}

static Communicator message_link(const StepProgram *program, const Task *task) {
    const bool sends = task->kind == TASK_SEND;
    const int from = sends ? program->stage : task->peer, to = sends ? task->peer : program->stage;
    return (Communicator){.name = phase_name(task->phase),
                          .id = (int16_t)(LINKS_ID - (int)task->phase),
                          .axes = AXES_STAGE,
                          .link = transport_link(mesh_stages(&program->plan.mesh), from, to)};
}

static Status add_lanes(const StepProgram *program, bool exact, CommunicatorSet *set, int16_t *of_task, Error *error) {
    for (int32_t t = 0; t < program->task_count; t++) {
        const Task *task = &program->tasks[t];
        of_task[t] = -1;
        if (!task_is_transfer(task)) {
            continue;
        }
        const Communicator wanted =
            task_is_message(task) ? message_link(program, task) : collective_lane(program, task);
        const int index = find_or_add(set, &program->plan.mesh, &wanted);
        FAIL_WITH(index < 0, too_many(error));
        of_task[t] = (int16_t)index;
        if (!task_is_message(task)) {
            int64_t *most = &set->entries[index].call_bytes;
            *most = int_max(*most, given_bytes(program, task, exact));
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

Status communicators_find(const StepPrograms *programs, int stage, const RunRequest *request, Arena *arena,
                          CommunicatorSet *set, Error *error) {
    const Mesh *mesh = &programs->of[0].plan.mesh;
    int16_t **of_task = ARENA_ARRAY(arena, int16_t *, programs->count);
    *set = (CommunicatorSet){0};
    const Communicator all = {.name = "run", .id = WORLD_ID, .axes = AXIS_ALL, .call_bytes = WORLD_BYTES};
    set->world = find_or_add(set, mesh, &all);
    for (int i = 0; i < programs->count; i++) {
        of_task[i] = ARENA_ARRAY(arena, int16_t, programs->of[i].task_count);
        TRY(add_lanes(&programs->of[i], request->options.bitwise, set, of_task[i], error));
    }
    set->of_task = of_task[stage];
    const LinkMessages messages = {programs, (const int16_t *const *)of_task, request->options.bitwise};
    TRY(link_room_find(&messages, set->entries, arena, error));
    return request->job == JOB_TRAIN ? STATUS_OK : add_axes(mesh, arena, set, error);
}
