// How many launches the way to experts and back is, counted in the code, kernel by kernel and copy by copy. The small
// ones are on counts and scores, so that their traffic is nothing. Events, views and allocations are not counted.
//   EXPERTS_PERMUTE_KERNELS  Transformer Engine's kernels order the tokens (--moe-permute-fusion) and choose the
//                            experts (--moe-router-fusion), as in the recipes of Megatron-Bridge and the MoE-ModelZoo:
//                            Megatron-LM at 9ba248e69c (2026-02-20), transformer/moe/router.py, moe_utils.py,
//                            token_dispatcher.py and fused_a2a.py; Transformer Engine 2.12, pytorch/triton/
//                            permutation.py and router.py; deepseek-ai/DeepEP at dd758ca, and its branch hybrid-ep
//                            at 94a9f8f, csrc/hybrid_ep/executor/executor.cu. Not counted: a router whose parts are
//                            not fused (21 launches more forward), random logits of a benchmark (two), the
//                            correction of scores (two), the sum of counts over tp and cp (one).
//   EXPERTS_WEIGHTED_FP32    operations of PyTorch where nothing compiles them: that target's code at 0691f514f
//                            (2026-03-12), models/common/moe/moe.py, utils.py and kernels.py, distributed/
//                            expert_parallel.py. The router is compiled wherever anything is (host.c has it).

#include "sim/cost/expert_way.h"

enum {
    // fused_topk_with_score_function, scores for the loss, sum of the map, the loss, its value over its weight, added
    // to the log
    ROUTER = 6,
    // the same three back, ones, times the loss's scale, sum of both gradients, casts of weight and input to fp32 and
    // of their gradients from it
    ROUTER_BACK = 10,
    ROW_MAP = 3,          // _row_id_map_pass_1, 2 and 3
    TOP_K = 2,            // torch.topk: picks, sorts; back: zeros, scatter
    SIDES = 2,            // DeepEP: notify (cached where the layout is known) and the kernel itself
    HYBRID_COUNTS = 3,    // map of all ranks, its metadata, counts padded
    HYBRID_EXCHANGE = 4,  // flags, ranks in step, the kernel itself, ranks in step
    GATHERED_MAP = 8,     // two slices, counts, copy to the host, weights by masked_select
};

static const unsigned char forward[DISPATCH_COUNT][WAY_STEPS] = {
    [DISPATCH_ALLTOALL] = {[WAY_CHOOSE] = ROUTER + COUNTS,
                           [WAY_COUNT] = 1 + COUNTS_HOME,
                           [WAY_ORDER] = ROW_MAP + 1,
                           [WAY_SEND] = PARTS,
                           [WAY_BY_EXPERT] = 2,  // map of chunks, sort
                           [WAY_BY_RANK] = 3,    // counts transposed, map, sort
                           [WAY_RETURN] = 1,
                           [WAY_SUM] = 1},
    [DISPATCH_ALLGATHER] = {[WAY_CHOOSE] = ROUTER,
                            [WAY_COUNT] = PARTS,
                            [WAY_ORDER] = ROW_MAP + 1,
                            [WAY_SEND] = 1,
                            [WAY_BY_EXPERT] = GATHERED_MAP + ROW_MAP + 1,
                            [WAY_BY_RANK] = 1,
                            [WAY_RETURN] = 1,
                            [WAY_SUM] = 1},
    [DISPATCH_DEEPEP] = {[WAY_CHOOSE] = ROUTER + TOP_K,
                         [WAY_COUNT] = 1,
                         [WAY_ORDER] = ROW_MAP + 1,
                         [WAY_SEND] = 1 + SIDES,             // layout
                         [WAY_BY_EXPERT] = 1 + ROW_MAP + 1,  // indices to a map
                         [WAY_BY_RANK] = 1,
                         [WAY_RETURN] = SIDES,
                         [WAY_SUM] = 1},
    // dispatch_with_permute and combine_with_unpermute
    [DISPATCH_HYBRIDEP] = {[WAY_CHOOSE] = ROUTER,
                           [WAY_COUNT] = 1,
                           [WAY_ORDER] = ROW_MAP + 1,
                           [WAY_SEND] = HYBRID_COUNTS + HYBRID_EXCHANGE,
                           [WAY_BY_EXPERT] = 2,  // permute, sum of counts
                           [WAY_BY_RANK] = 1,
                           [WAY_RETURN] = HYBRID_EXCHANGE,
                           [WAY_SUM] = 1},
};

// Maps are kept: what is left is the kernel that moves rows.
static const unsigned char backward[DISPATCH_COUNT][WAY_STEPS] = {
    [DISPATCH_ALLTOALL] = {ROUTER_BACK, 1, 1, PARTS, 1, 1, 1, 1},
    [DISPATCH_ALLGATHER] = {ROUTER_BACK, 1, 1, PARTS, 2, 1, 1, 1},
    [DISPATCH_DEEPEP] = {ROUTER_BACK + TOP_K, 1, 1, SIDES, 2, 1, SIDES, 1},
    [DISPATCH_HYBRIDEP] = {ROUTER_BACK, 1, 1, HYBRID_EXCHANGE, 1, 1, HYBRID_EXCHANGE, 1},
};

enum {
    EXCHANGE = 6,  // as any collective of PyTorch (host.c)
    // generate_permute_indices: two sums along and one over ranks, two differences, at least the alignment, rounded up
    // in four, a fill and the indices, ends to int32; a row of zeros, put behind the rows, and the rows in order
    ALIGNED_ORDER = 16,
    ADDED_BY_INDEX = 6,  // gradient of rows by index: zeros, and a sum by sorted indices
};

static const unsigned char apart_forward[WAY_STEPS] = {
    [WAY_COUNT] = EXCHANGE + 4,  // sums of both sides, home
    [WAY_ORDER] = 7,             // counts twice and added up, indices and their sort, scores, rows' numbers, rows
    [WAY_SEND] = EXCHANGE,
    [WAY_BY_EXPERT] = ALIGNED_ORDER,
    [WAY_BY_RANK] = 1,
    [WAY_RETURN] = EXCHANGE,
    [WAY_SUM] = 6,  // zeros, put by index, to fp32, product, to bf16, the shared expert's
};

static const unsigned char apart_backward[WAY_STEPS] = {
    [WAY_COUNT] = EXCHANGE,
    [WAY_ORDER] = 2 * ADDED_BY_INDEX,  // rows, scores
    [WAY_SEND] = EXCHANGE,
    [WAY_BY_EXPERT] = ADDED_BY_INDEX,
    [WAY_BY_RANK] = 3,  // zeros for the row cut off, the others, by index
    [WAY_RETURN] = EXCHANGE,
    [WAY_SUM] = 5,  // to fp32, two products, to bf16, by index
};

// TEGroupedMLP pads and unpads by kernels of their own (Transformer Engine, pytorch/module/fp8_padding.py) unless
// the router pads what it chooses, which Megatron-Bridge's recipes ask for since those of 2026-06 (perf_recipes at
// v0.6.0; none at v0.3.0), or the exchange does (HybridEP). Of DeepEP the order of the experts does it from 2.12 on.
bool expert_pads(const Target *target, const TrainPlan *plan) {
    const Dispatch dispatch = target_dispatch(target, plan);
    return plan->precision == DTYPE_FP8 && target->fp8_flavour == FP8_TRANSFORMER_ENGINE && !target->experts_at_once &&
           (dispatch == DISPATCH_ALLTOALL || dispatch == DISPATCH_ALLGATHER);
}

// Tokens and their weights; results alone.
static int padding(const Target *target, const TrainPlan *plan, WayStep step) {
    if (!expert_pads(target, plan)) {
        return 0;
    }
    return step == WAY_BY_EXPERT ? PARTS : step == WAY_BY_RANK ? 1 : 0;
}

// What comes back has its direction turned: the gradient of what was sent returns.
static WayStep step_of(const Task *task) {
    const bool there = task->backward == (task->phase == PHASE_BACKWARD);
    switch (task->kind) {
    case TASK_ROUTE:
    case TASK_ROUTE_BACKWARD:
        return WAY_CHOOSE;
    case TASK_PERMUTE:
        return task->groups == 0 ? WAY_ORDER : there ? WAY_BY_EXPERT : WAY_BY_RANK;
    case TASK_UNPERMUTE:
        return task->backward ? WAY_ORDER : WAY_SUM;
    case TASK_UNPERMUTE_BACKWARD:
        return WAY_SUM;
    case TASK_ALL_TO_ALL:
        return task->awaited && !task->once ? WAY_COUNT
               : task->once                 ? (task->awaited ? WAY_SEND : WAY_RETURN)
               : task->rows > 0             ? (there ? WAY_SEND : WAY_RETURN)
                                            : WAY_NONE;
    default:
        return WAY_NONE;
    }
}

static bool is_of_engine(const Target *target, const TrainPlan *plan) {
    return target->expert_flavour == EXPERTS_PERMUTE_KERNELS && plan->fused == FUSED_FUSED;
}

static int kernels_of_engine(const Target *target, const TrainPlan *plan, const Task *task, WayStep step) {
    const Dispatch dispatch = target_dispatch(target, plan);
    const int apart = expert_launches_apart(target, plan, task, step);
    return (apart > 0                       ? apart
            : task->phase == PHASE_BACKWARD ? backward[dispatch][step]
                                            : forward[dispatch][step]) +
           padding(target, plan, step);
}

int expert_launches_in_operations(const Target *target, const TrainPlan *plan, const Task *task) {
    const WayStep step = step_of(task);
    return is_of_engine(target, plan) && step != WAY_NONE ? expert_launches_inside(target, plan, task, step) : 0;
}

int expert_launches_behind_counts(const Target *target, const TrainPlan *plan) {
    static const unsigned char behind[DISPATCH_COUNT] = {[DISPATCH_DEEPEP] = 1, [DISPATCH_HYBRIDEP] = HYBRID_EXCHANGE};
    return is_of_engine(target, plan) ? behind[target_dispatch(target, plan)] : 0;
}

int expert_launches_counted(const Target *target, const TrainPlan *plan, const Task *task) {
    const WayStep step = step_of(task);
    if (step == WAY_NONE) {
        return 0;
    }
    if (is_of_engine(target, plan)) {
        return kernels_of_engine(target, plan, task, step);
    }
    const bool one_by_one = plan->fused == FUSED_EAGER || target->routes_eagerly;
    const bool apart = target->expert_flavour == EXPERTS_WEIGHTED_FP32 && one_by_one &&
                       target_dispatch(target, plan) == DISPATCH_ALLTOALL;
    return !apart ? 0 : task->phase == PHASE_BACKWARD ? apart_backward[step] : apart_forward[step];
}
