// The byte ranges into which a program's accesses split memory, for one rank: every access is a run of whole cells.

#pragma once

#include "sim/memory/memory.h"

typedef struct ByteRange {
    int64_t begin, end;  // arena bytes with a plan, bytes of a private address space without
} ByteRange;

typedef struct ByteCells {
    const StepProgram *program;
    const MemoryPlan *plan;  // NULL: none
    MeshCoordinates at;
    const int64_t *base;  // address of each buffer
    int64_t *cut;         // ascending; cell i is [cut[i], cut[i+1])
    int32_t count;        // of cells
} ByteCells;

// plan NULL: every buffer has its own bytes.
void byte_cells_build(const StepProgram *program, const MemoryPlan *plan, const MeshCoordinates *at, Arena *arena,
                      ByteCells *cells);
ByteRange byte_cells_range(const ByteCells *cells, const BufferRef *ref, const StepInstance *instance);

// First cell at or after an address that is a cut.
int32_t byte_cells_find(const ByteCells *cells, int64_t address);
