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
    const Buffer *buffer;
    SlotIndex index;
    int32_t base;      // of the buffer's slots
    uint64_t defines;  // cells that it writes whole, whatever was there
    uint64_t needs;    // cells that it reads and that some task writes
} SlotUse;

typedef struct Scan {
    const StepProgram *program;
    SlotUse *uses;       // in the order of tasks and operands
    int32_t *first_use;  // of each task; [task_count] is how many there are
    int32_t *slot_base;  // of each buffer
    SlotState *slots;
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
        lifetimes->rows =
            arena_grow(scan->arena, lifetimes->rows, (size_t)lifetimes->count, &scan->capacity, sizeof(SlotLifetime));
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

// There are many times more instances than tasks: what does not depend on the instance is stored once.
static void scan_uses(Scan *scan, const OperandCells *cells) {
    const StepProgram *program = scan->program;
    uint64_t *written = ARENA_ARRAY(scan->arena, uint64_t, program->buffer_count);
    for (int32_t i = 0; i < program->operand_count; i++) {
        const Operand *operand = &program->operands[i];
        if (operand->ref.buffer >= 0 && operand->access != ACCESS_READ) {
            written[operand->ref.buffer] |= cells[i].touched;
        }
    }
    int32_t all = 0, most = 0;
    for (int32_t t = 0; t < program->task_count; t++) {
        const int32_t operands = program->tasks[t].operand_count;
        all += operands;
        most = operands > most ? operands : most;
    }
    scan->uses = ARENA_UNCLEARED(scan->arena, SlotUse, all);
    scan->used = ARENA_UNCLEARED(scan->arena, int32_t, most);
    scan->first_use = ARENA_UNCLEARED(scan->arena, int32_t, program->task_count + 1);
    int32_t count = 0;
    for (int32_t t = 0; t < program->task_count; t++) {
        const Task *task = &program->tasks[t];
        scan->first_use[t] = count;
        for (int32_t i = task->first_operand; i < task->first_operand + task->operand_count; i++) {
            const Operand *operand = &program->operands[i];
            const int32_t buffer = operand->ref.buffer;
            if (buffer >= 0 && !program->buffers[buffer].persistent) {
                const bool writes = operand->access == ACCESS_WRITE;
                scan->uses[count++] = (SlotUse){.buffer = &program->buffers[buffer],
                                                .index = operand->ref.index,
                                                .base = scan->slot_base[buffer],
                                                .defines = writes ? cells[i].covered : 0,
                                                .needs = writes ? 0 : cells[i].touched & written[buffer]};
            }
        }
    }
    scan->first_use[program->task_count] = count;
}

// One task, seen from below: uses open, writes end needs, reads begin them, and what is needed no more closes.
static void scan_instance(Scan *scan, const StepInstance *instance, int32_t index) {
    const int32_t first = scan->first_use[instance->task];
    const int32_t count = scan->first_use[instance->task + 1] - first;
    const SlotUse *uses = &scan->uses[first];
    int32_t *used = scan->used;
    const Phase phase = scan->program->tasks[instance->task].phase;
    if ((phase == PHASE_BACKWARD || phase == PHASE_RECOMPUTE) && scan->micro_step != instance->micro_step) {
        scan->micro_step = instance->micro_step;
        scan->backward_end = index;
    }
    for (int32_t k = 0; k < count; k++) {
        const SlotUse *use = &uses[k];
        used[k] = use->base + (use->buffer->slots == 1 ? 0 : step_slot(use->buffer, use->index, instance));
        SlotState *slot = &scan->slots[used[k]];
        slot->last = slot->last >= 0 ? slot->last : use->buffer->held ? scan->backward_end : index;
        slot->earliest_use = index;
        slot->needed &= ~use->defines;
    }
    for (int32_t k = 0; k < count; k++) {
        scan->slots[used[k]].needed |= uses[k].needs;
    }
    for (int32_t k = 0; k < count; k++) {
        SlotState *slot = &scan->slots[used[k]];
        if (slot->last >= 0 && slot->needed == 0) {
            scan_emit(scan, (int32_t)(uses[k].buffer - scan->program->buffers), used[k] - uses[k].base, index,
                      slot->last);
            slot->last = -1;
        }
    }
}

void lifetimes_of_cells(const StepProgram *program, const OperandCells *cells, const StepInstance *instances,
                        int32_t count, Arena *arena, Lifetimes *lifetimes) {
    Scan scan = {.program = program, .micro_step = -1, .arena = arena, .lifetimes = lifetimes};
    *lifetimes = (Lifetimes){0};
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
