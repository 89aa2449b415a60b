// What frameworks run around their experts' products, and around queries, in operations of their own: bytes, and the
// kernels of PyTorch that take elements one by one, as those do that convert, broadcast or read rows with a stride
// (aten/src/ATen/native/cuda/CUDALoops.cuh, gpu_kernel_impl: vectorized where all operands are contiguous and of one
// type). Time of an element: element_s of the accelerator.

#include "sim/step/experts.h"

typedef struct Apart {
    int bytes, kernels, kernel_bytes;  // kernels that take elements one by one, and their part of the bytes
} Apart;

static void add_apart(Op *op, const Apart *apart, int64_t elements) {
    op->task.cast_bytes += apart->bytes * elements;
    op->task.apart_elements += apart->kernels * elements;
    op->task.apart_bytes += apart->kernel_bytes * elements;
}

// What Megatron-LM runs in addition to the products of a model with biases (gpt_oss), per routed element.
static bool has_biases(const Lowering *lowering) {
    return lowering->model->experts.bias && lowering->target->expert_flavour == EXPERTS_PERMUTE_KERNELS;
}

static bool adds_by_expert(const Lowering *lowering) {
    return lowering->model->experts.bias && lowering->target->biases_by_expert;
}

// Elsewhere each row picks its bias by an index, which another operation adds (grouped_mm_experts_forward of
// transformers' integrations/moe.py: 2 and 6; repeat_interleave writes as much), where nothing compiles it.
static bool picks_biases(const Lowering *lowering) {
    const Target *target = lowering->target;
    return lowering->model->experts.bias && !target->own_kernels && !has_biases(lowering) &&
           !adds_by_expert(lowering) && lowering->plan->fused != FUSED_COMPILED;
}

// As told, or where nothing is as each row picks its own.
static void add_biases(const Lowering *lowering, Op *op, const Apart *told, bool backward, int64_t width) {
    static const Apart picked = {8, 0, 0};
    const Apart *taken = told ? told : !backward && picks_biases(lowering) ? &picked : NULL;
    if (taken) {
        add_apart(op, taken, received_rows(lowering) * width);
    }
}

// The second bias times the weight in fp32, per expert, added, concatenated and cast (4, 10, 8, 6; backward 6, 6, 4, 8
// and 4, 12 with a sum in it: transformer/moe/experts.py, _apply_bias). Of these all but concatenations and sums.
void add_expert_biases(const Lowering *lowering, Op *op, bool backward, int64_t width) {
    static const Apart forward = {28, 3, 4 + 10 + 6}, back = {40, 4, 6 + 6 + 8 + 8};
    const bool adds = has_biases(lowering) || adds_by_expert(lowering);
    add_biases(lowering, op, !adds ? NULL : backward ? &back : &forward, backward, width);
}

// The first bias, added per expert and concatenated; backward the parts are joined again (NeMo Automodel at 986bde828,
// components/moe/experts.py, the same function).
void add_first_biases(const Lowering *lowering, Op *op, bool backward, int64_t width) {
    static const Apart forward = {8, 1, 4}, back = {4, 0, 0};
    add_biases(lowering, op, !adds_by_expert(lowering) ? NULL : backward ? &back : &forward, backward, width);
}

// Liger's kernels replace experts of a plain gate whole (LigerExperts), for which nothing is taken.
bool indexes_experts(const Lowering *lowering) {
    const bool replaced = lowering->plan->fused == FUSED_FUSED && !lowering->model->experts.bias;
    return lowering->target->runtime.indexes_experts && lowering->ep == 1 && !replaced;
}

// transformers' gate of gpt_oss (5.23, models/gpt_oss, _apply_gate), which Liger's kernels leave as it is (0.8,
// apply_liger_kernel_to_gpt_oss): every other column clamped 2 x 6, times alpha 4, sigmoid 4, times the gate 6, the
// other half plus one 4, product 6. Backward: of both products 4 x 6, sigmoid 6, alpha 4, their sum 6, clamps 2 x 8,
// each half into zeros of both 2 x (4 + 6), and these added 12. Of these by a stride the clamps and the halves. The
// fused activation has 6 and 10 of it, two operations and three have 10 and 18.
static void clamp_written_out(const Lowering *lowering, Op *op, bool backward, int64_t elements) {
    enum { FORWARD = 36, BACK = 88 };
    static const Apart fused[] = {{FORWARD - 6, 2, 6 + 6}, {BACK - 10, 4, 8 + 8 + 6 + 6}},
                       eager[] = {{FORWARD - 10, 2, 6 + 6}, {BACK - 18, 4, 8 + 8 + 6 + 6}};
    if (lowering->plan->fused != FUSED_COMPILED) {
        add_apart(op, lowering->plan->fused == FUSED_EAGER ? &eager[backward] : &fused[backward], elements);
    }
}

// Clamps of both halves before the gated activation, concatenated (8 of the input; backward 11 of masks, and 4:
// fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl). Of these the clamps, comparisons and selections.
void add_clamps(const Lowering *lowering, Op *op, bool backward, int64_t width) {
    static const Apart forward = {2 * 8, 2, 4 + 4}, back = {2 * 15, 5, 3 + 3 + 5 + 3 + 5};
    if (has_biases(lowering)) {
        add_apart(op, backward ? &back : &forward, received_rows(lowering) * width);
    } else if (indexes_experts(lowering) && lowering->model->experts.bias) {
        clamp_written_out(lowering, op, backward, received_rows(lowering) * width);
    }
}

// It rotates queries and keys of gpt_oss by separate operations too: YaRN scales their cosines, which its fused kernel
// does not support (rope_utils.py of its core 0.16). Bytes beyond the kernel's 4: times cosine 4, half of it negated
// and concatenated 2 + 4, times sine 4, sum 6, concatenation with an empty rest 4; backward 4, 2 + 4, 4, the sum of
// both 6, and zeros for the empty rest with their sum 2 + 6. Of these both products and, of half, the negation.
void turn_apart(const Lowering *lowering, Op *op, bool backward) {
    static const Apart forward = {24 - 4, 2, 4 + 4}, back = {28 - 4, 2, 4 + 4}, negation = {0, 1, 4};
    const Dims *d = &lowering->dims;
    if (has_biases(lowering)) {
        const int64_t elements = d->tokens * (d->q_width + d->k_width);
        add_apart(op, backward ? &back : &forward, elements);
        add_apart(op, &negation, elements / 2);
    }
}

// GPT-NeoX v1.0 on PyTorch 1.8 (its transformer.py, class ParallelSelfAttention), for each element of the queries,
// and as many keys and values: biases added behind the product 3 x 4, the rotated part's halves joined and turned 12,
// with the rest 4, sequences before tokens 3 x 4, all three in one tensor 3 x 4, the result in order again 4. Backward:
// the result's gradient in order 4; of queries and keys each part in zeros 2 x 2 + 4 and their sum 6, halves as
// forward 12; all three in one again 3 x 4. The kernel's own are 16 of each turned element, both ways.
static int64_t joined_bytes(const Dims *d, int64_t rotated, bool backward) {
    const int64_t turned = 2 * (12 - 16);
    const int64_t whole = backward ? 4 + 2 * (2 * 2 + 4 + 6) + 3 * 4 : 3 * 4 + 2 * 4 + 3 * 4 + 3 * 4 + 4;
    return d->tokens * (d->q_width * whole + turned * d->heads * rotated);
}

// What puts queries, keys and values together by operations of its own (joins_apart), beyond the kernel that turns.
void join_apart(const Lowering *lowering, Op *op, bool backward) {
    if (lowering->target->runtime.joins_apart) {
        op->task.cast_bytes += joined_bytes(&lowering->dims, op->task.inner, backward);
    }
}

// One kernel reads queries, keys and values from their product and writes each by itself, the gradients' the other way
// (Transformer Engine 2.8, common/fused_rope/fused_rope.cu: fused_qkv_rope_forward_kernel, _backward_kernel). Values,
// and what is not turned of a head, beyond what is.
void copy_along(const Lowering *lowering, Op *op) {
    const Dims *d = &lowering->dims;
    if (lowering->plan->qkv_rope) {
        const int64_t still = (d->heads + d->kv_heads) * (d->head_dim - op->task.inner);
        op->task.cast_bytes += 2 * d->tokens * (d->v_width + still) * dtype_bytes(d->dtype);
    }
}

// A part's gradient of the head to fp32, and their sum in the gradient's type (casts_loss_sums): of 16 bytes in bf16,
// of 20 in fp32, the product that adds has 4 and 8. Of these those that convert, the sum into bf16 too.
// Until it is added a part's is there as the product wrote it and in fp32.
void cast_loss_sum(Lowering *lowering, Op *op, int64_t elements, Dtype sum) {
    static const Apart half = {12, 2, 12}, full = {12, 1, 6};
    const bool fused = target_loss(lowering->target, lowering->plan) == LOSS_FUSED;
    if (fused && lowering->target->runtime.casts_loss_sums) {
        const int32_t product = lowering_tensor(lowering, "head_part", ROLE_LOGITS, lowering->dims.dtype, elements);
        const int32_t cast = lowering_tensor(lowering, "head_part_fp32", ROLE_LOGITS, DTYPE_FP32, elements);
        add_apart(op, sum == DTYPE_FP32 ? &full : &half, elements);
        OP_OPERANDS(op, ACCESS_WRITE, op_whole(lowering, product), op_whole(lowering, cast));
    }
}

// Rows to where an index has them. What is picked by x[index] has its gradient added so, in the order of the sorted
// indices: a row is read, what is there too, and written (aten/src/ATen/native/cuda/Indexing.cu,
// indexing_backward_kernel; Inductor leaves it to ATen in bf16). What is put there alone takes elements one by one
// (IndexKernel.cu), unless compiled.
void put_rows(const Lowering *lowering, Op *op, int64_t rows, bool adds) {
    static const Apart put = {0, 1, 2 * 2};
    const Target *target = lowering->target;
    if (target->runtime.indexes_rows && adds) {
        op->task.sorted_elements = rows * lowering->dims.hidden;
    } else if (target->runtime.indexes_rows && (lowering->plan->fused == FUSED_EAGER || target->routes_eagerly)) {
        add_apart(op, &put, rows * lowering->dims.hidden);
    }
}

// Of rows that were picked by an index; Inductor leaves their gradients to ATen in bf16.
void add_in_order(const Lowering *lowering, Op *op, int64_t rows) {
    if (indexes_experts(lowering)) {
        op->task.sorted_elements = rows * lowering->dims.hidden;
    }
}

// Rows are added back by scatter_add, and the gradients of those that were picked by index_add or scatter_add: an
// atomic an element, on the pair that it lies in (aten/src/ATen/native/cuda, ScatterGatherKernel.cu and Indexing.cu:
// fastAtomicAdd; PyTorch's PR 182675 of 2026-05 has whole rows added). Megatron-core without its moe-permute-fusion,
// whose deterministic algorithms sort instead, and who else gathered and scattered rows then (scatters_rows). Others
// put them by an index, which a product sums, or adds.
void add_rows_apart(const Lowering *lowering, Op *op, int64_t rows) {
    const TargetRuntime *runtime = &lowering->target->runtime;
    const bool sum = op->task.phase == PHASE_FORWARD, product = lowering->target->sums_by_product;
    if (runtime->scatters_rows || (runtime->routes_apart && !runtime->fills_results)) {
        op->task.atomic_elements = rows * lowering->dims.hidden;
    } else if (!sum || product || runtime->sums_sorted) {
        put_rows(lowering, op, rows, !sum || !product);
    }
    if (!sum) {
        add_in_order(lowering, op, rows);
    }
}

// To fp32 for their sum and back, or gradients to it (token_dispatcher.py, token_combine).
void cast_results(const Lowering *lowering, Op *op, int64_t rows) {
    static const Apart cast = {6, 1, 6};
    add_apart(op, &cast, rows * lowering->dims.hidden);
}

// Rows weighed where nothing compiles it: to fp32, times weights, to bf16; backward both casts and the product with
// weights (sim/cost/traffic.c has their bytes, weighted_passes). Where a product sums them a cast is left.
void weigh_apart(const Lowering *lowering, Op *op) {
    static const Apart rows = {0, 3, 6 + 8 + 6}, cast = {0, 1, 6};
    const Target *target = lowering->target;
    const bool one_by_one = lowering->plan->fused == FUSED_EAGER || target->routes_eagerly;
    if (target->expert_flavour == EXPERTS_WEIGHTED_FP32 && one_by_one) {
        add_apart(op, target->sums_by_product ? &cast : &rows, routed_rows(lowering) * lowering->dims.hidden);
    }
}

// Targets that do not weigh within the experts multiply results by their weights (2 planes of rows in bf16), and in
// backward by these and for the weights' gradients (4).
void weigh_received(const Lowering *lowering, Op *op, bool backward) {
    static const Apart forward = {2 * 2, 1, 2 * 2}, back = {4 * 2, 1, 2 * 2};
    if (lowering->target->expert_flavour == EXPERTS_WEIGHTED_FP32) {
        add_apart(op, backward ? &back : &forward, received_rows(lowering) * lowering->dims.hidden);
    }
}

// Megatron's kernel that weighs rows has SwiGLU in it (transformer/moe/experts.py, bias_act_func; core 0.14): without a
// gate they are multiplied in fp32 and cast, 6 each; backward cast 6, times weights 8, cast 6, and for the weights'
// gradients times the activation 10, whose sum is 4. With a gate that no kernel fuses, too; then up takes an offset
// first, 4, and backward joins the gradients of gate and up, 8.
void weigh_plain(const Lowering *lowering, Op *op, bool backward) {
    static const Apart forward = {6 + 6, 2, 6 + 6}, back = {6 + 8 + 6 + 10 + 4, 4, 6 + 8 + 6 + 10};
    static const Apart offset = {4, 0, 0}, join = {8, 0, 0};
    const bool plain = lowering->model->mlp != MLP_GATED, apart = gates_apart(lowering);
    if ((plain || apart) && lowering->target->expert_flavour == EXPERTS_PERMUTE_KERNELS) {
        add_apart(op, backward ? &back : &forward, op->task.rows * op->task.cols);
    }
    if (apart) {
        add_apart(op, backward ? &join : &offset, op->task.rows * op->task.cols);
    }
}

// A graph of the whole step has room for the most rows that may come, so what products with their activation keep is
// copied to pages and back (Megatron-LM d98e8a64d, moe/paged_stash.py), beside the exchange that follows: rows of both
// inputs cast by columns (mark_grouped_tensor of Transformer Engine v2.16), gate and up in bf16, the weights in fp32.
// There are pages for a fifth more than the mean (moe_paged_stash_buffer_size_factor_cuda, Megatron-Bridge's recipes).
void page_rows(Lowering *lowering, Section section, const ExpertTensors *tensors) {
    enum { BLOCK = 32, PROBABILITY = 4, SPARE = 5 };
    const TrainPlan *plan = lowering->plan;
    if (!fuses_experts(lowering) || plan->cuda_graphs != CUDA_GRAPHS_ON ||
        target_dispatch(lowering->target, plan) != DISPATCH_HYBRIDEP) {
        return;
    }
    const bool forward = section == SECTION_LAYER_FORWARD;
    const int64_t rows = received_rows(lowering), inputs = lowering->dims.hidden + expert_ffn(lowering);
    const int64_t cols = (inputs + inputs / BLOCK + PROBABILITY) / lowering->dims.element + expert_up_width(lowering);
    const OpRef kept = op_whole(lowering, tensors->in);
    const OpRef left =
        op_whole(lowering, lowering_tensor(lowering, "pages left", ROLE_ACTIVATION, DTYPE_BF16, rows * cols / SPARE));
    Op *op = op_copy(lowering, section, forward ? PHASE_FORWARD : PHASE_BACKWARD,
                     forward ? "rows to pages" : "rows from pages", rows, cols, kept, kept);
    op_operand(op, left, forward ? ACCESS_WRITE : ACCESS_READ);
}
