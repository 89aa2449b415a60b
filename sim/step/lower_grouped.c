// The products of a layer's experts, each of all of them: forward, and the gradients of inputs and weights. Where they
// are fused operations in mxfp8 the activation is part of them (Transformer Engine v2.16, pytorch/ops/fused,
// forward_grouped_mlp.py and backward_grouped_mlp.py; NVIDIA/cudnn-frontend@3929da2, python/cudnn/grouped_gemm,
// grouped_gemm_glu and grouped_gemm_dglu): gate and up keep their result and write the activation of it, weighed, in
// both layouts of fp8; the gradient of the activation is never written, as the product turns it into that of gate and
// up, in both layouts too, and sums the bias's. Rows are cast before gate and up, gradients before down, no others;
// biases and clamps move nothing more.

#include <string.h>

#include "sim/step/experts.h"

int64_t expert_ffn(const Lowering *lowering) {
    return lowering->model->experts.ffn / lowering_expert_tp(lowering);
}

int64_t expert_up_width(const Lowering *lowering) {
    return (gates_experts(lowering) ? 2 : 1) * expert_ffn(lowering);
}

Grouped grouped_up(const Lowering *lowering) {
    return (Grouped){.name = "experts gate up",
                     .dgrad = "experts gate up dgrad",
                     .wgrad = "experts gate up wgrad",
                     .weights = "experts_up",
                     .bias = "experts_up_bias",
                     .in = lowering->dims.hidden,
                     .out = expert_up_width(lowering),
                     .activated = true};
}

Grouped grouped_down(const Lowering *lowering) {
    return (Grouped){.name = "experts down",
                     .dgrad = "experts down dgrad",
                     .wgrad = "experts down wgrad",
                     .weights = "experts_down",
                     .bias = "experts_down_bias",
                     .in = expert_ffn(lowering),
                     .out = lowering->dims.hidden};
}

// Their weights, or the copies that Transformer Engine keeps, which are then what the input's gradient reads.
static OpRef grouped_weights(const Lowering *lowering, const Grouped *grouped, GemmRole role) {
    const bool copied = lowering->fp8_experts >= 0 && (role != GEMM_FORWARD || !fp8_keeps_parameters(lowering));
    return copied ? op_whole(lowering, lowering->fp8_experts)
                  : unit_slice(lowering, lowering->weights[lowering_expert_unit(lowering)], grouped->weights,
                               grouped->weights);
}

static Op *add_grouped(Lowering *lowering, Section section, GemmRole role, const char *name, OpRef a, OpRef b,
                       OpRef c) {
    Op *op = op_add(lowering, section, TASK_GROUPED_GEMM, layer_phase(section), name);
    op->task.groups = lowering_local_experts(lowering);
    op->task.dtype = lowering->fp8 != FP8_NONE ? fp8_product_dtype(lowering, role) : op->task.dtype;
    OP_OPERANDS(op, ACCESS_READ, a, b);
    op_operand(op, c, ACCESS_WRITE);
    return op;
}

static void set_product(Op *op, int64_t m, int64_t n, int64_t k, double flops) {
    op->task.m = m;
    op->task.n = n;
    op->task.k = k;
    op->task.flops = flops;
}

// Where gate and up are separate products (models/common/moe.py, GroupedExperts) autograd adds the
// gradients of their common input, three planes of rows.
int64_t grouped_apart_bytes(const Lowering *lowering, int64_t width) {
    const bool apart = lowering->target->expert_flavour == EXPERTS_WEIGHTED_FP32;
    return apart ? 3 * received_rows(lowering) * width * lowering->dims.element : 0;
}

static double grouped_flops(const Lowering *lowering, const Grouped *grouped) {
    return 2.0 * (double)received_rows(lowering) * (double)grouped->in * (double)grouped->out;
}

// By the product itself: its rows and the weights of the experts here, or rows of both widths.
static int64_t casts_operands(const Lowering *lowering, const Grouped *grouped, GemmRole role) {
    const double rows = (double)received_rows(lowering), in = (double)grouped->in, out = (double)grouped->out;
    const double weights = in * out * lowering_local_experts(lowering);
    return (int64_t)fp8_grouped_cast_bytes(lowering, role, rows * (role == GEMM_FORWARD ? in : out),
                                           role == GEMM_WEIGHT_GRADIENT ? rows * in : weights);
}

// Rows of that width are cast before the product, unless the one before it wrote them so.
static int64_t casts(const Lowering *lowering, const Grouped *grouped, GemmRole role, int64_t width) {
    if (lowering->fp8 == FP8_TORCHAO) {
        return casts_operands(lowering, grouped, role);
    }
    const bool written =
        fuses_experts(lowering) &&
        (role == GEMM_FORWARD ? !grouped->activated : role == GEMM_INPUT_GRADIENT && grouped->activated);
    return lowering->fp8 != FP8_NONE && !written
               ? (int64_t)(fp8_rows_cast_bytes(lowering, role) * (double)received_rows(lowering) * (double)width)
               : 0;
}

// Elements of the bias after a product whose partial sums tp ranks add up.
int64_t grouped_replicated_bias(const Lowering *lowering, const char *bias) {
    return lowering->target->own_kernels && !lowering_routes_apart(lowering) && strcmp(bias, "experts_down_bias") == 0
               ? lowering_local_experts(lowering) * lowering->dims.hidden
               : 0;
}

Op *add_grouped_forward(Lowering *lowering, const Grouped *grouped, const ExpertTensors *tensors, int32_t x,
                        int32_t y) {
    Op *op = add_grouped(lowering, SECTION_LAYER_FORWARD, GEMM_FORWARD, grouped->name, op_whole(lowering, x),
                         grouped_weights(lowering, grouped, GEMM_FORWARD), op_whole(lowering, y));
    told(lowering, op, tensors->come);
    if (lowering->model->experts.bias && lowering->target->own_kernels) {
        op_operand(
            op, unit_slice(lowering, lowering->weights[lowering_expert_unit(lowering)], grouped->bias, grouped->bias),
            ACCESS_READ);
        op->task.replicated = grouped_replicated_bias(lowering, grouped->bias);
    }
    op->task.trans_b = true;
    set_product(op, received_rows(lowering), grouped->out, grouped->in, grouped_flops(lowering, grouped));
    op->task.cast_bytes = casts(lowering, grouped, GEMM_FORWARD, grouped->in);
    return op;
}

Op *add_grouped_backward(Lowering *lowering, const Grouped *grouped, const ExpertTensors *tensors, int32_t x,
                         int32_t dx, int32_t dy) {
    Op *op = add_grouped(lowering, SECTION_LAYER_BACKWARD, GEMM_INPUT_GRADIENT, grouped->dgrad, op_whole(lowering, dy),
                         grouped_weights(lowering, grouped, GEMM_INPUT_GRADIENT), op_whole(lowering, dx));
    told(lowering, op, tensors->come);
    set_product(op, received_rows(lowering), grouped->in, grouped->out, grouped_flops(lowering, grouped));
    op->task.cast_bytes = casts(lowering, grouped, GEMM_INPUT_GRADIENT, grouped->out);
    Op *input = op;
    op = add_grouped(
        lowering, SECTION_LAYER_BACKWARD, GEMM_WEIGHT_GRADIENT, grouped->wgrad, op_whole(lowering, dy),
        op_whole(lowering, x),
        unit_slice(lowering, lowering->gradients[lowering_expert_unit(lowering)], grouped->weights, grouped->weights));
    told(lowering, op, tensors->come);
    op->task.trans_a = true;
    set_product(op, grouped->out, grouped->in, received_rows(lowering), grouped_flops(lowering, grouped));
    op->task.cast_bytes = casts(lowering, grouped, GEMM_WEIGHT_GRADIENT, grouped->in);
    return input;
}

// Beside the result, for each element of it. The activation, of half as many where it is gated, in two layouts; and of
// the second gate and up are read in bf16 and their gradients written in two layouts, where bf16 is counted.
void fuse_activation(Lowering *lowering, Op *up, const ExpertTensors *tensors) {
    up->task.epilogue_bytes = gates_experts(lowering) ? 2 / 2 : 2;
    op_operand(up, op_whole(lowering, tensors->act), ACCESS_WRITE);
}

void fuse_activation_backward(Lowering *lowering, Op *down_dgrad, const ExpertTensors *tensors) {
    const int width = gates_experts(lowering) ? 2 : 1;
    down_dgrad->task.epilogue_bytes = width * (2 + 2) - 2;
    op_operand(down_dgrad, op_whole(lowering, tensors->gate_up), ACCESS_READ);
}
