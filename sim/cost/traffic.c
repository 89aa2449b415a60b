// How often a streaming task's least traffic is really moved, by how the plan runs its kernels. Bytes per token and
// layer, forward (sim/SOURCES.md A4; backward twice as much): both norms 9.6h compiled, 12h fused, of 8h at least;
// rotary 4h, 16h, 20h times (1 + k/a), of 4h; gated activation 6f, 7f, 10f, of 6f. The loss moves 14, 24 or
// 32 bytes per logit, both ways. A target with numbers of its own wins. Not modelled: that eager norms of Hopper move
// 23 and 54 planes where 18 and 46 are counted (tests/gpu/MECHANISMS.md); pairs of runs do not show it on A100.

#include "sim/cost/compute.h"

#include <math.h>

typedef struct Passes {
    double norm, norm_backward, qk_norm, qk_norm_backward, rotary, activation, loss_bytes_per_logit;
} Passes;

// Eager RMSNorm, operation by operation, in planes of two bytes an element: to fp32 3, square 4, mean 2, times the
// root 4, to bf16 3, times the weight 2. Backward: weight 6, to fp32 3, root 12, mean 2, square 14, sum of both 6, to
// bf16 3, and the residual's gradient added 3. With these, 12 pairs of runs that differ in fusing alone gain what they
// were measured to gain (mean -0.5 %, with 40 of 72 bytes -6.1 %; three sources of tests/accuracy).
#define NORM_PLANES 18.0
#define NORM_BACKWARD_PLANES 49.0
#define RESIDUAL_PLANES 3.0

// The same of fp32 tensors, which casts nothing, beside weights that are not trained: square 4, mean 2, times the root
// 4, times the weight 4. Backward: weight 6, root 12, mean 2, square 14, sum 6, the residual's gradient 6.
#define WIDE_NORM_PLANES 14.0
#define WIDE_NORM_BACKWARD_PLANES 46.0

// PyTorch's own kernels since 2.9 are as fast forward as what Inductor makes, 2.4 planes, and take 1.53 times as long
// both ways (21.99 ms for 14.35: sim/SOURCES.md H11), where Inductor's backward is 3.6.
#define ATEN_NORM_PLANES 2.4
#define ATEN_NORM_BACKWARD_PLANES (21.99 / 14.35 * (2.4 + 3.6) - ATEN_NORM_PLANES)

static const Passes aten_passes = {
    .norm = ATEN_NORM_PLANES / 2,
    .norm_backward = (ATEN_NORM_BACKWARD_PLANES + RESIDUAL_PLANES) / 4,
    .qk_norm = ATEN_NORM_PLANES / 3,
    .qk_norm_backward = ATEN_NORM_BACKWARD_PLANES / 3,
};

static const Passes wide_passes = {
    .norm = WIDE_NORM_PLANES / (2 * 2),
    .norm_backward = WIDE_NORM_BACKWARD_PLANES / (2 * 4),
};

static const Passes passes[FUSED_COUNT] = {
    [FUSED_COMPILED] = {9.6 / 8, 9.6 / 8, 9.6 / 8, 9.6 / 8, 1, 1, 14},
    [FUSED_FUSED] = {12.0 / 8, 12.0 / 8, 12.0 / 8, 12.0 / 8, 4, 7.0 / 6, 24},
    [FUSED_EAGER] = {NORM_PLANES / 2, NORM_BACKWARD_PLANES / 4, NORM_PLANES / 3,
                     (NORM_BACKWARD_PLANES - RESIDUAL_PLANES) / 3, 5, 10.0 / 6, 32},
};

// Planes of queries and keys that the chain of transformers moves, the mean of both ways: 21.9 and 26.5 measured on an
// H100 (tests/gpu/MECHANISMS.md) less the starts of its kernels. Counted on contiguous tensors they are 10, as a
// product of complex numbers has them. What fusing gains in four pairs of runs on A100 is 0.7 % less than predicted
// with the 23, 1.7 % more with the 10.
#define STRIDED_ROTARY_PLANES 23.0

// log_softmax goes over a row of fp32 three times forward (largest, sum, result) and over two rows twice backward. What
// the SMs work on at once stays in the L2 up to some 370 KB for each of them (50 MB for 132 of H100, 40 MB for 108 of
// A100: data sheets); of longer rows it is read again, two times and two times 4 bytes: 48 a logit, where 50.6 were
// measured with 128,256 words (tests/gpu/MECHANISMS.md).
static const double cached_row_bytes = 370e3, read_again_bytes = 16;

// Operations that PyTorch has as one kernel whether the rest is fused or not: layer norm reads and writes once, its
// backward reads twice (rows, then weight and bias) and adds the residual's gradient apart, 8 planes over 4. GELU is
// one kernel too, unless it is written out: 18 planes over 2 forward, 28 over 3 backward, counted operation by
// operation.
static const double eager_layernorm_backward = 2;
static const double written_out = 9, written_out_backward = 28.0 / 3;

// A plain activation in two operations is the square of a ReLU: torch.pow(relu(x), 2), 4 planes over 2 forward. Back
// autograd copies the ReLU (its power of one), doubles it, takes it times the gradient, and masks: 10 planes over 3.
static const double squared_relu = 2, squared_relu_backward = 10.0 / 3;

static double one_kernel_passes(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool eager = plan->fused == FUSED_EAGER;
    const bool chain = eager && task->activation == ACTIVATION_GELU_NEW;
    const bool squared = target->activation_apart && plan->fused == FUSED_FUSED;
    switch (task->kind) {
    case TASK_LAYERNORM_BACKWARD:
        return eager || target->runtime.joins_apart ? eager_layernorm_backward : 1;
    case TASK_ACTIVATION:
        return chain ? written_out : squared ? squared_relu : 1;
    case TASK_ACTIVATION_BACKWARD:
        return chain ? written_out_backward : squared ? squared_relu_backward : 1;
    default:
        return 1;
    }
}

static bool is_one_kernel(TaskKind kind) {
    return kind == TASK_LAYERNORM || kind == TASK_LAYERNORM_BACKWARD || kind == TASK_ACTIVATION ||
           kind == TASK_ACTIVATION_BACKWARD;
}

// Routed rows S of a token's k choices, operation by operation (transformers 5.23, grouped_mm_experts_forward): sum:
// times weights 2 S, back in order 2 S, sum S and a plane out, of S and one; its backward: spread S, in order 2 S,
// times weights 2 S, their gradient 4 S, of 2 S and one; tokens' gradient: index_add reads and writes what it adds to,
// 3 S. Router: softmax in fp32 and its cast, 14 bytes of 6. Without runs that judge it.
static double indexed_passes(const TrainPlan *plan, const Task *task) {
    const double rows = (double)task->inner;
    if (plan->fused != FUSED_EAGER) {
        return 1;
    }
    switch (task->kind) {
    case TASK_UNPERMUTE:
        return (task->phase == PHASE_BACKWARD ? 3 * rows : 5 * rows + 1) / (rows + 1);
    case TASK_UNPERMUTE_BACKWARD:
        return 9 * rows / (2 * rows + 1);
    case TASK_PERMUTE:
        return 1;
    default:
        return 14.0 / 6;
    }
}

// Results in the order of tokens and in fp32, then a product of a row of weights with k rows: zeros S, in order 2 S,
// to fp32 3 S, read 2 S; planes: the product 2, to bf16 3, the sum with the shared expert's 3. Backward: to fp32 3,
// weights' gradients 2 S, the rows' gradient a product of depth one, to bf16 3 S, in order 2 S (compiled: both 3 S).
// That product takes 6 to 9 ms where its traffic, 2 S, takes one (PR 2466 of that target: B200, compiled or not).
static const double depth_one_planes = 15;

static double product_passes(const Task *task, bool one_by_one) {
    const double rows = (double)task->inner;
    return task->kind == TASK_UNPERMUTE ? (8 * rows + (one_by_one ? 8 : 6)) / (rows + 1)
                                        : ((2 + depth_one_planes + (one_by_one ? 5 : 3)) * rows + 3) / (2 * rows + 1);
}

// The same of EXPERTS_WEIGHTED_FP32 (its models/moe.py and distributed/expert_parallel.py of 2025-08). Forward: gather
// 2 S; to fp32 3 S, times weights 4 S, to bf16 3 S; scatter_add of 3 S to a copy of the tokens, two planes. Backward:
// gather 2 S, casts back 6 S, two products 10 S, their sum 2 S; scatter_add of 3 S to zeros, a plane. In the order of
// the experts here and back: a padded copy 2 S, picks 2 S, put back 2 S; backward adds by index 4 S, slices 2 S, picks
// 2 S and zeroes 2 S. Compiled, what is elementwise is one pass with the gather or the sum: weights 2 S, 5 S back.
static double weighted_passes(const Target *target, const TrainPlan *plan, const Task *task) {
    const double rows = (double)task->inner;
    const bool eager = plan->fused == FUSED_EAGER, back = task->phase == PHASE_BACKWARD;
    const bool one_by_one = eager || target->routes_eagerly;
    const bool weighs = (task->kind == TASK_UNPERMUTE && !back) || task->kind == TASK_UNPERMUTE_BACKWARD;
    if (weighs && target->sums_by_product) {
        return product_passes(task, one_by_one);
    }
    switch (task->kind) {
    case TASK_UNPERMUTE:
        return back ? (3 * rows + 1) / (rows + 1) : ((one_by_one ? 13 : 5) * rows + 2) / (rows + 1);
    case TASK_UNPERMUTE_BACKWARD:
        return (one_by_one ? 20 : 5) * rows / (2 * rows + 1);
    case TASK_PERMUTE:
        return one_by_one && rows <= 1 ? (back ? 5.0 / 2 : 3.0 / 2) : back && task->sorted_elements > 0 ? 2 : 1;
    default:  // the router: a module of its own, which is compiled wherever anything is
        return eager ? 14.0 / 6 : 1;
    }
}

// The same of EXPERTS_PERMUTE_KERNELS: a pass for each order. In fp8 the rows of each expert are copied to a multiple
// of 16 or 32 of them (expert_pads).
static double permuted_passes(const Target *target, const TrainPlan *plan, const Task *task) {
    return task->kind == TASK_PERMUTE && task->groups > 0 && expert_pads(target, plan) ? 2 : 1;
}

static double routed_passes(const Target *target, const TrainPlan *plan, const Task *task) {
    return target->expert_flavour == EXPERTS_WEIGHTED_FP32 ? weighted_passes(target, plan, task)
           : target->expert_flavour == EXPERTS_INDEXED     ? indexed_passes(plan, task)
                                                           : permuted_passes(target, plan, task);
}

static bool is_routed(TaskKind kind) {
    return kind >= TASK_ROUTE && kind <= TASK_UNPERMUTE_BACKWARD;
}

static const Passes *passes_of_norms(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool eager = plan->fused == FUSED_EAGER;
    if (eager && target->upcasts_norms && task->dtype == DTYPE_FP32 && plan->precision != DTYPE_FP32) {
        return &wide_passes;
    }
    return eager && target->aten_norms ? &aten_passes
                                       : &passes[eager && target->fused_norms ? FUSED_FUSED : plan->fused];
}

double traffic_passes(const Target *target, const TrainPlan *plan, const Task *task) {
    if (is_one_kernel(task->kind)) {
        return one_kernel_passes(target, plan, task);
    }
    if (is_routed(task->kind)) {
        return routed_passes(target, plan, task);
    }
    if (target->runtime.memory_passes > 0) {
        return fmax(1, target->runtime.memory_passes);
    }
    const Passes *row = passes_of_norms(target, plan, task);
    switch (task->kind) {
    case TASK_ROPE:  // the rest of what one kernel of q, k and v moves: copy_along (sim/step/lower_apart.c)
        return plan->qkv_rope                                                 ? 1
               : target->runtime.strided_rotary && plan->fused == FUSED_EAGER ? STRIDED_ROTARY_PLANES / 2
                                                                              : passes[plan->fused].rotary;
    case TASK_SWIGLU:
    case TASK_SWIGLU_BACKWARD:
        return passes[target->activation_apart && plan->fused == FUSED_FUSED ? FUSED_EAGER : plan->fused].activation;
    case TASK_RMSNORM_BACKWARD:
        return row->norm_backward;
    case TASK_QK_NORM:
        return row->qk_norm;
    case TASK_QK_NORM_BACKWARD:
        return row->qk_norm_backward;
    default:
        return row->norm;
    }
}

// Over logits as the head made them, Transformer Engine 2.2 to 2.17 (common/triton/cross_entropy.py):
// online_softmax_kernel reads them, cross_entropy_kernel reads them and writes the gradient, element_mul_kernel reads
// and writes it. From 2.18 on (01bbe3eea) the gradient is a tensor of fp32, which is not modelled.
static const double in_place_passes = 5, in_place_forward_passes = 3;

// The first two issue so many instructions that a multiprocessor takes this long for a bf16 logit: Liger's kernel of
// the same warps and blocks before exp2, on 8192 rows of 128,256, 2.58 ms by an H100's 132 and 1.85 ms by a B200's 148
// (its pull request 1266), less a comparison that it alone had (1268: 0.04 and 0.24 ms): 0.32 and 0.23 ns.
static const double in_place_issue_s = 0.27e-9;

// So does the kernel of queries, keys and values, whose threads load and store two bytes at a time: the one of one
// tensor, of the same body, took 0.095 and 0.092 ms (back) of a GB200's 152 for 67.1 million elements, 0.079 and 0.071
// for 50.3 million (Transformer Engine's pull request 2508 of 2025-12, baseline): 0.215, 0.208, 0.239 and 0.214 ns.
static const double qkv_rope_issue_s = 0.22e-9;

// Gradients of a norm's weight are summed over all blocks of the kernel before: for widths that Transformer Engine has
// no tuned kernel of, by four warps for each 32 columns, which load one row of partial sums after another, as many rows
// as blocks fit the multiprocessors, whatever the tokens (common/normalization/rmsnorm,
// rmsnorm_bwd_finalize_general_kernel). Queries and keys have one each.
enum { NORMS_OF_HEADS = 2, UNTUNED_WIDTH = 128 };

static double norm_sums_s(const Accelerator *accelerator, const Target *target, const TrainPlan *plan,
                          const Task *task) {
    const bool untuned = task->inner <= UNTUNED_WIDTH && task_has_engine_layers(target, plan);
    return untuned ? NORMS_OF_HEADS * accelerator->norm_sums_s : 0;
}

// Other widths that it has no tuned kernel of on ROCm go through general ones (ROCm/TransformerEngine, the two
// rmsnorm_*_kernel.cu there; 128, 1,536 and 7,168 are tuned since its pull request 583 of 2026-05).
static const int64_t tuned_widths[] = {512, 768, 1024, 2048, 4096, 8192};

static double general_norm_element_s(const Accelerator *accelerator, const Target *target, const TrainPlan *plan,
                                     const Task *task) {
    const double element_s = task->kind == TASK_RMSNORM            ? accelerator->norm_element_s
                             : task->kind == TASK_RMSNORM_BACKWARD ? accelerator->norm_backward_element_s
                                                                   : 0;
    bool tuned = element_s <= 0 || !task_has_engine_layers(target, plan);
    for (size_t i = 0; i < sizeof tuned_widths / sizeof tuned_widths[0] && !tuned; i++) {
        tuned = task->cols == tuned_widths[i];
    }
    return tuned ? 0 : element_s;
}

// A row is shared by blocks of at most so many columns (launch_general_: ctas_per_row), and as many blocks as fit the
// chip are summed, so that those of a shared row are fewer to sum.
enum { COLUMNS_OF_BLOCK = 4096 };

static double general_norm_sums_s(const Accelerator *accelerator, const Task *task) {
    const int64_t blocks = (task->cols + COLUMNS_OF_BLOCK - 1) / COLUMNS_OF_BLOCK;
    const bool sums = task->kind == TASK_RMSNORM_BACKWARD;
    return sums ? accelerator->norm_backward_sums_s * (double)task->cols / (double)blocks : 0;
}

static double beyond_bytes_s(const Accelerator *accelerator, double seconds, double bytes) {
    return fmax(0, seconds - bytes / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency));
}

static double beyond_issue_s(const Accelerator *accelerator, double elements, double issue_s, double bytes) {
    const int units = accelerator->sm_count;
    return units == 0 ? 0 : beyond_bytes_s(accelerator, elements * issue_s / units, bytes);
}

double traffic_issue_s(const Accelerator *accelerator, const Target *target, const TrainPlan *plan, const Task *task) {
    const double element = dtype_bytes(task->dtype);
    if (task->kind == TASK_LOSS_SUM && target_loss(target, plan) == LOSS_IN_PLACE) {
        const double logits = (double)task->rows * (double)task->cols;
        return beyond_issue_s(accelerator, logits, in_place_issue_s, logits * in_place_forward_passes * element);
    }
    if (task->kind == TASK_ROPE && plan->qkv_rope) {
        const double bytes = (double)(task->traffic_bytes + task->cast_bytes);
        return beyond_issue_s(accelerator, bytes / (2 * element), qkv_rope_issue_s, bytes);
    }
    const double norm_element_s = general_norm_element_s(accelerator, target, plan, task);
    if (norm_element_s > 0) {
        const double bytes = (double)task->traffic_bytes * traffic_passes(target, plan, task);
        return beyond_bytes_s(accelerator, (double)task->rows * (double)task->cols * norm_element_s, bytes) +
               general_norm_sums_s(accelerator, task);
    }
    return task->kind == TASK_QK_NORM_BACKWARD ? norm_sums_s(accelerator, target, plan, task) : 0;
}

double traffic_loss_bytes_per_logit(const Target *target, const TrainPlan *plan, const Task *task) {
    const LossForm form = target_loss(target, plan);
    if (form == LOSS_IN_PLACE) {
        return in_place_passes * dtype_bytes(task->dtype);
    }
    if (form == LOSS_ONE_COPY) {
        return SPLIT_LOSS_BYTES;
    }
    const double own = target->runtime.loss_bytes_per_logit;
    if (own > 0 && target->own_kernels) {
        return own * dtype_bytes(task->dtype) / dtype_bytes(DTYPE_FP32);  // logits as the head made them
    }
    const double row_bytes = (double)task->cols * dtype_bytes(DTYPE_FP32);
    const bool again = target->runtime.loss_by_row && plan->fused == FUSED_EAGER && row_bytes > cached_row_bytes;
    return own > 0 ? own : passes[plan->fused].loss_bytes_per_logit + (again ? read_again_bytes : 0);
}
