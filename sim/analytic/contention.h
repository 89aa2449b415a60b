// How a layer's compute and overlapping sharding collectives slow each other down. A layer's block is run as a fluid
// once per kind of collective; a candidate then only divides its collectives' work over the block.

#pragma once

#include "sim/analytic/block.h"
#include "sim/analytic/memo.h"
#include "sim/analytic/shard_costs.h"
#include "sim/cost/interference.h"

enum { FLUID_LANES = 3 };  // compute, tp, cp

typedef struct FluidTask {
    double seconds;
    ShareDemand demand;
    int8_t lane;
    bool own;                   // of the layer itself, not of the one before it
    int32_t like;               // the first task of the block with an equal demand
    int32_t need[FLUID_LANES];  // tasks of each lane that must have ended
} FluidTask;

// A layer after another one.
typedef struct FluidBlock {
    FluidTask *tasks;
    int32_t count;
} FluidBlock;

enum { BACKGROUND_GATHER, BACKGROUND_SCATTER, BACKGROUND_REPLICA, BACKGROUNDS };

// Sets of them, as bit masks.
enum {
    GATHERS = 1 << BACKGROUND_GATHER,
    SCATTERS = 1 << BACKGROUND_SCATTER,
    REPLICA_SUMS = 1 << BACKGROUND_REPLICA,
    BACKGROUND_SETS = 1 << BACKGROUNDS
};

// How a layer and a set of collectives that overlap all of it slow each other down.
typedef struct FluidResponse {
    double seconds;            // of the layer
    double rate[BACKGROUNDS];  // mean, of each collective of the set
} FluidResponse;

// Of a stretch that follows the previous one.
FluidBlock fluid_of(const BlockCode *code, Arena *arena, Arena *scratch);

FluidResponse fluid_run(const FluidBlock *block, const ShareDemand demands[BACKGROUNDS], int set,
                        const Interference *interference);

// Earlier runs, by block and by the demands that it overlapped; blocks and demands are compared by content.
typedef struct FluidMemo {
    Arena *runs_arena, *arena;  // of what runs found, and of demands: their numbers last
    Memo runs;
    ShareDemand *demands;
    size_t demand_count, demand_capacity;
} FluidMemo;

uint64_t fluid_demand_number(FluidMemo *memo, const ShareDemand *demand);

// fluid_run of demands with these numbers; the block lives as long as the runs.
FluidResponse fluid_run_known(FluidMemo *memo, const FluidBlock *block, const uint64_t numbers[BACKGROUNDS], int set,
                              const Interference *interference);

// Rates of the set when no layer overlaps it.
void background_rates(const ShareDemand demands[BACKGROUNDS], int set, const Interference *interference,
                      double rates[BACKGROUNDS]);

// A layer's response to each set, forward or backward; sets with a collective that does not occur are left out.
typedef struct LayerResponse {
    double isolated_s;                      // of the layer without contention, inside it neither
    FluidResponse beside[BACKGROUND_SETS];  // [0]: nothing overlaps
    double kernel_delay;                    // seconds lost per second of a copy or cast that runs on a sharding lane
} LayerResponse;

typedef double BackgroundRates[BACKGROUND_SETS][BACKGROUNDS];

typedef struct LayerWork {
    double copies_s;                   // further kernels of the compute lane
    double lane_kernels_s;             // copies and casts on the sharding lanes
    double layers_s[BACKGROUNDS];      // isolated, per layer: the layer's own
    double collective_s[BACKGROUNDS];  // and its part of the edge units'
    double replica_share;              // of the sum over replicas, what finds kernels to run beside
    bool take_turns;                   // gather and scatter share a communicator
} LayerWork;

typedef struct LayerFactors {
    double block;  // time of compute over isolated time
    double collective[BACKGROUNDS];
    double spare;  // reduction of block in a pass one of whose layers overlaps no collective
} LayerFactors;

static const LayerFactors no_factors = {.block = 1, .collective = {1, 1, 1}};

LayerFactors layer_factors(const LayerResponse *response, const BackgroundRates rates, const LayerWork *work);
