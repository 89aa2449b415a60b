// Inside sim/cost: steps of the way to experts and back, by which launches are counted.

#pragma once

#include "sim/cost/compute.h"

typedef enum {
    WAY_CHOOSE,     // to the counts that the dispatcher needs; the loss that balances
    WAY_COUNT,      // exchange of counts
    WAY_ORDER,      // tokens to the order of the experts
    WAY_SEND,       // to other ranks
    WAY_BY_EXPERT,  // in the order of the local experts
    WAY_BY_RANK,    // results in the order of the ranks
    WAY_RETURN,
    WAY_SUM,  // of a token's results
    WAY_STEPS,
    WAY_NONE = WAY_STEPS
} WayStep;

// Of Megatron-core, with Transformer Engine's kernels for it or without.
enum {
    COUNTS = 6,       // sum over tokens, splits of this rank, a slice of all ranks' counts and three sums of it
    COUNTS_HOME = 4,  // copies of counts and splits to the host
    PARTS = 2,        // tokens and their weights are apart
};

// Of Megatron-core without its fused router and permutation (expert_apart.c); 0 = not counted there.
int expert_launches_apart(const Target *target, const TrainPlan *plan, const Task *task, WayStep step);
// Of these, what deterministic algorithms launch inside an operation.
int expert_launches_inside(const Target *target, const TrainPlan *plan, const Task *task, WayStep step);
