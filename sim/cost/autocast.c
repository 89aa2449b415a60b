// What torch.autocast moves beside its operations where weights are fp32 and replicated (one GPU, DDP). The embedding
// gives fp32, so that the residual stream is fp32, as what norms give; products read halves: their inputs are cast one
// by one, weights once for each forward pass, and their gradients back (PyTorch, aten/src/ATen/autocast_mode.cpp:
// linear and matmul are of lower_precision_fp, layer_norm, pow and softmax of fp32). Counted operation by operation,
// bytes an element beyond those of the same operations in halves. Not counted: the memory of copies and of the stream;
// casts of what FSDP shows in halves.

#include "sim/cost/compute.h"

typedef struct Beyond {
    double norm, norm_backward, add;  // the residual sum has the cast of its branch's gradient
} Beyond;

// A layer norm: reads and writes fp32, cast 6; backward: gradient to fp32 6, rows 12 for 6, weight and bias 8 for 4,
// the residual's gradient added 12 for 6. Compiled: input 4 for 2; gradients 4 for 2 in and out, the input, and a half.
static const Beyond layer_norm[FUSED_COUNT] = {
    [FUSED_EAGER] = {10, 22, 10}, [FUSED_FUSED] = {10, 22, 10}, [FUSED_COMPILED] = {2, 8, 4}};

// RMSNorm written out is in fp32 in any case (sim/cost/traffic.c): 28 for 36, 92 for 98. Each product behind it casts.
static const Beyond rms_norm[FUSED_COUNT] = {
    [FUSED_EAGER] = {-8, -6, 10}, [FUSED_FUSED] = {4, 12, 10}, [FUSED_COMPILED] = {2, 8, 4}};
static const double cast_bytes = 6;

// gelu_new written out, whose pow makes fp32 of all behind it: 76 for 36, 118 for 56.
static const double written_out = 40, written_out_backward = 62;

// A gradient is made in halves and cast: 8 for 4 written; added to one that is there: 20 for 8.
static const double first_gradient = 4, further_gradient = 12;

bool cost_autocasts(const Target *target, const TrainPlan *plan) {
    const bool halves = plan->precision == DTYPE_BF16 || plan->precision == DTYPE_FP16;
    return target->runtime.autocasts && plan->zero == 0 && halves && !plan->bf16_master && !plan_has_adapters(plan);
}

static double reading_products(const Target *target, const TrainPlan *plan, const Task *task) {
    enum { QUERIES_KEYS_VALUES = 3, GATE_UP = 2 };
    const bool one = target->fused_projections || plan->fused == FUSED_COMPILED;
    return one                               ? plan->fused != FUSED_COMPILED
           : task->part == GRAPHED_ATTENTION ? QUERIES_KEYS_VALUES
           : task->part == GRAPHED_MLP       ? GATE_UP
                                             : 1;
}

static double of_product(const Task *task) {
    const double weight = (double)(task->trans_a ? task->m : task->k) * (double)task->n;
    return task->trans_a   ? weight * (task->accumulate ? further_gradient : first_gradient)
           : task->trans_b ? weight * cast_bytes
                           : 0;
}

double autocast_bytes(const Target *target, const TrainPlan *plan, const Task *task) {
    if (!cost_autocasts(target, plan)) {
        return 0;
    }
    const double elements = (double)task->rows * (double)task->cols;
    const double casts = cast_bytes * reading_products(target, plan, task);
    const bool chain = plan->fused == FUSED_EAGER && task->activation == ACTIVATION_GELU_NEW;
    switch (task->kind) {
    case TASK_GEMM:
        return of_product(task);
    case TASK_LAYERNORM:
        return elements * layer_norm[plan->fused].norm;
    case TASK_LAYERNORM_BACKWARD:
        return elements * layer_norm[plan->fused].norm_backward;
    case TASK_RMSNORM:
        return elements * (rms_norm[plan->fused].norm + casts);
    case TASK_RMSNORM_BACKWARD:
        return elements * (rms_norm[plan->fused].norm_backward + casts);
    case TASK_ADD:
        return elements * layer_norm[plan->fused].add;
    case TASK_ACTIVATION:
        return chain ? elements * written_out : 0;
    case TASK_ACTIVATION_BACKWARD:
        return chain ? elements * written_out_backward : 0;
    default:
        return 0;
    }
}
