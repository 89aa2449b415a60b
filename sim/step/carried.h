// Over how many micro-steps a tensor lives; private to sim/step.

#pragma once

#include "sim/step/lower.h"

Work section_work(Section section);

// Sets Tensor.micro_steps of what one work of a micro-step leaves to a later one. A kept layer's tensors are written by
// its forward alone, whatever the recomputation of other layers writes into the same slot.
void carried_choose(Lowering *lowering, const Variant *variants, const MicroLoops *loops);
