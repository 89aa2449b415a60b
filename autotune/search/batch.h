// The global batch of a search that was given none: one for all shapes, because throughputs at different batch sizes
// are not comparable.

#pragma once

#include "autotune/result.h"
#include "sim/base/arena.h"

// The request with its batch settled (request->batch_assumed: it was not requested), in the arena where that changes
// it.
const TuneRequest *batch_settle(const TuneRequest *request, Arena *arena);

// The global batch nearest to `wanted` that is a positive multiple of `unit`.
int64_t batch_nearest_multiple(int64_t wanted, int64_t unit);

// The multiples of the world around `batch`, itself aside, which every shape can make with some micro-batch, the
// nearest first. Returns how many.
enum { BATCHES_AROUND = 2 };
int batches_around(int64_t batch, int world, int64_t around[BATCHES_AROUND]);

// The sequences that a step should hold when no global batch is given.
int64_t batch_default(int seq);
