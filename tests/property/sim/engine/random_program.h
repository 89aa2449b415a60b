// Random StepPrograms with random costs: lanes with and without shared communicators, nested loops, guards,
// layer-indexed events with rings of slots, groups over random axes.

#pragma once

#include <stdint.h>

#include "sim/engine/engine.h"
#include "tests/support/program_builder.h"

typedef struct Random {
    uint64_t state;
} Random;

enum { RANDOM_MAX_RANKS = 81 };  // of a mesh

// From the seed of the run (tests/support/seed.h), which is printed.
Random random_begin(const char *name);
uint32_t random_below(Random *random, uint32_t bound);

typedef struct RandomProgram {
    StepProgram *program;
    TaskCost *costs;
    Interference interference;
} RandomProgram;

RandomProgram random_program(Random *random, Arena *arena);
