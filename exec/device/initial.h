// What a run starts from, as functions of (seed, global index): a mesh decides who holds a number, never which number it is.

#pragma once

#include "sim/step/step.h"

// Elements [first, first + count) of one instance of a unit's flat parameter, as this rank's tp index cuts it. Padding is 0.
void initial_unit(const StepProgram *program, const Unit *unit, int instance, uint64_t seed, int tp_index, int64_t first,
                  int64_t count, float *out);
