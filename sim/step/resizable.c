// The second program is lowered at twice the micro-batch, when another one is first requested. A size is an integer, or
// a flop count that is one as long as it is below 2^53; the line through two of them is exact or is not used. What
// depends on sizes (slots, traffic, keys) is recomputed as in lowering.

#include "sim/step/resizable.h"

#include <stddef.h>
#include <string.h>

#include "sim/step/lower.h"
#include "sim/step/task_table.h"

// A size that grows with the micro-batch.
typedef struct Size {
    void *at;
    enum { SIZE_INT64, SIZE_INT32, SIZE_FLOPS } kind;
    int64_t first, rise;  // at the plan's micro-batch; increment per sequence
    double flops;         // likewise at the plan's: proportional to the micro-batch
} Size;

// Traffic and key are derived from the sizes; tasks with the same work copy those of the first one.
typedef struct Derived {
    int32_t task, same;  // same: -1 = its own
} Derived;

struct ResizableProgram {
    const ModelSpec *model;
    TrainPlan plan;
    int stage;
    StepProgram program;
    enum { UNKNOWN, AFFINE, RIGID } sizes_are;
    Size *sizes;
    int32_t size_count;
    int32_t *buffers;  // whose slots depend on sizes that grow
    int32_t buffer_count;
    Derived *derived;
    int32_t derived_count;
    Arena *arena;
};

// ---- where sizes are

typedef struct SizeField {
    size_t offset;
    int kind;
} SizeField;

static const SizeField task_sizes[] = {
    {offsetof(Task, m), SIZE_INT64},
    {offsetof(Task, n), SIZE_INT64},
    {offsetof(Task, k), SIZE_INT64},
    {offsetof(Task, rows), SIZE_INT64},
    {offsetof(Task, cols), SIZE_INT64},
    {offsetof(Task, inner), SIZE_INT64},
    {offsetof(Task, stride), SIZE_INT64},
    {offsetof(Task, kv_stride), SIZE_INT64},
    {offsetof(Task, replicated), SIZE_INT64},
    {offsetof(Task, cast_bytes), SIZE_INT64},
    {offsetof(Task, sequences), SIZE_INT32},
    {offsetof(Task, payload_bytes), SIZE_INT64},
    {offsetof(Task, flops), SIZE_FLOPS},
    {offsetof(Task, apart_elements), SIZE_INT64},
    {offsetof(Task, apart_bytes), SIZE_INT64},
    {offsetof(Task, atomic_elements), SIZE_INT64},
    {offsetof(Task, sorted_elements), SIZE_INT64},
};
static const SizeField operand_sizes[] = {
    {offsetof(Operand, ref.rank_stride_bytes), SIZE_INT64},
    {offsetof(Operand, ref.offset_bytes), SIZE_INT64},
    {offsetof(Operand, ref.bytes), SIZE_INT64},
};
static const SizeField buffer_sizes[] = {{offsetof(Buffer, bytes), SIZE_INT64}};

enum {
    TASK_SIZES = sizeof task_sizes / sizeof task_sizes[0],
    OPERAND_SIZES = sizeof operand_sizes / sizeof operand_sizes[0],
    BUFFER_SIZES = sizeof buffer_sizes / sizeof buffer_sizes[0],
};

// ---- copies

static void *copied(Arena *arena, const void *from, size_t count, size_t bytes) {
    void *to = arena_array_uncleared(arena, count, bytes);
    return count > 0 ? memcpy(to, from, count * bytes) : to;
}

#define COPIED(arena, array, count) copied((arena), (array), (size_t)(count), sizeof *(array))

static StepProgram program_copied(const StepProgram *from, Arena *arena) {
    StepProgram to = *from;
    to.buffers = COPIED(arena, from->buffers, from->buffer_count);
    to.tasks = COPIED(arena, from->tasks, from->task_count);
    to.operands = COPIED(arena, from->operands, from->operand_count);
    to.events = COPIED(arena, from->events, from->event_count);
    to.event_refs = COPIED(arena, from->event_refs, from->event_ref_count);
    to.segments = COPIED(arena, from->segments, from->segment_count);
    to.lanes = COPIED(arena, from->lanes, from->lane_count);
    to.groups = COPIED(arena, from->groups, from->group_count);
    to.units = COPIED(arena, from->units, from->unit_count);
    to.slices = COPIED(arena, from->slices, from->slice_count);
    to.held.chunks = COPIED(arena, from->held.chunks, from->held.chunk_count);
    to.model.runs = from->model.run_count > 0 ? COPIED(arena, from->model.runs, from->model.run_count) : NULL;
    for (int32_t i = 0; i < to.group_count; i++) {
        to.groups[i].name = arena_text(arena, from->groups[i].name);
    }
    for (int32_t i = 0; i < to.buffer_count; i++) {
        to.buffers[i].name = arena_text(arena, from->buffers[i].name);
    }
    for (int32_t i = 0; i < to.slice_count; i++) {
        to.slices[i].name = arena_text(arena, from->slices[i].name);
    }
    return to;
}

Status resizable_lower(const ModelSpec *model, const TrainPlan *plan, const Target *target, int stage, Arena *arena,
                       Arena *scratch, ResizableProgram **made, Error *error) {
    StepProgram lowered;
    TRY(step_lower_alone(model, plan, target, stage, scratch, &lowered, error));
    *made = ARENA_NEW(arena, ResizableProgram);
    **made = (ResizableProgram){
        .model = model, .plan = *plan, .stage = stage, .program = program_copied(&lowered, arena), .arena = arena};
    return STATUS_OK;
}

void step_place(StepProgram *program, const TrainPlan *plan) {
    program->plan = *plan;
    for (int32_t i = 0; i < program->group_count; i++) {
        program->groups[i].size = mesh_group_size(&plan->mesh, program->groups[i].axes);
    }
}

bool resizable_owns(const ResizableProgram *resizable, const StepProgram *program) {
    return program == &resizable->program;
}

// ---- the second program

static bool same_task(const Task *a, const Task *b) {
    return a->kind == b->kind && a->lane == b->lane && a->unit == b->unit && a->group == b->group &&
           a->phase == b->phase && a->layer_guard == b->layer_guard && a->operand_count == b->operand_count &&
           a->wait_count == b->wait_count && a->record_count == b->record_count;
}

bool step_same_structure(const StepProgram *a, const StepProgram *b) {
    bool same = a->task_count == b->task_count && a->operand_count == b->operand_count &&
                a->buffer_count == b->buffer_count && a->event_count == b->event_count &&
                a->event_ref_count == b->event_ref_count && a->segment_count == b->segment_count;
    for (int32_t i = 0; same && i < a->buffer_count; i++) {
        same = a->buffers[i].slots == b->buffers[i].slots && a->buffers[i].micro_steps == b->buffers[i].micro_steps &&
               a->buffers[i].dtype == b->buffers[i].dtype;
    }
    for (int32_t i = 0; same && i < a->task_count; i++) {
        same = same_task(&a->tasks[i], &b->tasks[i]);
    }
    for (int32_t i = 0; same && i < a->operand_count; i++) {
        same = a->operands[i].ref.buffer == b->operands[i].ref.buffer && a->operands[i].access == b->operands[i].access;
    }
    return same;
}

// Sizes that grow, while they are being collected.
typedef struct Learner {
    ResizableProgram *resizable;
    const StepProgram *second;
    Size *sizes;
    int32_t count;
    bool affine;  // all so far lie on an integer line
} Learner;

static void note_whole(Learner *learner, int kind, void *at, int64_t first, int64_t second) {
    const int micro_batch = learner->resizable->plan.micro_batch;
    if (first != second) {
        learner->sizes[learner->count++] =
            (Size){.at = at, .kind = kind, .first = first, .rise = (second - first) / micro_batch};
        learner->affine &= (second - first) % micro_batch == 0;
    }
}

static void note_flops(Learner *learner, double *at, double second) {
    if (*at < second || *at > second) {
        learner->sizes[learner->count++] = (Size){.at = at, .kind = SIZE_FLOPS, .flops = *at};
        learner->affine &= !(second < 2 * *at) && !(second > 2 * *at);
    }
}

// Compares a table row with the second program's; returns whether any of its sizes grows.
static bool note_row(Learner *learner, void *row, const void *second, const SizeField *fields, int count) {
    const int32_t before = learner->count;
    for (int i = 0; i < count; i++) {
        void *at = (char *)row + fields[i].offset;
        const void *other = (const char *)second + fields[i].offset;
        switch (fields[i].kind) {
        case SIZE_FLOPS:
            note_flops(learner, at, *(const double *)other);
            break;
        case SIZE_INT32:
            note_whole(learner, SIZE_INT32, at, *(int32_t *)at, *(const int32_t *)other);
            break;
        default:
            note_whole(learner, SIZE_INT64, at, *(int64_t *)at, *(const int64_t *)other);
        }
    }
    return learner->count > before;
}

// The first task with the same work in both programs; -1 where it is this one, which is remembered.
static int32_t same_work_before(const TaskTable *table, const Task *tasks, const Task *second, int32_t task) {
    uint64_t at = tasks[task].key & table->mask;
    for (; table->task[at] >= 0; at = (at + 1) & table->mask) {
        const int32_t known = table->task[at];
        if (tasks[known].key == tasks[task].key && second[known].key == second[task].key) {
            return known;
        }
    }
    table->task[at] = task;
    return -1;
}

static void learn_buffers(Learner *learner) {
    ResizableProgram *resizable = learner->resizable;
    StepProgram *program = &resizable->program;
    resizable->buffers = ARENA_UNCLEARED(resizable->arena, int32_t, program->buffer_count);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        if (note_row(learner, &program->buffers[i], &learner->second->buffers[i], buffer_sizes, BUFFER_SIZES)) {
            resizable->buffers[resizable->buffer_count++] = i;
        }
    }
}

static void learn_tasks(Learner *learner, Arena *scratch) {
    ResizableProgram *resizable = learner->resizable;
    StepProgram *program = &resizable->program;
    const Task *second = learner->second->tasks;
    const TaskTable known = task_table_new(program->task_count, scratch);
    resizable->derived = ARENA_UNCLEARED(resizable->arena, Derived, program->task_count);
    for (int32_t i = 0; i < program->task_count; i++) {
        if (note_row(learner, &program->tasks[i], &second[i], task_sizes, TASK_SIZES)) {
            const Derived derived = {i, same_work_before(&known, program->tasks, second, i)};
            resizable->derived[resizable->derived_count++] = derived;
        }
    }
}

static bool learn_sizes(ResizableProgram *resizable, const StepProgram *second, Arena *scratch) {
    StepProgram *program = &resizable->program;
    const int32_t most = program->buffer_count * BUFFER_SIZES + program->operand_count * OPERAND_SIZES +
                         program->task_count * TASK_SIZES;
    Learner learner = {
        .resizable = resizable, .second = second, .sizes = ARENA_UNCLEARED(scratch, Size, most), .affine = true};
    learn_buffers(&learner);
    for (int32_t i = 0; i < program->operand_count; i++) {
        note_row(&learner, &program->operands[i], &second->operands[i], operand_sizes, OPERAND_SIZES);
    }
    learn_tasks(&learner, scratch);
    resizable->sizes = COPIED(resizable->arena, learner.sizes, learner.count);
    resizable->size_count = learner.count;
    return learner.affine;
}

static void learn(ResizableProgram *resizable, Arena *scratch) {
    TrainPlan twice = resizable->plan;
    twice.micro_batch *= 2;
    StepProgram second;
    Error too_large;
    const bool affine = step_lower_alone(resizable->model, &twice, resizable->program.target, resizable->stage, scratch,
                                         &second, &too_large) == STATUS_OK &&
                        step_same_structure(&resizable->program, &second) && learn_sizes(resizable, &second, scratch);
    resizable->sizes_are = affine ? AFFINE : RIGID;
}

// ---- any other

static bool is_power_of_two(int value) {
    return (value & (value - 1)) == 0;
}

// Integers up to 2^53 are exact as doubles, and so are their products with powers of two.
static bool flops_are_exact(double flops, int micro_batch, int first_micro_batch) {
    static const double whole = 9007199254740992.0;  // 2^53
    return flops * micro_batch < whole || (is_power_of_two(micro_batch) && is_power_of_two(first_micro_batch));
}

static bool set_sizes(ResizableProgram *resizable, int micro_batch) {
    const int first = resizable->plan.micro_batch;
    for (int32_t i = 0; i < resizable->size_count; i++) {
        const Size *size = &resizable->sizes[i];
        if (size->kind == SIZE_FLOPS) {
            if (!flops_are_exact(size->flops, micro_batch, first)) {
                return false;
            }
            *(double *)size->at = size->flops * micro_batch / first;
        } else if (size->kind == SIZE_INT32) {
            *(int32_t *)size->at = (int32_t)(size->first + size->rise * (micro_batch - first));
        } else {
            *(int64_t *)size->at = size->first + size->rise * (micro_batch - first);
        }
    }
    return true;
}

static void derive(ResizableProgram *resizable) {
    StepProgram *program = &resizable->program;
    for (int32_t i = 0; i < resizable->buffer_count; i++) {
        Buffer *buffer = &program->buffers[resizable->buffers[i]];
        buffer->slot_bytes = step_slot_bytes(buffer->bytes);
    }
    for (int32_t i = 0; i < resizable->derived_count; i++) {
        const Derived *derived = &resizable->derived[i];
        Task *task = &program->tasks[derived->task];
        if (derived->same >= 0) {
            task->traffic_bytes = program->tasks[derived->same].traffic_bytes;
            task->key = program->tasks[derived->same].key;
        } else {
            task_finish(program, NULL, task);
        }
    }
}

static Status lower_anew(ResizableProgram *resizable, int micro_batch, Arena *scratch, StepProgram **program,
                         Error *error) {
    TrainPlan plan = resizable->plan;
    plan.micro_batch = micro_batch;
    *program = ARENA_NEW(scratch, StepProgram);
    return step_lower_alone(resizable->model, &plan, resizable->program.target, resizable->stage, scratch, *program,
                            error);
}

Status resizable_at(ResizableProgram *resizable, int micro_batch, Arena *scratch, StepProgram **program, Error *error) {
    *program = &resizable->program;
    if (micro_batch != resizable->plan.micro_batch && resizable->sizes_are == UNKNOWN) {
        learn(resizable, scratch);
    }
    if (micro_batch != resizable->plan.micro_batch && resizable->sizes_are == RIGID) {
        return lower_anew(resizable, micro_batch, scratch, program, error);
    }
    if (!set_sizes(resizable, micro_batch)) {
        return lower_anew(resizable, micro_batch, scratch, program, error);
    }
    derive(resizable);
    resizable->program.plan = resizable->plan;
    resizable->program.plan.micro_batch = micro_batch;
    return STATUS_OK;
}
