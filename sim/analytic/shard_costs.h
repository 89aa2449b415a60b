// What sharding costs per unit on one mesh: gathers, reductions, copies, optimizer. Everything that depends on the
// data-parallel groups and not on what a layer computes.

#pragma once

#include "sim/cost/cost.h"
#include "sim/cost/interference.h"
#include "sim/step/step.h"

typedef enum {
    SHARD_COPY_IN,  // before a gather, on its lane
    SHARD_GATHER,
    SHARD_COPY_OUT,     // after it, computing
    SHARD_PAD,          // zeroing of padding, computing
    SHARD_REDUCE_COPY,  // before a reduction, computing
    SHARD_SCATTER,
    SHARD_CAST,  // of what was reduced, on its lane
    SHARD_ADD,
    SHARD_REPLICA,  // sum over replicas
    SHARD_SQUARE,   // optimizer: square sum
    SHARD_ADAMW,
    SHARD_REGATHER,     // of updated weights
    SHARD_NEAR_GATHER,  // of reshard_ranks: what it costs; in a micro-step it is a SHARD_GATHER
    SHARD_KINDS
} ShardKind;

typedef struct ShardCosts {
    double seconds[UNIT_COUNT][SHARD_KINDS];
    double host_s[UNIT_COUNT][SHARD_KINDS];
    double scalars_s;   // loss and norm sums over ranks, one after the other
    double loss_sum_s;  // of them, what does not wait for the norm
    double zero_s, clip_s;
    double edge_host_s;               // of the scalars, zeroing and clipping
    ShareDemand demand[SHARD_KINDS];  // of the layer unit's collectives
} ShardCosts;

// SHARD_KINDS when the task is none of them; never SHARD_NEAR_GATHER.
ShardKind shard_kind(const StepProgram *program, const Task *task);

// A gather among neighbours that hold a second copy?
bool shard_is_near(const StepProgram *program, const Task *task);

// How many times longer a task takes where every rank is as slow as the slowest.
typedef struct Slowdowns {
    double compute, links;
} Slowdowns;

static inline double slowdown_of(const Slowdowns *slow, const Task *task) {
    return task_is_collective(task) ? slow->links : slow->compute;
}

// Prices the sharding tasks of a program that has more than two micro-steps (so that every kind occurs) or of each of
// several.
void shard_costs_add(const CostModel *cost, const Slowdowns *slow, const StepProgram *program, ShardCosts *costs);
