// What PyTorch's caching allocator reserves on the device, at most, in a step of a program: live bytes, free blocks in
// the pool of another stream or in holes that nothing fits; where each cudaMalloc is a segment, fragmentation by the
// optimizer's state too, made at the end of a first step; with CUDA graphs the pools that their capture fills, in
// addition to those of the rest.

#pragma once

#include "sim/memory/live_trace.h"

// On a device that has limit_bytes for it: where more is needed the answer is larger; 0 = no limit. For targets with an
// allocator of their own (Target.allocator).
Status memory_cached_bytes(const StepProgram *program, double limit_bytes, LiveTraces *traces, double *cached_bytes,
                           Error *error);
