// Cells of a slot: a buffer's slots are cut at the ends of every access. A write defines its whole extent; a task that
// adds columns to rows which an earlier task of the same slot began declares an update. A buffer with more than 64
// cells gets coarser ones, of which a write defines only those it covers: memory is lost, never safety.

#include "sim/memory/slot_cells.h"

#include <stdlib.h>

enum { MAX_CELLS = 64 };

// Cuts of one buffer, ascending; cell i is [cut[i], cut[i+1]).
typedef struct BufferCuts {
    int64_t *cut;
    int32_t count;
    int64_t begin, end;  // the range asked for last: most accesses are to a whole slot
    OperandCells found;
} BufferCuts;

typedef struct CellFinder {
    const StepProgram *program;
    int64_t *begin;  // of each operand inside its slot
    BufferCuts *cuts;
    OperandCells *cells;
} CellFinder;

static int compare_cuts(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static Status find_begins(CellFinder *finder, Error *error) {
    const StepProgram *program = finder->program;
    const MeshCoordinates at = mesh_coordinates(&program->plan.mesh, 0);
    for (int32_t i = 0; i < program->operand_count; i++) {
        const BufferRef *ref = &program->operands[i].ref;
        if (ref->buffer < 0) {
            continue;
        }
        const Buffer *buffer = &program->buffers[ref->buffer];
        finder->begin[i] = step_ref_offset(program, ref, &(StepInstance){0}, &at) % buffer->slot_bytes;
        FAIL_IF(ref->bytes <= 0 || finder->begin[i] < 0 || finder->begin[i] + ref->bytes > buffer->slot_bytes, error,
                STATUS_INTERNAL, "an operand touches bytes %lld to %lld of buffer '%s', whose slots have %lld",
                (long long)finder->begin[i], (long long)(finder->begin[i] + ref->bytes), buffer->name,
                (long long)buffer->slot_bytes);
    }
    return STATUS_OK;
}

static void sort_cuts(const BufferCuts *cuts) {
    enum { FEW = 24 };
    if (cuts->count > FEW) {
        qsort(cuts->cut, (size_t)cuts->count, sizeof(int64_t), compare_cuts);
        return;
    }
    for (int32_t i = 1; i < cuts->count; i++) {
        const int64_t cut = cuts->cut[i];
        int32_t at = i;
        for (; at > 0 && cuts->cut[at - 1] > cut; at--) {
            cuts->cut[at] = cuts->cut[at - 1];
        }
        cuts->cut[at] = cut;
    }
}

static void cuts_finish(BufferCuts *cuts, int64_t slot_bytes) {
    cuts->cut[cuts->count++] = 0;
    cuts->cut[cuts->count++] = slot_bytes;
    sort_cuts(cuts);
    int32_t kept = 1;
    for (int32_t i = 1; i < cuts->count; i++) {
        if (cuts->cut[i] != cuts->cut[kept - 1]) {
            cuts->cut[kept++] = cuts->cut[i];
        }
    }
    const int32_t step = (kept - 2) / MAX_CELLS + 1;  // more than 64 cells: every step-th cut stays
    cuts->count = 0;
    for (int32_t i = 0; i < kept - 1; i += step) {
        cuts->cut[cuts->count++] = cuts->cut[i];
    }
    cuts->cut[cuts->count++] = cuts->cut[kept - 1];
}

// Thousands of ring hops touch the same few places: a cut is kept once.
static void cuts_add(BufferCuts *cuts, int64_t at) {
    for (int32_t i = cuts->count; i-- > 0;) {
        if (cuts->cut[i] == at) {
            return;
        }
    }
    cuts->cut[cuts->count++] = at;
}

static void find_cuts(CellFinder *finder, Arena *arena) {
    const StepProgram *program = finder->program;
    int32_t *operands = ARENA_ARRAY(arena, int32_t, program->buffer_count);
    for (int32_t i = 0; i < program->operand_count; i++) {
        if (program->operands[i].ref.buffer >= 0) {
            operands[program->operands[i].ref.buffer]++;
        }
    }
    int64_t *cut = ARENA_UNCLEARED(arena, int64_t, 2 * (program->operand_count + program->buffer_count));
    for (int32_t b = 0; b < program->buffer_count; b++) {
        finder->cuts[b].cut = cut;
        cut += 2 * operands[b] + 2;
    }
    for (int32_t i = 0; i < program->operand_count; i++) {
        const BufferRef *ref = &program->operands[i].ref;
        if (ref->buffer >= 0) {
            BufferCuts *cuts = &finder->cuts[ref->buffer];
            const int64_t begin = finder->begin[i], end = begin + ref->bytes;
            if (cuts->begin != begin || cuts->end != end) {
                cuts_add(cuts, begin);
                cuts_add(cuts, end);
                cuts->begin = begin;
                cuts->end = end;
            }
        }
    }
    for (int32_t b = 0; b < program->buffer_count; b++) {
        cuts_finish(&finder->cuts[b], program->buffers[b].slot_bytes);
        finder->cuts[b].end = 0;  // no range ends there
    }
}

// Cells [first, end).
static uint64_t cell_bits(int32_t first, int32_t end) {
    return end > first ? UINT64_MAX >> (MAX_CELLS - (end - first)) << first : 0;
}

static OperandCells cells_of_range(BufferCuts *cuts, int64_t begin, int64_t end) {
    if (cuts->begin == begin && cuts->end == end) {
        return cuts->found;
    }
    const int64_t *cut = cuts->cut;
    int32_t first = 0;  // cells of its first and last byte
    while (cut[first + 1] <= begin) {
        first++;
    }
    int32_t last = first;
    while (cut[last + 1] < end) {
        last++;
    }
    cuts->begin = begin;
    cuts->end = end;
    cuts->found = (OperandCells){.touched = cell_bits(first, last + 1),
                                 .covered = cell_bits(first + (cut[first] < begin), last + (cut[last + 1] == end))};
    return cuts->found;
}

Status slot_cells_find(const StepProgram *program, Arena *arena, const OperandCells **cells, Error *error) {
    CellFinder finder = {.program = program};
    finder.begin = ARENA_UNCLEARED(arena, int64_t, program->operand_count);
    finder.cuts = ARENA_ARRAY(arena, BufferCuts, program->buffer_count);
    finder.cells = ARENA_UNCLEARED(arena, OperandCells, program->operand_count);
    TRY(find_begins(&finder, error));
    find_cuts(&finder, arena);
    for (int32_t i = 0; i < program->operand_count; i++) {
        const BufferRef *ref = &program->operands[i].ref;
        finder.cells[i] = ref->buffer >= 0
                              ? cells_of_range(&finder.cuts[ref->buffer], finder.begin[i], finder.begin[i] + ref->bytes)
                              : (OperandCells){0};
    }
    *cells = finder.cells;
    return STATUS_OK;
}
