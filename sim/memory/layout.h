// Offsets for blocks of which some may share bytes and others may not.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"

typedef struct LayoutProblem {
    int32_t count;
    const int64_t *bytes;      // multiples of the alignment
    const bool *conflicts;     // [count][count], symmetric
    const int32_t *lifetime;   // how long each block is alive, for the order in which they are placed
} LayoutProblem;

// Writes an offset per block, returns the bytes in all. Deterministic.
int64_t layout_solve(const LayoutProblem *problem, int64_t *offset_bytes, Arena *arena);
