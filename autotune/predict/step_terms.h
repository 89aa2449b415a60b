// Which term of a step a task belongs to; one rule for predicted and measured steps.

#pragma once

#include "sim/step/step.h"

// Below AXIS_COUNT: communication of that axis.
enum { TERM_COMPUTE = AXIS_COUNT, TERM_OPTIMIZER, TERM_OVERHEAD, TERM_COUNT };

// A message belongs to the axis of stages, a collective to the slowest axis of its group, on the control lane to
// overhead.
int step_term(const StepProgram *program, const Task *task);
