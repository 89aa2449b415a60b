// Launches on the way to experts of Megatron-core where Transformer Engine's kernels neither choose the experts nor
// order the tokens (--moe-router-fusion, --moe-permute-fusion: neither is its default): operations of PyTorch, counted
// in Megatron-LM at d98e8a64d (transformer/moe/router.py, moe_utils.py, token_dispatcher.py) and in PyTorch's kernels
// (aten/src/ATen/native/cuda: Indexing.cu, Sort.cu, Nonzero.cu). Where the host reads the device a copy and the wait
// for it are one operation each. Deterministic algorithms put by sorted indices instead of atomics, and fill what is
// allocated, which operations made of TensorIterator do not do. Before 2025-10-16 (56818f9e50) rows were picked by a
// mask, as their weights still are: as many launches. Not counted: groups of experts, scores of a sigmoid, a z-loss;
// of deterministic algorithms until then their coordinates of each element, and its sort.

#include "sim/cost/expert_way.h"

enum {
    READ = 2,               // copied home, awaited
    SORT = 6,               // numbers, and a radix sort of bytes: cleared, counted, summed, moved twice
    SELECTED = 5 + READ,    // masked_select: places counted (two) and read, marked, theirs, picked
    SELECTED_BACK = 6,      // zeros, the mask summed along (four), scattered
    SCATTERED = 2,          // a copy, and scattered into it
    FOUND = 2 + 2 * READ,   // an index's least and largest are read, before it is used,
    SORTED_PUT = 2 + FOUND  // and its remainder, times the stride,
                 + 9 + 2,   // over the width, numbered, sorted (five), added up, both buffers filled, scaled
    ZEROS = 1,
    FILLED_ZEROS = 2,  // deterministic
};

// The choice by its loss: top-k 2, softmax, weights and map into zeros; softmax, top-k and map of the scores that are
// balanced; counts, their loss 4, over its coefficient, added to the log. Back: weights picked, softmax, zeros and
// scores into them 2, casts of the router 4; the loss's scale 2, its two products and sums 4, their softmax, the sum.
enum {
    MAP = 3 + SCATTERED,  // zeros, to int, scattered, to bool
    CHOICE = 2 + 1 + ZEROS + SCATTERED + MAP,
    BALANCE = 1 + 2 + MAP + 1 + 4 + 2,
    CHOICE_BACK = 8,
    BALANCE_BACK = 8,
    // instead of scattered: rows numbered, weights and ones put by two indices each, all filled
    SORTED_CHOICE = 2 + 1 + 2 * (FILLED_ZEROS + SORTED_PUT + 3 + FOUND) + 6,
};

// Sinkhorn's: to fp32, exp, two of ones; each round two sums of products 3, their share 2 each, a difference, its mean
// 3, compared and read; scaled twice, top-k 2, sigmoid, map, scores. Back: times the map, the sigmoid's.
enum {
    SINKHORN = 2 + 2 + 2 + 2 + 1 + MAP + 1,
    SINKHORN_ROUND = 2 * (3 + 2) + 3 + 1 + READ,
    SINKHORN_FILLS = 2 + 1,
    SINKHORN_BACK = 2,
};

typedef struct Way {
    unsigned char free, deterministic;  // launches
} Way;

enum {
    // the map turned, sorted, its numbers' rows, and those by index
    ORDERED = 1 + SORT + 1 + 1,
    // weights turned, and picked with their order
    ORDERED_WEIGHTS = 1 + 1,
    ADDED = 1,  // by index, atomically
};

static const Way forward[DISPATCH_COUNT][WAY_STEPS] = {
    [DISPATCH_ALLTOALL] = {[WAY_COUNT] = {1 + COUNTS_HOME, 1 + COUNTS_HOME},
                           [WAY_ORDER] = {ORDERED + ORDERED_WEIGHTS, ORDERED + ORDERED_WEIGHTS + 3},
                           [WAY_SEND] = {PARTS, PARTS},
                           [WAY_BY_EXPERT] = {PARTS, PARTS},  // split and joined
                           [WAY_BY_RANK] = {1, 1},
                           [WAY_RETURN] = {1, 1},
                           [WAY_SUM] = {ZEROS + ADDED, 2 * FILLED_ZEROS + SORTED_PUT}},
    // two slices, counts home, rows by expert, and their weights by a mask that is turned with them
    [DISPATCH_ALLGATHER] = {[WAY_ORDER] = {ORDERED, ORDERED + 2},
                            [WAY_BY_EXPERT] = {2 + 1 + READ + ORDERED + 2 + SELECTED,
                                               2 + 1 + READ + ORDERED + 2 + SELECTED + 6},
                            [WAY_BY_RANK] = {ZEROS + ADDED, 2 * FILLED_ZEROS + SORTED_PUT},
                            [WAY_SUM] = {ZEROS + ADDED, 2 * FILLED_ZEROS + SORTED_PUT}},
};

static const Way backward[DISPATCH_COUNT][WAY_STEPS] = {
    [DISPATCH_ALLTOALL] = {[WAY_COUNT] = {1, 1},
                           [WAY_ORDER] = {ZEROS + ADDED + ZEROS + SORTED_PUT - FOUND,
                                          2 * (FILLED_ZEROS + SORTED_PUT) - FOUND},
                           [WAY_SEND] = {PARTS, PARTS},
                           [WAY_BY_EXPERT] = {PARTS, PARTS},
                           [WAY_BY_RANK] = {1, 1},
                           [WAY_RETURN] = {1, 1},
                           [WAY_SUM] = {1, 2}},
    // slices put back into zeros
    [DISPATCH_ALLGATHER] = {[WAY_ORDER] = {ZEROS + ADDED, FILLED_ZEROS + SORTED_PUT},
                            [WAY_BY_EXPERT] = {ZEROS + ADDED + SELECTED_BACK + ZEROS + 1,
                                               FILLED_ZEROS + SORTED_PUT + SELECTED_BACK + 2 + FILLED_ZEROS + 1},
                            [WAY_BY_RANK] = {1, 2},
                            [WAY_SUM] = {1, 2}},
};

static int chosen(const Target *target, const TrainPlan *plan, const Task *task, bool deterministic) {
    const TargetRuntime *runtime = &target->runtime;
    const bool sinkhorn = runtime->sinkhorn_rounds > 0;
    const int counts = target_dispatch(target, plan) == DISPATCH_ALLTOALL ? COUNTS : 0;
    if (task->phase == PHASE_BACKWARD) {
        return sinkhorn ? SINKHORN_BACK : CHOICE_BACK + (runtime->balances_nothing ? 0 : BALANCE_BACK);
    }
    if (sinkhorn) {
        return SINKHORN + SINKHORN_ROUND * runtime->sinkhorn_rounds + (deterministic ? SINKHORN_FILLS : 0) + counts;
    }
    return (deterministic ? SORTED_CHOICE : CHOICE) + (runtime->balances_nothing ? 0 : BALANCE) + counts;
}

static int launches(const Target *target, const TrainPlan *plan, const Task *task, WayStep step, bool deterministic) {
    const Dispatch dispatch = target_dispatch(target, plan);
    if (!target->runtime.routes_apart || (dispatch != DISPATCH_ALLTOALL && dispatch != DISPATCH_ALLGATHER)) {
        return 0;
    }
    if (step == WAY_CHOOSE) {
        return chosen(target, plan, task, deterministic);
    }
    const Way *way = &(task->phase == PHASE_BACKWARD ? backward : forward)[dispatch][step];
    return deterministic ? way->deterministic : way->free;
}

int expert_launches_apart(const Target *target, const TrainPlan *plan, const Task *task, WayStep step) {
    return launches(target, plan, task, step, target->runtime.fills_results);
}

int expert_launches_inside(const Target *target, const TrainPlan *plan, const Task *task, WayStep step) {
    return expert_launches_apart(target, plan, task, step) - launches(target, plan, task, step, false);
}
