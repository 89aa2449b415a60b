// Small hand-made programs with hand-made costs in whole microseconds, and their simulation.

#pragma once

#include "sim/engine/engine.h"
#include "tests/support/program_builder.h"

enum { SMALL_MAX_TASKS = 64 };

typedef struct Small {
    Arena arena;
    ProgramBuilder builder;
    TaskCost costs[SMALL_MAX_TASKS];
    int tasks;
    Interference interference;
    double step_fixed_s;
    int16_t compute, ag, rs, ctl;  // lanes; ag and rs share a communicator if requested
    int16_t group;
} Small;

// Lanes of the usual rows; group: axes of the only group.
void small_begin(Small *small, int layers, bool shared_communicator, AxisMask axes);
void small_end(Small *small);

// A kernel or a collective of this many microseconds; the next calls of builder_wait/record belong to it.
Task *small_kernel(Small *small, const char *name, double us);
Task *small_collective(Small *small, const char *name, int16_t lane, double us, double nic_use);
TaskCost *small_last_cost(Small *small);

// Runs; fails the test on an error. Spans are kept.
EngineResult small_run(Small *small, EngineOptions options);

// Start and end in microseconds of the first span of the task with this name.
double small_start_us(const Small *small, const EngineResult *result, const char *name);
double small_end_us(const Small *small, const EngineResult *result, const char *name);
