// Which compute tasks may overlap a collective's data movement: a GEMM that shares the chip with one must know.

#pragma once

#include "sim/step/step.h"

// beside[task]: for some instance of the task and some collective over more than one rank, the program's own order
// (lanes and events) puts neither before the other. This includes collectives issued later, because the host runs ahead
// of the device.
void beside_collectives(const StepProgram *program, Arena *arena, bool *beside);
