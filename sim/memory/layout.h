// Offsets for blocks that may overlap in some relative positions and not in others.

#pragma once

#include <stdint.h>

#include "sim/base/arena.h"

// offset[b] - offset[a] must not lie strictly between low and high.
typedef struct ForbiddenOffsets {
    int64_t low, high;
} ForbiddenOffsets;

// What a pair (a, b) forbids: rows [begin, end) of a list, ascending and disjoint.
typedef struct PairConflict {
    int32_t begin, end;
} PairConflict;

typedef struct LayoutProblem {
    int32_t count;
    const int64_t *bytes;       // multiples of the alignment
    const int32_t *lifetime;    // how long each block is alive, and
    const int32_t *birth;       //   when it is first used: for the order in which they are placed
    const PairConflict *pairs;  // [count][count]; (a, b) and (b, a) both present
    const ForbiddenOffsets *forbidden;
} LayoutProblem;

// Writes an offset per block, returns the bytes in all. Deterministic.
int64_t layout_solve(const LayoutProblem *problem, int64_t *offset_bytes, Arena *arena);
