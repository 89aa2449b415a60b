// What both halves of a layer share: the norm and the entry, the row-parallel layer and the exit, and the same in
// backward. In a post-norm model the norm is at the exit (olmo2), in some at both (gemma3), elsewhere at the entry.

#include "sim/step/lower_ops.h"

static bool norms_behind(const Lowering *lowering) {
    return model_norms_behind(lowering->model);
}

static bool norms_in_front(const Lowering *lowering) {
    return lowering->model->residual != RESIDUAL_POST_NORM;
}

static bool norms_twice(const Lowering *lowering) {
    return lowering->model->residual == RESIDUAL_BOTH_NORMS;
}

// What the tensors and tasks of a half are called, and its norms.
#define HALF_NAMES(lowering, half)                                                                                     \
    .norm = norm_of(lowering, UNIT_LAYER, half "_norm", half "_norm_bias", half "_rstd"),                              \
    .behind = norms_twice(lowering)                                                                                    \
                  ? norm_of(lowering, UNIT_LAYER, half "_post_norm", half "_post_norm_bias", half "_post_rstd")        \
                  : norm_of(lowering, UNIT_LAYER, half "_norm", half "_norm_bias", half "_rstd"),                      \
    .in = half "_in", .in_scale = half "_in scale", .in_full = half "_in_full", .sum = half "_sum",                    \
    .sum_between = half "_sum_between", .sum_normed = half "_sum_normed", .din = "d" half "_in",                       \
    .din_full = "d" half "_in_full", .din_part = "d" half "_in_part", .dsum = "d" half "_sum",                         \
    .dsum_full = "d" half "_sum_full", .mask = half "_mask", .dkept = "d" half "_kept", .enter = half " in",           \
    .leave = half " sum", .enter_backward = half " input gradient", .leave_backward = half " gradient"

Half attention_half(const Lowering *lowering) {
    const Dims *d = &lowering->dims;
    return (Half){
        HALF_NAMES(lowering, "attention"),
        .out = {"attention out", "wo", "wo", "attention out dgrad", "attention out wgrad", UNIT_LAYER, d->o_width,
                d->hidden, NULL, NULL},
        .out_bias = lowering->model->out_bias ? "bo" : NULL,
    };
}

Half mlp_half(const Lowering *lowering) {
    const Dims *d = &lowering->dims;
    return (Half){
        HALF_NAMES(lowering, "mlp"),
        .out = {"mlp down", "wdown", "wdown", "mlp down dgrad", "mlp down wgrad", UNIT_LAYER, d->ffn, d->hidden, NULL,
                NULL},
        .out_bias = lowering->model->mlp_bias ? "bdown" : NULL,
    };
}

// A gather that waits for the scale of its input.
static void mark_scaled(const Lowering *lowering, Op *mark, OpRef scale) {
    if (scale.tensor >= 0 && lowering->tp > 1) {
        op_operand(mark, scale, ACCESS_READ);
    }
}

// The output gradient that tp ranks gather, in fp8.
static HalfGradient gather_in_fp8(Lowering *lowering, const Half *half, OpRef between) {
    const Section section = SECTION_LAYER_BACKWARD;
    const int32_t cast = between_by_hidden(lowering, "gradient_fp8");
    const HalfGradient gradient = {.between = between,
                                   .full = tokens_by(lowering, "gradient_full_fp8", lowering->dims.hidden)};
    Op *maker = fp8_add_cast(lowering, section, between, cast);
    const OpRef scale = fp8_scale_of(lowering, section, maker, cast, "gradient_fp8 scale");
    mark_scaled(lowering,
                mark_tp(lowering, section, MARK_TP_LEAVE_BACKWARD, op_whole(lowering, cast),
                        op_whole(lowering, gradient.full), half->leave_backward),
                scale);
    return gradient;
}

// x, or its norm, on the tp rank that has the tokens; `scale`: its fp8 scale.
static OpRef half_norm_scaled(Lowering *lowering, const Half *half, OpRef x, OpRef *scale) {
    const Section section = SECTION_LAYER_FORWARD;
    const bool in_fp8 = activation_dtype(lowering, half->in) == DTYPE_FP8;
    *scale = op_absent();
    if (!norms_in_front(lowering) && !in_fp8) {
        return x;
    }
    const int32_t made = between_by_hidden(lowering, half->in);
    Op *maker = norms_in_front(lowering) ? add_norm(lowering, section, &half->norm, x, made)
                                         : fp8_add_cast(lowering, section, x, made);
    *scale = fp8_scale_of(lowering, section, maker, made, half->in_scale);
    return op_whole(lowering, made);
}

int32_t half_norm(Lowering *lowering, const Half *half, OpRef x) {
    OpRef scale;
    return half_norm_scaled(lowering, half, x, &scale).tensor;
}

static bool is_for_core_adapter(const Lowering *lowering, const Half *half) {
    return lowering->target->adapters_of_core && adapter_reads(lowering, half->in_full);
}

// What an adapter reads is gathered for it, by itself, and its gradient is summed before it is scattered: no product
// hides either (Transformer Engine v2.8, pytorch/module/layernorm_linear.py: ub_overlap_ag_fprop without
// return_layernorm_output; NeMo 25.04's tp_comm_overlap_disable_qkv).
static int32_t enter(Lowering *lowering, const Half *half, OpRef in, OpRef scale) {
    const int32_t full = tokens_by(lowering, half->in_full, lowering->dims.hidden);
    Op *mark = mark_tp(lowering, SECTION_LAYER_FORWARD, MARK_TP_ENTER, in, op_whole(lowering, full), half->enter);
    mark->task.unhidden = is_for_core_adapter(lowering, half);
    mark_scaled(lowering, mark, scale);
    return full;
}

int32_t half_enter(Lowering *lowering, const Half *half, int32_t in) {
    return enter(lowering, half, op_whole(lowering, in), op_absent());
}

// x, or its norm, whole on every tp rank.
int32_t half_begin(Lowering *lowering, const Half *half, OpRef x) {
    OpRef scale;
    const OpRef in = half_norm_scaled(lowering, half, x, &scale);
    return enter(lowering, half, in, scale);
}

// sum = x + out(inner), or x + norm(out(inner)).
void half_end(Lowering *lowering, const Half *half, int32_t inner, OpRef x, OpRef sum) {
    const int32_t y = tokens_by(lowering, half->sum, lowering->dims.hidden);
    between_by_hidden(lowering, half->sum_between);
    add_forward(lowering, SECTION_LAYER_FORWARD, &half->out, inner, y);
    half_leave(lowering, half, x, sum);
}

void half_leave(Lowering *lowering, const Half *half, OpRef x, OpRef sum) {
    const int32_t y = tokens_by(lowering, half->sum, lowering->dims.hidden);
    const int32_t y_between = between_by_hidden(lowering, half->sum_between);
    mark_tp(lowering, SECTION_LAYER_FORWARD, MARK_TP_LEAVE, op_whole(lowering, y), op_whole(lowering, y_between),
            half->leave);
    half_join(lowering, half, y_between, x, sum);
}

// Dropout of what a half adds is in the kernel that adds it, and keeps a byte an element, nothing else (PyTorch's
// native_dropout; Megatron-LM d98e8a64d, core/fusions/fused_bias_dropout.py).
static OpRef mask_of(Lowering *lowering, const Half *half) {
    const Dims *d = &lowering->dims;
    return op_whole(lowering,
                    lowering_tensor(lowering, half->mask, ROLE_ACTIVATION, DTYPE_FP8, d->tokens_between * d->hidden));
}

void half_join(Lowering *lowering, const Half *half, int32_t y, OpRef x, OpRef sum) {
    if (norms_behind(lowering)) {
        const int32_t normed = between_by_hidden(lowering, half->sum_normed);
        add_norm(lowering, SECTION_LAYER_FORWARD, &half->behind, op_whole(lowering, y), normed);
        y = normed;
    }
    Op *op = add_residual(lowering, x, op_whole(lowering, y), sum, half->out_bias);
    if (lowering->target->halves_drop) {
        op_operand(op, mask_of(lowering, half), ACCESS_WRITE);
    }
}

// The gradient of what the half adds to the stream: the stream's own, or what dropout lets through.
static OpRef added_gradient(Lowering *lowering, const Half *half, OpRef g) {
    if (!lowering->target->halves_drop) {
        return g;
    }
    const OpRef kept = op_whole(lowering, between_by_hidden(lowering, half->dkept));
    Op *op = op_copy(lowering, SECTION_LAYER_BACKWARD, PHASE_BACKWARD, "dropout gradient", 1,
                     lowering->dims.tokens_between * lowering->dims.hidden, g, kept);
    op_operand(op, mask_of(lowering, half), ACCESS_READ);
    return kept;
}

// From the gradient g of the residual stream after the half.
HalfGradient half_gradient(Lowering *lowering, const Half *half, OpRef g) {
    const OpRef added = added_gradient(lowering, half, g);
    HalfGradient gradient = {.between = added};
    if (norms_behind(lowering)) {
        gradient.between = op_whole(lowering, between_by_hidden(lowering, half->dsum));
        const NormBackward operands = {.dy = added,
                                       .x = op_whole(lowering, between_by_hidden(lowering, half->sum_between)),
                                       .residual = op_absent(),
                                       .dx = gradient.between};
        add_norm_backward(lowering, SECTION_LAYER_BACKWARD, &half->behind, &operands)->task.within =
            norms_in_front(lowering);
    }
    if (fp8_gathers_inputs(lowering)) {
        return gather_in_fp8(lowering, half, gradient.between);
    }
    const bool own = norms_behind(lowering) || gradients_apart(lowering) || lowering->target->halves_drop;
    gradient.full = tokens_by(lowering, own ? half->dsum_full : "dx_full", lowering->dims.hidden);
    mark_tp(lowering, SECTION_LAYER_BACKWARD, MARK_TP_LEAVE_BACKWARD, gradient.between,
            op_whole(lowering, gradient.full), half->leave_backward);
    return gradient;
}

void half_out_backward(Lowering *lowering, const Half *half, const HalfGradient *gradient, int32_t inner,
                       int32_t dinner) {
    const OpRef full = op_whole(lowering, gradient->full);
    add_input_gradient(lowering, SECTION_LAYER_BACKWARD, &half->out, full, dinner);
    add_weight_gradient(lowering, SECTION_LAYER_BACKWARD, &half->out, full, inner);
    half_bias_backward(lowering, half, gradient);
}

void half_bias_backward(Lowering *lowering, const Half *half, const HalfGradient *gradient) {
    if (half->out_bias) {
        add_column_sum(lowering, "bias gradient", gradient->between, half->out_bias, half->out_bias,
                       lowering->dims.tokens_between);
    }
}

// Through the projections to the half's input x; stream: x, the gradient that bypasses the half, and where the sum
// goes.
void half_begin_backward(Lowering *lowering, const Half *half, const Projection *projection,
                         const NormBackward *stream) {
    const int64_t hidden = lowering->dims.hidden;
    const int32_t din_full = tokens_by(lowering, half->din_full, hidden);
    between_by_hidden(lowering, half->din);
    const OpRef in = op_whole(lowering, tokens_by(lowering, half->in_full, hidden));
    projection_backward(lowering, projection, &(ProjectionInput){in, op_whole(lowering, din_full), true},
                        half->din_part);
    half_enter_backward(lowering, half, stream);
}

void half_enter_backward(Lowering *lowering, const Half *half, const NormBackward *stream) {
    const int64_t hidden = lowering->dims.hidden;
    const int32_t din_full = tokens_by(lowering, half->din_full, hidden);
    const OpRef din = op_whole(lowering, between_by_hidden(lowering, half->din));
    mark_tp(lowering, SECTION_LAYER_BACKWARD, MARK_TP_ENTER_BACKWARD, op_whole(lowering, din_full), din,
            half->enter_backward)
        ->task.unhidden = is_for_core_adapter(lowering, half);
    half_norm_backward(lowering, half, din, stream);
}

void half_norm_backward(Lowering *lowering, const Half *half, OpRef din, const NormBackward *stream) {
    if (!norms_in_front(lowering)) {
        add_sum(lowering, SECTION_LAYER_BACKWARD, stream->residual, din, stream->dx,
                lowering->dims.tokens_between * lowering->dims.hidden);
        return;
    }
    NormBackward operands = *stream;
    operands.dy = din;
    add_norm_backward(lowering, SECTION_LAYER_BACKWARD, &half->norm, &operands);
}
