// Pass 1: the arithmetic of one rank, forward and backward, in local sizes. A Llama block is
//   x' = x + Wo attention(rope(Wqkv norm(x))),  x'' = x' + Wdown swiglu(Wgate norm(x'), Wup norm(x')).
// Marks say where tensor parallelism joins ranks and where a unit's weights and gradients begin and end. Backward is
// the chain rule in reverse; the gradient of the residual stream, dx, is one tensor updated in place.

#include "sim/step/lower_ops.h"

static void lower_begin(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    const int32_t tokens = lowering_tensor(lowering, "tokens", ROLE_RUNTIME, DTYPE_INT32, d->tokens);
    const int32_t targets = lowering_tensor(lowering, "targets", ROLE_RUNTIME, DTYPE_INT32, d->tokens);
    Op *load = op_add(lowering, SECTION_BEGIN, TASK_LOAD_TOKENS, PHASE_FORWARD, "load tokens");
    load->task.rows = d->tokens;
    load->task.sequences = (int32_t)d->sequences;
    op_operand(load, op_whole(lowering, tokens), ACCESS_WRITE);
    op_operand(load, op_whole(lowering, targets), ACCESS_WRITE);

    mark_unit(lowering, SECTION_BEGIN, MARK_UNIT_NEED, UNIT_EMBEDDING);
    const int32_t partial = tokens_by(lowering, "embedded", d->hidden);
    const int32_t x = residual_stream(lowering);
    Op *embed = op_add(lowering, SECTION_BEGIN, TASK_EMBED, PHASE_FORWARD, "embed");
    embed->task.rows = d->tokens;
    embed->task.cols = d->hidden;
    embed->task.inner = d->vocab_split ? d->vocab : lowering->model->vocab;
    embed->task.vocab_split = d->vocab_split;
    op_operand(embed, op_whole(lowering, tokens), ACCESS_READ);
    op_operand(embed, unit_slice(lowering, lowering->weights[UNIT_EMBEDDING], "embed", "embed"), ACCESS_READ);
    op_operand(embed, op_whole(lowering, d->vocab_split ? partial : x), ACCESS_WRITE);
    if (d->vocab_split) {
        mark_tp(lowering, SECTION_BEGIN, MARK_TP_LEAVE, op_whole(lowering, partial), op_whole(lowering, x),
                "embedding sum");
    }
}

static OpRef norm_weight(const Lowering *lowering, int unit, const char *slice) {
    return unit_slice(lowering, lowering->weights[unit], slice, slice);
}

static void lower_attention_forward(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    const Section section = SECTION_LAYER_FORWARD;
    const int32_t x = residual_stream(lowering);
    const int32_t h1 = between_by_hidden(lowering, "attention_in");
    const int32_t h1_full = tokens_by(lowering, "attention_in_full", d->hidden);
    add_norm(lowering, section, stream_at(lowering, x, 0), norm_weight(lowering, UNIT_LAYER, "attention_norm"), h1,
             row_statistics(lowering, "attention_rstd", d->tokens_between));
    mark_tp(lowering, section, MARK_TP_ENTER, op_whole(lowering, h1), op_whole(lowering, h1_full), "attention in");
    const Projection projection = attention_projection(lowering);
    projection_forward(lowering, &projection, h1_full);
    const AttentionRefs refs = attention_refs(lowering, projection.y, projection.count);
    add_rope(lowering, section, &refs, false);
    const int32_t o = tokens_by(lowering, "attention_out", d->q_width);
    add_attention(lowering, &refs, o, row_statistics(lowering, "lse", d->tokens * d->heads));
    const int32_t y = tokens_by(lowering, "attention_sum", d->hidden);
    const int32_t y_between = between_by_hidden(lowering, "attention_sum_between");
    add_forward(lowering, section,
                &(Linear){"attention out", "wo", "wo", NULL, NULL, UNIT_LAYER, d->q_width, d->hidden}, o, y);
    mark_tp(lowering, section, MARK_TP_LEAVE, op_whole(lowering, y), op_whole(lowering, y_between), "attention sum");
    const int32_t x_mid = between_by_hidden(lowering, "x_mid");
    add_sum(lowering, section, stream_at(lowering, x, 0), op_whole(lowering, y_between), op_whole(lowering, x_mid),
            d->tokens_between * d->hidden);
}

static void add_swiglu(Lowering *lowering, const Projection *projection, int32_t s, int32_t silu) {
    const Dims *d = &lowering->dims;
    Op *op = op_add(lowering, SECTION_LAYER_FORWARD, TASK_SWIGLU, PHASE_FORWARD, "swiglu");
    op->task.rows = d->tokens;
    op->task.cols = d->ffn;
    op->task.stride = projection->count == 1 ? 2 * d->ffn : d->ffn;
    op_operand(op, op_whole(lowering, projection->y[0]), ACCESS_READ);
    op_operand(
        op, projection->count == 1 ? column(lowering, projection->y[0], d->ffn) : op_whole(lowering, projection->y[1]),
        ACCESS_READ);
    op_operand(op, op_whole(lowering, s), ACCESS_WRITE);
    op_operand(op, silu < 0 ? op_absent() : op_whole(lowering, silu), ACCESS_WRITE);
}

// An eager framework keeps silu(gate) beside gate, up and their product.
static int32_t eager_silu(Lowering *lowering) {
    return lowering->target->fused_projections ? -1 : tokens_by(lowering, "silu", lowering->dims.ffn);
}

static void lower_mlp_forward(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    const Section section = SECTION_LAYER_FORWARD;
    const int32_t x_mid = between_by_hidden(lowering, "x_mid");
    const int32_t h2 = between_by_hidden(lowering, "mlp_in");
    const int32_t h2_full = tokens_by(lowering, "mlp_in_full", d->hidden);
    add_norm(lowering, section, op_whole(lowering, x_mid), norm_weight(lowering, UNIT_LAYER, "mlp_norm"), h2,
             row_statistics(lowering, "mlp_rstd", d->tokens_between));
    mark_tp(lowering, section, MARK_TP_ENTER, op_whole(lowering, h2), op_whole(lowering, h2_full), "mlp in");
    const Projection projection = mlp_projection(lowering);
    projection_forward(lowering, &projection, h2_full);
    const int32_t s = tokens_by(lowering, "swiglu_out", d->ffn);
    add_swiglu(lowering, &projection, s, eager_silu(lowering));
    const int32_t y = tokens_by(lowering, "mlp_sum", d->hidden);
    const int32_t y_between = between_by_hidden(lowering, "mlp_sum_between");
    add_forward(lowering, section, &(Linear){"mlp down", "wdown", "wdown", NULL, NULL, UNIT_LAYER, d->ffn, d->hidden},
                s, y);
    mark_tp(lowering, section, MARK_TP_LEAVE, op_whole(lowering, y), op_whole(lowering, y_between), "mlp sum");
    add_sum(lowering, section, op_whole(lowering, x_mid), op_whole(lowering, y_between),
            stream_at(lowering, residual_stream(lowering), 1), d->tokens_between * d->hidden);
}

static void lower_mlp_backward(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    const Section section = SECTION_LAYER_BACKWARD;
    const int32_t g = gradient_stream(lowering);
    const int32_t g_full = tokens_by(lowering, "dx_full", d->hidden);
    const int32_t s = tokens_by(lowering, "swiglu_out", d->ffn);
    const int32_t ds = tokens_by(lowering, "dswiglu", d->ffn);
    const Linear down = {"", "wdown", "wdown", "mlp down dgrad", "mlp down wgrad", UNIT_LAYER, d->ffn, d->hidden};
    mark_tp(lowering, section, MARK_TP_LEAVE_BACKWARD, op_whole(lowering, g), op_whole(lowering, g_full),
            "mlp gradient");
    add_input_gradient(lowering, section, &down, op_whole(lowering, g_full), ds);
    add_weight_gradient(lowering, section, &down, op_whole(lowering, g_full), s);

    const Projection projection = mlp_projection(lowering);
    const bool fused = projection.count == 1;
    const int32_t silu = eager_silu(lowering);
    Op *op = op_add(lowering, section, TASK_SWIGLU_BACKWARD, PHASE_BACKWARD, "swiglu backward");
    op->task.rows = d->tokens;
    op->task.cols = d->ffn;
    op->task.stride = fused ? 2 * d->ffn : d->ffn;
    op_operand(op, op_whole(lowering, ds), ACCESS_READ);
    op_operand(op, op_whole(lowering, projection.y[0]), ACCESS_READ);
    op_operand(op, fused ? column(lowering, projection.y[0], d->ffn) : op_whole(lowering, projection.y[1]),
               ACCESS_READ);
    op_operand(op, silu < 0 ? op_absent() : op_whole(lowering, silu), ACCESS_READ);
    op_operand(op, op_whole(lowering, projection.dy[0]), ACCESS_WRITE);
    op_operand(op, fused ? column(lowering, projection.dy[0], d->ffn) : op_whole(lowering, projection.dy[1]),
               ACCESS_WRITE);

    const int32_t dh_full = tokens_by(lowering, "dmlp_in_full", d->hidden);
    const int32_t dh = between_by_hidden(lowering, "dmlp_in");
    projection_backward(lowering, &projection, tokens_by(lowering, "mlp_in_full", d->hidden), dh_full, "dmlp_in_part");
    mark_tp(lowering, section, MARK_TP_ENTER_BACKWARD, op_whole(lowering, dh_full), op_whole(lowering, dh),
            "mlp input gradient");
    add_norm_backward(
        lowering, section,
        &(NormBackward){.dy = dh,
                        .rstd = row_statistics(lowering, "mlp_rstd", d->tokens_between),
                        .x = op_whole(lowering, between_by_hidden(lowering, "x_mid")),
                        .w = norm_weight(lowering, UNIT_LAYER, "mlp_norm"),
                        .residual = op_whole(lowering, g),
                        .dx = op_whole(lowering, g),
                        .dw = unit_slice(lowering, lowering->gradients[UNIT_LAYER], "mlp_norm", "mlp_norm")});
}

static void lower_attention_pass_backward(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    const Section section = SECTION_LAYER_BACKWARD;
    const int32_t g = gradient_stream(lowering);
    const int32_t g_full = tokens_by(lowering, "dx_full", d->hidden);
    const int32_t o = tokens_by(lowering, "attention_out", d->q_width);
    const int32_t d_o = tokens_by(lowering, "dattention_out", d->q_width);
    const Linear out = {"",         "wo",       "wo",     "attention out dgrad", "attention out wgrad",
                        UNIT_LAYER, d->q_width, d->hidden};
    mark_tp(lowering, section, MARK_TP_LEAVE_BACKWARD, op_whole(lowering, g), op_whole(lowering, g_full),
            "attention gradient");
    add_input_gradient(lowering, section, &out, op_whole(lowering, g_full), d_o);
    add_weight_gradient(lowering, section, &out, op_whole(lowering, g_full), o);

    const Projection projection = attention_projection(lowering);
    const AttentionRefs refs = attention_refs(lowering, projection.y, projection.count);
    const AttentionRefs gradients = attention_refs(lowering, projection.dy, projection.count);
    add_attention_backward(lowering, &refs, &gradients, o, row_statistics(lowering, "lse", d->tokens * d->heads), d_o);
    add_rope(lowering, section, &gradients, true);

    const int32_t dh_full = tokens_by(lowering, "dattention_in_full", d->hidden);
    const int32_t dh = between_by_hidden(lowering, "dattention_in");
    projection_backward(lowering, &projection, tokens_by(lowering, "attention_in_full", d->hidden), dh_full,
                        "dattention_in_part");
    mark_tp(lowering, section, MARK_TP_ENTER_BACKWARD, op_whole(lowering, dh_full), op_whole(lowering, dh),
            "attention input gradient");
    add_norm_backward(lowering, section,
                      &(NormBackward){.dy = dh,
                                      .rstd = row_statistics(lowering, "attention_rstd", d->tokens_between),
                                      .x = stream_at(lowering, residual_stream(lowering), 0),
                                      .w = norm_weight(lowering, UNIT_LAYER, "attention_norm"),
                                      .residual = op_whole(lowering, g),
                                      .dx = op_whole(lowering, g),
                                      .dw = unit_slice(lowering, lowering->gradients[UNIT_LAYER], "attention_norm",
                                                       "attention_norm")});
}

static void lower_tail(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    const Section section = SECTION_TAIL;
    const int head_unit = lowering->model->tied_embeddings ? UNIT_EMBEDDING : UNIT_HEAD;
    const char *head_slice = lowering->model->tied_embeddings ? "embed" : "lm_head";
    const Linear head = {"head", head_slice, head_slice, "head dgrad", "head wgrad", head_unit, d->hidden, d->vocab};
    const int32_t h = between_by_hidden(lowering, "head_in");
    const int32_t h_full = tokens_by(lowering, "head_in_full", d->hidden);
    const int32_t rstd = row_statistics(lowering, "head_rstd", d->tokens_between);
    const int32_t logits = lowering_tensor(lowering, "logits", ROLE_LOGITS, d->dtype, d->tokens * d->vocab);
    const OpRef x_last = stream_at(lowering, residual_stream(lowering), lowering->model->layers);

    mark_unit(lowering, section, MARK_UNIT_NEED, UNIT_HEAD);
    add_norm(lowering, section, x_last, norm_weight(lowering, UNIT_HEAD, "final_norm"), h, rstd);
    mark_tp(lowering, section, MARK_TP_ENTER, op_whole(lowering, h), op_whole(lowering, h_full), "head in");
    add_forward(lowering, section, &head, h_full, logits);
    Op *loss = op_mark(lowering, section, MARK_LOSS, "loss");
    op_operand(loss, op_whole(lowering, logits), ACCESS_UPDATE);

    const int32_t dh_full = tokens_by(lowering, "dhead_in_full", d->hidden);
    const int32_t dh = between_by_hidden(lowering, "dhead_in");
    mark_unit(lowering, section, MARK_UNIT_BACKWARD, UNIT_HEAD);
    add_input_gradient(lowering, section, &head, op_whole(lowering, logits), dh_full);
    add_weight_gradient(lowering, section, &head, op_whole(lowering, logits), h_full);
    mark_tp(lowering, section, MARK_TP_ENTER_BACKWARD, op_whole(lowering, dh_full), op_whole(lowering, dh),
            "head input gradient");
    add_norm_backward(
        lowering, section,
        &(NormBackward){.dy = dh,
                        .rstd = rstd,
                        .x = x_last,
                        .w = norm_weight(lowering, UNIT_HEAD, "final_norm"),
                        .residual = op_absent(),
                        .dx = op_whole(lowering, gradient_stream(lowering)),
                        .dw = unit_slice(lowering, lowering->gradients[UNIT_HEAD], "final_norm", "final_norm")});
    mark_unit(lowering, section, MARK_UNIT_GRADIENT, UNIT_HEAD);
}

static void lower_end(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    const int32_t g_full = tokens_by(lowering, "dx_full", d->hidden);
    mark_unit(lowering, SECTION_END, MARK_UNIT_BACKWARD, UNIT_EMBEDDING);
    mark_tp(lowering, SECTION_END, MARK_TP_LEAVE_BACKWARD, op_whole(lowering, gradient_stream(lowering)),
            op_whole(lowering, g_full), "embedding gradient");
    Op *embed = op_add(lowering, SECTION_END, TASK_EMBED_BACKWARD, PHASE_BACKWARD, "embed backward");
    embed->task.rows = d->tokens;
    embed->task.cols = d->hidden;
    embed->task.inner = d->vocab_split ? d->vocab : lowering->model->vocab;
    embed->task.vocab_split = d->vocab_split;
    embed->task.accumulate = lowering->model->tied_embeddings;  // the head's gradient is there already
    op_operand(embed, op_whole(lowering, lowering_tensor(lowering, "tokens", ROLE_RUNTIME, DTYPE_INT32, d->tokens)),
               ACCESS_READ);
    op_operand(embed, op_whole(lowering, g_full), ACCESS_READ);
    op_operand(embed, unit_slice(lowering, lowering->gradients[UNIT_EMBEDDING], "embed", "embed"),
               embed->task.accumulate ? ACCESS_UPDATE : ACCESS_WRITE);
    mark_unit(lowering, SECTION_END, MARK_UNIT_GRADIENT, UNIT_EMBEDDING);
}

void lower_layers(Lowering *lowering) {
    lower_begin(lowering);
    mark_unit(lowering, SECTION_LAYER_FORWARD, MARK_UNIT_NEED, UNIT_LAYER);
    lower_attention_forward(lowering);
    lower_mlp_forward(lowering);
    lower_tail(lowering);
    mark_unit(lowering, SECTION_LAYER_BACKWARD, MARK_UNIT_NEED, UNIT_LAYER);
    mark_unit(lowering, SECTION_LAYER_BACKWARD, MARK_UNIT_BACKWARD, UNIT_LAYER);
    lower_mlp_backward(lowering);
    lower_attention_pass_backward(lowering);
    mark_unit(lowering, SECTION_LAYER_BACKWARD, MARK_UNIT_GRADIENT, UNIT_LAYER);
    lower_end(lowering);
}
