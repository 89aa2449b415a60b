// Cuts repeat in every slot of a buffer: the distinct ends of its operands inside a slot are collected first, then laid
// out per slot.

#include "tests/support/byte_cells.h"

#include <stdlib.h>

static int compare_int64(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static int32_t sort_distinct(int64_t *values, int32_t count) {
    if (count == 0) {
        return 0;
    }
    qsort(values, (size_t)count, sizeof(int64_t), compare_int64);
    int32_t kept = 1;
    for (int32_t i = 1; i < count; i++) {
        if (values[i] != values[kept - 1]) {
            values[kept++] = values[i];
        }
    }
    return kept;
}

static const int64_t *buffer_bases(const StepProgram *program, const MemoryPlan *plan, Arena *arena) {
    if (plan) {
        return plan->offset_bytes;
    }
    int64_t *base = ARENA_ARRAY(arena, int64_t, program->buffer_count + 1);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        base[i + 1] = base[i] + program->buffers[i].slots * program->buffers[i].slot_bytes;
    }
    return base;
}

typedef struct SlotCuts {
    int64_t *cut;
    int32_t count;
} SlotCuts;

// Distinct ends of accesses inside a slot of each buffer.
static SlotCuts *collect_slot_cuts(const ByteCells *cells, Arena *arena) {
    const StepProgram *program = cells->program;
    SlotCuts *cuts = ARENA_ARRAY(arena, SlotCuts, program->buffer_count);
    int32_t *operands = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    for (int32_t i = 0; i < program->operand_count; i++) {
        const int32_t buffer = program->operands[i].ref.buffer;
        operands[buffer < 0 ? 0 : buffer] += buffer >= 0;
    }
    for (int32_t b = 0; b < program->buffer_count; b++) {
        cuts[b].cut = ARENA_ARRAY(arena, int64_t, 2 * operands[b] + 1);
        cuts[b].count = 1;  // the slot's start
    }
    for (int32_t i = 0; i < program->operand_count; i++) {
        const BufferRef *ref = &program->operands[i].ref;
        if (ref->buffer >= 0) {
            const int64_t begin = step_ref_offset(program, ref, &(StepInstance){0}, &cells->at);
            const int64_t slot_bytes = program->buffers[ref->buffer].slot_bytes;
            SlotCuts *slot = &cuts[ref->buffer];
            slot->cut[slot->count++] = begin % slot_bytes;
            slot->cut[slot->count++] = (begin + ref->bytes) % slot_bytes;
        }
    }
    for (int32_t b = 0; b < program->buffer_count; b++) {
        cuts[b].count = sort_distinct(cuts[b].cut, cuts[b].count);
    }
    return cuts;
}

void byte_cells_build(const StepProgram *program, const MemoryPlan *plan, const MeshCoordinates *at, Arena *arena,
                      ByteCells *cells) {
    *cells = (ByteCells){.program = program, .plan = plan, .at = *at, .base = buffer_bases(program, plan, arena)};
    const SlotCuts *slot_cuts = collect_slot_cuts(cells, arena);
    int32_t count = 0;
    for (int32_t b = 0; b < program->buffer_count; b++) {
        count += slot_cuts[b].count * program->buffers[b].slots + 1;
    }
    cells->cut = ARENA_ARRAY(arena, int64_t, count);
    count = 0;
    for (int32_t b = 0; b < program->buffer_count; b++) {
        const Buffer *buffer = &program->buffers[b];
        for (int32_t s = 0; s < buffer->slots; s++) {
            for (int32_t i = 0; i < slot_cuts[b].count; i++) {
                cells->cut[count++] = cells->base[b] + s * buffer->slot_bytes + slot_cuts[b].cut[i];
            }
        }
        cells->cut[count++] = cells->base[b] + buffer->slots * buffer->slot_bytes;
    }
    count = sort_distinct(cells->cut, count);
    cells->count = count > 0 ? count - 1 : 0;
}

ByteRange byte_cells_range(const ByteCells *cells, const BufferRef *ref, const StepInstance *instance) {
    const int64_t begin = cells->plan
                              ? memory_ref_offset(cells->plan, cells->program, ref, instance, &cells->at)
                              : cells->base[ref->buffer] + step_ref_offset(cells->program, ref, instance, &cells->at);
    return (ByteRange){.begin = begin, .end = begin + ref->bytes};
}

int32_t byte_cells_find(const ByteCells *cells, int64_t address) {
    int32_t low = 0;
    int32_t high = cells->count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (cells->cut[middle] < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
