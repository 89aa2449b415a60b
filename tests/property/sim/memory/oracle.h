// Brute force over all instances of a small program: the order as a matrix, closed transitively, and every pair of
// accesses.

#pragma once

#include "sim/memory/memory.h"

enum { ORACLE_MAX_INSTANCES = 512 };

typedef struct Oracle {
    const StepProgram *program;
    StepInstance instances[ORACLE_MAX_INSTANCES];
    int count;
    bool before[ORACLE_MAX_INSTANCES][ORACLE_MAX_INSTANCES];
} Oracle;

// False when the program has too many instances.
bool oracle_build(Oracle *oracle, const StepProgram *program);

// Whether the first or the last rank has a pair of conflicting, unordered accesses.
bool oracle_finds_race(const Oracle *oracle);

// With this plan: such a pair, a read of what another slot has overwritten, or one task with two
// buffers on the same bytes? One rank; offsets, sizes and extents in multiples of 256 bytes.
bool oracle_finds_fault(const Oracle *oracle, const MemoryPlan *plan);
