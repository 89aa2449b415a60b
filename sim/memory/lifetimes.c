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

typedef struct Scan {
    const StepProgram *program;
    const OperandCells *cells;
    uint64_t *written;   // of each buffer: cells that some task writes
    int32_t *slot_base;  // of each buffer
    SlotState *slots;
    int32_t slot_count;
    int32_t *used, *which;  // of the task at hand
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

static bool scan_follows(const Scan *scan, const BufferRef *ref) {
    return ref->buffer >= 0 && !scan->program->buffers[ref->buffer].persistent;
}

static int32_t scan_slot(const Scan *scan, const BufferRef *ref, const StepInstance *instance) {
    return scan->slot_base[ref->buffer] + step_slot(&scan->program->buffers[ref->buffer], ref->index, instance);
}

static void scan_prepare(Scan *scan) {
    const StepProgram *program = scan->program;
    scan->written = ARENA_ARRAY(scan->arena, uint64_t, program->buffer_count);
    scan->slot_base = ARENA_ARRAY(scan->arena, int32_t, program->buffer_count + 1);
    for (int32_t i = 0; i < program->operand_count; i++) {
        const Operand *operand = &program->operands[i];
        if (operand->ref.buffer >= 0 && operand->access != ACCESS_READ) {
            scan->written[operand->ref.buffer] |= scan->cells[i].touched;
        }
    }
    for (int32_t i = 0; i < program->buffer_count; i++) {
        scan->slot_base[i + 1] = scan->slot_base[i] + (program->buffers[i].persistent ? 0 : program->buffers[i].slots);
    }
    scan->slot_count = scan->slot_base[program->buffer_count];
    scan->slots = ARENA_ARRAY(scan->arena, SlotState, scan->slot_count);
    for (int32_t i = 0; i < scan->slot_count; i++) {
        scan->slots[i].last = -1;
    }
    int32_t most = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        most = program->tasks[i].operand_count > most ? program->tasks[i].operand_count : most;
    }
    scan->used = ARENA_ARRAY(scan->arena, int32_t, most);
    scan->which = ARENA_ARRAY(scan->arena, int32_t, most);
}

// One task, seen from below: uses open, writes end needs, reads begin them, and what is needed no more closes.
static void scan_instance(Scan *scan, const StepInstance *instance, int32_t index) {
    const StepProgram *program = scan->program;
    const Task *task = &program->tasks[instance->task];
    const Operand *operands = &program->operands[task->first_operand];
    const OperandCells *cells = &scan->cells[task->first_operand];
    int32_t *used = scan->used;  // slots, in the order of the operands that are followed
    int32_t *which = scan->which;
    int32_t count = 0;
    for (int32_t i = 0; i < task->operand_count; i++) {
        if (scan_follows(scan, &operands[i].ref)) {
            used[count] = scan_slot(scan, &operands[i].ref, instance);
            which[count] = i;
            SlotState *slot = &scan->slots[used[count++]];
            slot->last = slot->last < 0 ? index : slot->last;
            slot->earliest_use = index;
            slot->needed &= operands[i].access == ACCESS_WRITE ? ~cells[i].covered : ~(uint64_t)0;
        }
    }
    for (int32_t k = 0; k < count; k++) {
        const Operand *operand = &operands[which[k]];
        if (operand->access != ACCESS_WRITE) {
            scan->slots[used[k]].needed |= cells[which[k]].touched & scan->written[operand->ref.buffer];
        }
    }
    for (int32_t k = 0; k < count; k++) {
        SlotState *slot = &scan->slots[used[k]];
        if (slot->last >= 0 && slot->needed == 0) {
            const int32_t buffer = operands[which[k]].ref.buffer;
            scan_emit(scan, buffer, used[k] - scan->slot_base[buffer], index, slot->last);
            slot->last = -1;
        }
    }
}

void lifetimes_of_cells(const StepProgram *program, const OperandCells *cells, const StepInstance *instances,
                        int32_t count, Arena *arena, Lifetimes *lifetimes) {
    Scan scan = {.program = program, .cells = cells, .arena = arena, .lifetimes = lifetimes};
    *lifetimes = (Lifetimes){0};
    scan_prepare(&scan);
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
