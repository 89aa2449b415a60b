// What torch.autocast moves beside its operations, counted operation by operation: bytes an element beyond those of the
// same operations in halves (PyTorch, aten/src/ATen/autocast_mode.h: linear and matmul are of lower_precision_fp,
// layer_norm, pow and softmax of fp32). Two cases, by what weights are shown as. Replicated in fp32 (one GPU, DDP): the
// embedding gives fp32, so that the residual stream is fp32, as what norms give; products read halves: their inputs are
// cast one by one, weights once for each forward pass, and their gradients back. In halves (shards of FSDP 1, frozen
// weights beside adapters): the stream and RMSNorm's result are halves, and only what is of fp32 casts, in and out.
// Whose forward is under it is the target's. Not counted: the memory of copies and of the stream; a copy of logits in
// fp32 that is handed out.

#include "sim/cost/compute.h"

typedef enum Shown { SHOWN_AS_THEY_ARE, SHOWN_FP32, SHOWN_HALVES } Shown;

typedef struct Beyond {
    double norm, norm_backward, add;  // the residual sum has the cast of its branch's gradient
} Beyond;

// A layer norm: reads and writes fp32, cast 6; backward: gradient to fp32 6, rows 12 for 6, weight and bias 8 for 4,
// the residual's gradient added 12 for 6. Compiled: input 4 for 2; gradients 4 for 2 in and out, the input, and a half.
static const Beyond layer_norm[FUSED_COUNT] = {
    [FUSED_EAGER] = {10, 22, 10}, [FUSED_FUSED] = {10, 22, 10}, [FUSED_COMPILED] = {2, 8, 4}};

// In halves: to fp32 6, 8 for 4, cast 6; backward the same casts 12, rows 12 for 6, weight and bias 8 for 4. Compiled,
// casts are in the kernel. RMSNorm written out is what it is without.
static const Beyond half_layer_norm[FUSED_COUNT] = {[FUSED_EAGER] = {16, 22, 0}, [FUSED_FUSED] = {16, 22, 0}};

// RMSNorm written out is in fp32 in any case (sim/cost/traffic.c): 28 for 36, 92 for 98. Each product behind it casts.
static const Beyond rms_norm[FUSED_COUNT] = {
    [FUSED_EAGER] = {-8, -6, 10}, [FUSED_FUSED] = {4, 12, 10}, [FUSED_COMPILED] = {2, 8, 4}};
static const double cast_bytes = 6;

// gelu_new written out, whose pow makes fp32 of all behind it: 76 for 36, 118 for 56.
static const double written_out = 40, written_out_backward = 62;

// A gradient is made in halves and cast: 8 for 4 written; added to one that is there: 20 for 8.
static const double first_gradient = 4, further_gradient = 12;

static Shown weights_shown(const Target *target, const TrainPlan *plan) {
    const bool halves = plan->precision == DTYPE_BF16 || plan->precision == DTYPE_FP16;
    const bool under = plan->zero > 0          ? target->runtime.autocasts_shards
                       : plan_has_stages(plan) ? false  // none that has both casts there
                                               : target->runtime.autocasts;
    return !halves || !under || plan->bf16_master        ? SHOWN_AS_THEY_ARE
           : plan->zero == 0 && !plan_has_adapters(plan) ? SHOWN_FP32
                                                         : SHOWN_HALVES;
}

bool cost_autocasts_weights(const Target *target, const TrainPlan *plan) {
    return weights_shown(target, plan) == SHOWN_FP32;
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

static double of_written_out(const TrainPlan *plan, const Task *task, double bytes) {
    return plan->fused == FUSED_EAGER && task->activation == ACTIVATION_GELU_NEW ? bytes : 0;
}

// An element's, of kinds that cast whatever weights are.
static double of_fp32_kinds(const TrainPlan *plan, const Task *task, const Beyond *layer_norm_row) {
    switch (task->kind) {
    case TASK_LAYERNORM:
        return layer_norm_row->norm;
    case TASK_LAYERNORM_BACKWARD:
        return layer_norm_row->norm_backward;
    case TASK_ACTIVATION:
        return of_written_out(plan, task, written_out);
    case TASK_ACTIVATION_BACKWARD:
        return of_written_out(plan, task, written_out_backward);
    default:
        return 0;
    }
}

// An element's, of kinds that only cast where the stream is fp32.
static double of_wide_stream(const Target *target, const TrainPlan *plan, const Task *task) {
    const double casts = cast_bytes * reading_products(target, plan, task);
    switch (task->kind) {
    case TASK_RMSNORM:
        return rms_norm[plan->fused].norm + casts;
    case TASK_RMSNORM_BACKWARD:
        return rms_norm[plan->fused].norm_backward + casts;
    case TASK_ADD:
        return layer_norm[plan->fused].add;
    default:
        return 0;
    }
}

double autocast_bytes(const Target *target, const TrainPlan *plan, const Task *task) {
    const Shown shown = weights_shown(target, plan);
    if (shown == SHOWN_AS_THEY_ARE) {
        return 0;
    }
    const bool wide = shown == SHOWN_FP32;
    if (task->kind == TASK_GEMM) {
        return wide ? of_product(task) : 0;
    }
    const Beyond *row = wide ? &layer_norm[plan->fused] : &half_layer_norm[plan->fused];
    return (double)task->rows * (double)task->cols *
           (of_fp32_kinds(plan, task, row) + (wide ? of_wide_stream(target, plan, task) : 0));
}
