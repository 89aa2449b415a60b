// Liveness, walking issue order backwards: a read makes its cells needed, a write that covers them ends the need above
// it. A slot's lifetime ends at the use below which nothing is needed and begins at the write above which nothing is.
// Bytes that no task ever writes (padding) are never needed. Content that is read before any write keeps its slot from
// its first use on.
// Not modelled: the scale tensors of fp8 buffers follow their own operands.

#include "sim/memory/lifetimes.h"

#include "sim/memory/slot_cells.h"
#include "sim/step/slots.h"

typedef struct SlotState {
    uint64_t needed;  // cells that a later task reads before they are written again
    int32_t last;     // end of the open lifetime, -1 = closed
    int32_t earliest_use;
} SlotState;

// What an operand does to a slot that is followed.
typedef struct SlotUse {
    uint64_t defines;  // cells that it writes whole, whatever was there
    uint64_t needs;    // cells that it reads and that some task writes
    SlotIndex index;
    int32_t base;  // of the buffer's slots
    int32_t buffer;
    bool one_slot, held;  // of the buffer
} SlotUse;

typedef struct Scan {
    const StepProgram *program;
    SlotUse *uses;       // in the order of tasks and operands
    int32_t *first_use;  // of each task; [task_count] is how many there are
    int32_t *slot_base;  // of each buffer
    SlotState *slots;
    bool *used_again;      // by task: two of its operands are of one buffer
    int32_t *used;         // slots of the current task
    int32_t backward_end;  // of the current micro-step: its last instance of backward
    int32_t micro_step;
    Arena *arena;
    Lifetimes *lifetimes;
    size_t capacity;
} Scan;

static void scan_emit(Scan *scan, int32_t buffer, int32_t slot, int32_t first, int32_t last) {
    Lifetimes *lifetimes = scan->lifetimes;
    if ((size_t)lifetimes->count == scan->capacity) {
        lifetimes->rows = arena_grow_uncleared(scan->arena, lifetimes->rows, (size_t)lifetimes->count, &scan->capacity,
                                               sizeof(SlotLifetime));
    }
    lifetimes->rows[lifetimes->count++] = (SlotLifetime){.buffer = buffer, .slot = slot, .first = first, .last = last};
}

static void scan_slots(Scan *scan) {
    const StepProgram *program = scan->program;
    scan->slot_base = ARENA_UNCLEARED(scan->arena, int32_t, program->buffer_count + 1);
    scan->slot_base[0] = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        scan->slot_base[i + 1] = scan->slot_base[i] + (program->buffers[i].persistent ? 0 : program->buffers[i].slots);
    }
    const int32_t count = scan->slot_base[program->buffer_count];
    scan->slots = ARENA_ARRAY(scan->arena, SlotState, count);
    for (int32_t i = 0; i < count; i++) {
        scan->slots[i].last = -1;
    }
}

// Of each buffer, cells that some task writes.
static uint64_t *written_cells(const StepProgram *program, const OperandCells *cells, Arena *arena) {
    uint64_t *written = ARENA_ARRAY(arena, uint64_t, program->buffer_count);
    for (int32_t i = 0; i < program->operand_count; i++) {
        const Operand *operand = &program->operands[i];
        if (operand->ref.buffer >= 0 && operand->access != ACCESS_READ) {
            written[operand->ref.buffer] |= cells[i].touched;
        }
    }
    return written;
}

static void make_uses(Scan *scan) {
    const StepProgram *program = scan->program;
    int32_t all = 0, most = 0;
    for (int32_t t = 0; t < program->task_count; t++) {
        const int32_t operands = program->tasks[t].operand_count;
        all += operands;
        most = operands > most ? operands : most;
    }
    scan->uses = ARENA_UNCLEARED(scan->arena, SlotUse, all);
    scan->used = ARENA_UNCLEARED(scan->arena, int32_t, most);
    scan->first_use = ARENA_UNCLEARED(scan->arena, int32_t, program->task_count + 1);
    scan->used_again = ARENA_ARRAY(scan->arena, bool, program->task_count);
}

static SlotUse use_of(const Scan *scan, const Operand *operand, const OperandCells *cells, uint64_t written) {
    const int32_t buffer = operand->ref.buffer;
    const Buffer *of = &scan->program->buffers[buffer];
    const bool writes = operand->access == ACCESS_WRITE;
    return (SlotUse){.defines = writes ? cells->covered : 0,
                     .needs = writes ? 0 : cells->touched & written,
                     .index = operand->ref.index,
                     .base = scan->slot_base[buffer],
                     .buffer = buffer,
                     .one_slot = of->slots == 1,
                     .held = of->held};
}

// There are many times more instances than tasks: what does not depend on the instance is stored once.
static void scan_uses(Scan *scan, const OperandCells *cells) {
    const StepProgram *program = scan->program;
    const uint64_t *written = written_cells(program, cells, scan->arena);
    int32_t *user = ARENA_UNCLEARED(scan->arena, int32_t, program->buffer_count);  // the latest task of each buffer
    for (int32_t i = 0; i < program->buffer_count; i++) {
        user[i] = -1;
    }
    make_uses(scan);
    int32_t count = 0;
    for (int32_t t = 0; t < program->task_count; t++) {
        const Task *task = &program->tasks[t];
        scan->first_use[t] = count;
        for (int32_t i = task->first_operand; i < task->first_operand + task->operand_count; i++) {
            const int32_t buffer = program->operands[i].ref.buffer;
            if (buffer >= 0 && !program->buffers[buffer].persistent) {
                scan->uses[count++] = use_of(scan, &program->operands[i], &cells[i], written[buffer]);
                scan->used_again[t] |= user[buffer] == t;
                user[buffer] = t;
            }
        }
    }
    scan->first_use[program->task_count] = count;
}

static inline int32_t slot_used(const Scan *scan, const SlotUse *use, const StepInstance *instance) {
    return use->base + (use->one_slot ? 0 : step_slot(&scan->program->buffers[use->buffer], use->index, instance));
}

static inline int32_t last_use(const Scan *scan, const SlotUse *use, int32_t index) {
    return use->held && scan->backward_end > index ? scan->backward_end : index;
}

// Where an operand's slot may be another's too.
static void scan_shared(Scan *scan, const SlotUse *uses, int32_t count, const StepInstance *instance, int32_t index) {
    int32_t *used = scan->used;
    for (int32_t k = 0; k < count; k++) {
        used[k] = slot_used(scan, &uses[k], instance);
        SlotState *slot = &scan->slots[used[k]];
        slot->last = slot->last >= 0 ? slot->last : last_use(scan, &uses[k], index);
        slot->earliest_use = index;
        slot->needed &= ~uses[k].defines;
    }
    for (int32_t k = 0; k < count; k++) {
        scan->slots[used[k]].needed |= uses[k].needs;
    }
    for (int32_t k = 0; k < count; k++) {
        SlotState *slot = &scan->slots[used[k]];
        if (slot->last >= 0 && slot->needed == 0) {
            scan_emit(scan, uses[k].buffer, used[k] - uses[k].base, index, slot->last);
            slot->last = -1;
        }
    }
}

// The same where every operand has a slot of its own.
static void scan_apart(Scan *scan, const SlotUse *uses, int32_t count, const StepInstance *instance, int32_t index) {
    for (const SlotUse *use = uses; use < uses + count; use++) {
        const int32_t used = slot_used(scan, use, instance);
        SlotState *slot = &scan->slots[used];
        const int32_t last = slot->last >= 0 ? slot->last : last_use(scan, use, index);
        slot->needed = (slot->needed & ~use->defines) | use->needs;
        slot->earliest_use = index;
        slot->last = slot->needed == 0 ? -1 : last;
        if (slot->needed == 0) {
            scan_emit(scan, use->buffer, used - use->base, index, last);
        }
    }
}

// One task, seen from below: uses open, writes end needs, reads begin them, and what is needed no more closes.
static void scan_instance(Scan *scan, const StepInstance *instance, int32_t index) {
    const int32_t task = instance->task, first = scan->first_use[task], count = scan->first_use[task + 1] - first;
    const Phase phase = scan->program->tasks[task].phase;
    if ((phase == PHASE_BACKWARD || phase == PHASE_RECOMPUTE) && scan->micro_step != instance->micro_step) {
        scan->micro_step = instance->micro_step;
        scan->backward_end = index;
    }
    if (scan->used_again[task]) {
        scan_shared(scan, &scan->uses[first], count, instance, index);
    } else {
        scan_apart(scan, &scan->uses[first], count, instance, index);
    }
}

void lifetimes_of_cells(const StepProgram *program, const OperandCells *cells, const StepInstance *instances,
                        int32_t count, Arena *arena, Lifetimes *lifetimes) {
    Scan scan = {.program = program, .micro_step = -1, .arena = arena, .lifetimes = lifetimes};
    *lifetimes = (Lifetimes){.rows = ARENA_UNCLEARED(arena, SlotLifetime, count)};
    scan.capacity = (size_t)count;
    scan_slots(&scan);
    scan_uses(&scan, cells);
    for (int32_t i = count - 1; i >= 0; i--) {
        scan_instance(&scan, &instances[i], i);
    }
    for (int32_t b = 0; b < program->buffer_count; b++) {
        for (int32_t s = scan.slot_base[b]; s < scan.slot_base[b + 1]; s++) {
            if (scan.slots[s].last >= 0) {
                scan_emit(&scan, b, s - scan.slot_base[b], scan.slots[s].earliest_use, scan.slots[s].last);
            }
        }
    }
}

Status lifetimes_find(const StepProgram *program, const StepInstance *instances, int32_t count, Arena *arena,
                      Lifetimes *lifetimes, Error *error) {
    const OperandCells *cells;
    TRY(slot_cells_find(program, arena, &cells, error));
    lifetimes_of_cells(program, cells, instances, count, arena, lifetimes);
    return STATUS_OK;
}
