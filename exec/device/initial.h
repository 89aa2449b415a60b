// What a run starts from, as functions of (seed, global index): a mesh decides who holds a number, never which number
// it is.

#pragma once

#include "sim/step/step.h"

// Elements [first, first + count) of one instance of a unit's flat parameter, as a rank of this tp index cuts it.
typedef struct InitialStretch {
    const Unit *unit;
    int instance, tp_index;
    int64_t first, count;
} InitialStretch;

// Padding is 0.
void initial_parameters(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, float *out);
