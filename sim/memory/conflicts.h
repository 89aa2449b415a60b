// Which relative positions of two buffers would put bytes that are alive together on top of each other.

#pragma once

#include "sim/memory/layout.h"
#include "sim/memory/part_spans.h"
#include "sim/memory/program_cut.h"

// The cut that keeps enough layers to tell their slots apart, and the most slots for which that is done.
extern const CutOptions conflict_cut;
enum { MAX_SPLIT_SLOTS = 16 };

typedef struct Conflicts {
    PairConflict *pairs;            // [count][count] over the listed buffers
    ForbiddenOffsets *forbidden;
    size_t forbidden_count;
} Conflicts;

// program: the whole one; buffers: those that are placed. whole: spans of whole buffers, split: spans of slots, both of
// the cut.
typedef struct ConflictInput {
    const StepProgram *program;
    const ProgramCut *cut;
    const PartSpans *whole, *split;
    const int32_t *buffers;
    int32_t count;
} ConflictInput;

void conflicts_find(const ConflictInput *input, Arena *arena, Conflicts *conflicts);
