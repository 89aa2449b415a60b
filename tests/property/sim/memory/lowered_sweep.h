// Every legal choice of a list of meshes, lowered: the sweep used by memory tests and benches.

#pragma once

#include "sim/step/step.h"

typedef struct LoweredRange {
    const char *model;
    const char *target;
    int max_world;  // meshes of worlds 1, 2, 4 .. max_world
    int seq;
    int max_accum;   // micro-steps 1 and max_accum
    int max_layers;  // the model is cut to this many; 0 = unchanged
    Dtype precision;
} LoweredRange;

typedef void LoweredVisitor(void *context, const StepProgram *program);

// Returns how many programs there were. Ends the process when one does not lower.
int lowered_sweep(const LoweredRange *range, LoweredVisitor *visit, void *context);
