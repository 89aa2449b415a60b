// The seam between those who want a step timed and those who can time it: the engine (simulated) and exec/launch
// (real). autotune holds StepRunners and does not know which is which.

#pragma once

#include "sim/base/progress.h"
#include "sim/step/timeline.h"

typedef struct StepRunner {
    const char *name;  // "engine", "cpu/shm"
    // Times one steady step of the program; the timeline lives in the arena.
    Status (*run)(void *state, const StepProgram *program, const Progress *progress, Arena *arena, Timeline *timeline,
                  Error *error);
    void *state;
} StepRunner;
