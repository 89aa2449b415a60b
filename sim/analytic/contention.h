// How a layer's compute and the sharding collectives beside it slow each other down. A layer's block is run as a fluid once per kind
// of collective; a candidate then only divides its collectives' work over the block.

#pragma once

#include "sim/analytic/shard_costs.h"
#include "sim/cost/interference.h"

enum { FLUID_LANES = 3 };    // compute, tp, cp

typedef struct FluidTask {
    double seconds;
    ShareDemand demand;
    int8_t lane;
    bool own;                          // of the layer itself, not of the one before it
    int32_t need[FLUID_LANES];         // tasks of each lane that must have ended
} FluidTask;

// A layer after another one.
typedef struct FluidBlock {
    FluidTask *tasks;
    int32_t count;
} FluidBlock;

typedef struct FluidResponse {
    double seconds;        // of the layer
    double background;     // mean rate of the collective that runs beside all of it
} FluidResponse;

// background NULL: nothing runs beside it.
FluidResponse fluid_run(const FluidBlock *block, const ShareDemand *background, const Interference *interference);

enum { BACKGROUNDS = 3 };              // gather, scatter, replica sum

// A layer's response to each, forward or backward.
typedef struct LayerResponse {
    double alone_s, isolated_s;        // with and without contention inside the layer
    FluidResponse beside[BACKGROUNDS];
} LayerResponse;

typedef struct LayerFactors {
    double block;                      // time of compute over isolated time
    double collective[BACKGROUNDS];
} LayerFactors;

// work_s: isolated seconds of each collective per layer.
LayerFactors layer_factors(const LayerResponse *response, const double work_s[BACKGROUNDS]);
