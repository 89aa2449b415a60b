// Which relative positions of two buffers would put bytes that are alive together on top of each other: first which of
// their slots are alive together, which no size decides, then where those must not be.

#pragma once

#include "sim/memory/layout.h"
#include "sim/memory/part_spans.h"
#include "sim/memory/program_cut.h"

// The cut that keeps enough layers to tell their slots apart, and the most slots for which that is done.
extern const CutOptions conflict_cut;
enum { MAX_SPLIT_SLOTS = 16 };

// A slot of one buffer and slots [first, last] of another.
typedef struct ConflictRun {
    int32_t slot, first, last;
} ConflictRun;

// Listed buffers a and b < a: runs [begin, end). A side that is not split is one slot as large as the buffer.
typedef struct ConflictPair {
    int32_t a, b;
    int32_t begin, end;
    bool split_a, split_b;
} ConflictPair;

// Pairs that are alive together in some slots.
typedef struct ConflictShape {
    ConflictPair *pairs;
    ConflictRun *runs;
    size_t pair_count, run_count;
} ConflictShape;

typedef struct Conflicts {
    PairConflict *pairs;  // [count][count] over the listed buffers
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

void conflicts_find(const ConflictInput *input, Arena *arena, ConflictShape *shape);

// With the sizes that the listed buffers have in the program.
void conflicts_place(const ConflictShape *shape, const StepProgram *program, const int32_t *buffers, int32_t count,
                     Arena *arena, Conflicts *conflicts);
