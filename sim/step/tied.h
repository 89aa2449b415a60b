// One table on two stages, embedding and head or what further tokens read (lower_tied.c): its gradient is summed over
// both after the last backward, before it is reduced over the data ranks, which happens once.

#pragma once

#include "sim/step/lower.h"

bool unit_is_tied(const Lowering *lowering, int unit);              // holds a copy
bool unit_reduces_each(const Lowering *lowering, int unit);         // on every micro-step
int64_t unit_counted_elements(const Lowering *lowering, int unit);  // by the gradient norm: leading ones
void lower_tied_gradient(Lowering *lowering, int unit);             // of the optimizer
