// What PyTorch's caching allocator reserves on the device after two steps of a program: live bytes, free blocks in the
// pool of another stream or in holes that nothing fits, and fragmentation by the optimizer's state, made at the end
// of the first step.

#pragma once

#include "sim/step/step.h"

// For targets with an allocator of their own (Target.allocator); 0 for others.
Status memory_cached_bytes(const StepProgram *program, double *cached_bytes, Error *error);
