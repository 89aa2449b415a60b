// Attention and the projections around it, in the two forms that targets use: one GEMM for several parameter slices,
// or one for each.

#include "sim/step/lower_ops.h"

Projection attention_projection(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    if (lowering->target->fused_projections) {
        const int64_t width = d->q_width + 2 * d->kv_width;
        return (Projection){.linear = {{"qkv", "wq", "wv", "qkv dgrad", "qkv wgrad", UNIT_LAYER, d->hidden, width}},
                            .y = {tokens_by(lowering, "qkv", width)},
                            .dy = {tokens_by(lowering, "dqkv", width)},
                            .count = 1};
    }
    return (Projection){.linear = {{"q", "wq", "wq", "q dgrad", "q wgrad", UNIT_LAYER, d->hidden, d->q_width},
                                   {"k", "wk", "wk", "k dgrad", "k wgrad", UNIT_LAYER, d->hidden, d->kv_width},
                                   {"v", "wv", "wv", "v dgrad", "v wgrad", UNIT_LAYER, d->hidden, d->kv_width}},
                        .y = {tokens_by(lowering, "q", d->q_width), tokens_by(lowering, "k", d->kv_width),
                              tokens_by(lowering, "v", d->kv_width)},
                        .dy = {tokens_by(lowering, "dq", d->q_width), tokens_by(lowering, "dk", d->kv_width),
                               tokens_by(lowering, "dv", d->kv_width)},
                        .count = 3};
}

Projection mlp_projection(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    if (lowering->target->fused_projections) {
        return (Projection){.linear = {{"gate up", "wgate", "wup", "gate up dgrad", "gate up wgrad", UNIT_LAYER,
                                        d->hidden, 2 * d->ffn}},
                            .y = {tokens_by(lowering, "gate_up", 2 * d->ffn)},
                            .dy = {tokens_by(lowering, "dgate_up", 2 * d->ffn)},
                            .count = 1};
    }
    return (Projection){
        .linear = {{"gate", "wgate", "wgate", "gate dgrad", "gate wgrad", UNIT_LAYER, d->hidden, d->ffn},
                   {"up", "wup", "wup", "up dgrad", "up wgrad", UNIT_LAYER, d->hidden, d->ffn}},
        .y = {tokens_by(lowering, "gate", d->ffn), tokens_by(lowering, "up", d->ffn)},
        .dy = {tokens_by(lowering, "dgate", d->ffn), tokens_by(lowering, "dup", d->ffn)},
        .count = 2};
}

void projection_forward(Lowering *lowering, const Projection *projection, int32_t x) {
    for (int i = 0; i < projection->count; i++) {
        add_forward(lowering, SECTION_LAYER_FORWARD, &projection->linear[i], x, projection->y[i]);
    }
}

// Input gradients of all parts, summed into dx; weight gradients beside them.
void projection_backward(Lowering *lowering, const Projection *projection, int32_t x, int32_t dx,
                         const char *part_name) {
    const Section section = SECTION_LAYER_BACKWARD;
    for (int i = 0; i < projection->count; i++) {
        const OpRef dy = op_whole(lowering, projection->dy[i]);
        const int32_t part = i == 0 ? dx : tokens_by(lowering, part_name, lowering->dims.hidden);
        const bool weight_first = !lowering->target->tp_reduce_overlaps;
        if (weight_first) {
            add_weight_gradient(lowering, section, &projection->linear[i], dy, x);
        }
        add_input_gradient(lowering, section, &projection->linear[i], dy, part);
        mark_tp(lowering, section, MARK_TP_PART_BACKWARD, op_whole(lowering, part), op_whole(lowering, part),
                projection->linear[i].name);
        if (!weight_first) {
            add_weight_gradient(lowering, section, &projection->linear[i], dy, x);
        }
        if (i > 0) {
            const OpRef sum = op_whole(lowering, dx);
            add_sum(lowering, section, sum, op_whole(lowering, part), sum,
                    lowering->dims.tokens * lowering->dims.hidden);
        }
    }
}

AttentionRefs attention_refs(const Lowering *lowering, const int32_t part[MAX_PARTS], int count) {
    const Dims *d = &lowering->dims;
    if (count == 1) {
        const int64_t width = d->q_width + 2 * d->kv_width;
        return (AttentionRefs){column(lowering, part[0], 0), column(lowering, part[0], d->q_width),
                               column(lowering, part[0], d->q_width + d->kv_width), width, width};
    }
    return (AttentionRefs){op_whole(lowering, part[0]), op_whole(lowering, part[1]), op_whole(lowering, part[2]),
                           d->q_width, d->kv_width};
}

void set_attention_shape(const Lowering *lowering, Task *task, const AttentionRefs *refs) {
    const Dims *d = &lowering->dims;
    task->rows = d->tokens;
    task->cols = d->local_seq;
    task->sequences = (int32_t)d->sequences;
    task->heads = d->heads;
    task->kv_heads = d->kv_heads;
    task->head_dim = d->head_dim;
    task->stride = refs->stride;
    task->kv_stride = refs->kv_stride;
}

void add_rope(Lowering *lowering, Section section, const AttentionRefs *refs, bool backward) {
    Op *op = op_add(lowering, section, TASK_ROPE, backward ? PHASE_BACKWARD : PHASE_FORWARD,
                    backward ? "rope backward" : "rope");
    set_attention_shape(lowering, &op->task, refs);
    op->task.backward = backward;
    op_operand(op, refs->q, ACCESS_UPDATE);
    op_operand(op, refs->k, ACCESS_UPDATE);
}

// Causal: half of the square of queries and keys is visible; two GEMMs forward, five backward (FlashAttention-2,
// section 3.1).
double attention_flops(const Lowering *lowering) {
    const Dims *d = &lowering->dims;
    return 4.0 * (double)d->sequences * d->heads * d->head_dim * (double)d->local_seq * (double)d->local_seq * 0.5;
}

// Attention as separate operations keeps the matrix of probabilities: 5 bytes per entry with dropout's mask (Korthikanti
// et al. 2022, section 4.1); Hugging Face's softmax keeps an fp32 and a bf16 copy, 6.
static OpRef eager_probabilities(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    if (lowering->plan->attention != ATTENTION_EAGER) {
        return op_absent();
    }
    const int64_t scores = d->sequences * d->heads * d->local_seq * d->local_seq;
    const int64_t bytes = (lowering->plan->fused == FUSED_EAGER ? 6 : 5) * scores;
    return op_whole(lowering, lowering_tensor(lowering, "attention_probabilities", ROLE_ACTIVATION, DTYPE_FP8, bytes));
}

void add_attention(Lowering *lowering, const AttentionRefs *refs, int32_t o, int32_t lse) {
    const OpRef probabilities = eager_probabilities(lowering);
    Op *op = op_add(lowering, SECTION_LAYER_FORWARD, TASK_ATTENTION, PHASE_FORWARD, "attention");
    set_attention_shape(lowering, &op->task, refs);
    op->task.flops = attention_flops(lowering);
    op_operand(op, refs->q, ACCESS_READ);
    op_operand(op, refs->k, ACCESS_READ);
    op_operand(op, refs->v, ACCESS_READ);
    op_operand(op, op_whole(lowering, o), ACCESS_WRITE);
    op_operand(op, op_whole(lowering, lse), ACCESS_WRITE);
    op_operand(op, probabilities, ACCESS_WRITE);
}

void add_attention_backward(Lowering *lowering, const AttentionRefs *refs, const AttentionRefs *gradients, int32_t o,
                            int32_t lse, int32_t d_o) {
    const Dims *d = &lowering->dims;
    const int32_t delta = lowering_tensor(lowering, "attention_delta", ROLE_RUNTIME, DTYPE_FP32, d->tokens * d->heads);
    const OpRef probabilities = eager_probabilities(lowering);
    Op *op = op_add(lowering, SECTION_LAYER_BACKWARD, TASK_ATTENTION_BACKWARD, PHASE_BACKWARD, "attention backward");
    set_attention_shape(lowering, &op->task, refs);
    op->task.flops = 2.5 * attention_flops(lowering);
    const OpRef reads[] = {
        refs->q, refs->k, refs->v, op_whole(lowering, o), op_whole(lowering, lse), op_whole(lowering, d_o)};
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        op_operand(op, reads[i], ACCESS_READ);
    }
    op_operand(op, gradients->q, ACCESS_WRITE);
    op_operand(op, gradients->k, ACCESS_WRITE);
    op_operand(op, gradients->v, ACCESS_WRITE);
    op_operand(op, op_whole(lowering, delta), ACCESS_WRITE);
    op_operand(op, probabilities, ACCESS_READ);
}
