// The ends of a micro-step: tokens and embedding, final norm, head and loss, and the embedding's gradient.

#include "sim/step/lower_ops.h"

static int32_t token_ids(Lowering *lowering, const char *name) {
    return lowering_tensor(lowering, name, ROLE_RUNTIME, DTYPE_INT32, lowering->dims.tokens);
}

static Op *add_embedding(Lowering *lowering, Section section, TaskKind kind, Phase phase, const char *name) {
    const Dims *d = &lowering->dims;
    Op *op = op_add(lowering, section, kind, phase, name);
    op->task.rows = d->tokens;
    op->task.cols = d->hidden;
    op->task.inner = d->vocab_split ? d->vocab : lowering->model->vocab;
    op->task.vocab_split = d->vocab_split;
    op->task.scaled = lowering->model->scaled_embeddings;
    op_operand(op, op_whole(lowering, token_ids(lowering, "tokens")), ACCESS_READ);
    return op;
}

static Op *add_positions(Lowering *lowering, Section section, TaskKind kind, Phase phase, const char *name) {
    const Dims *d = &lowering->dims;
    Op *op = op_add(lowering, section, kind, phase, name);
    op->task.rows = kind == TASK_POSITION ? d->tokens_between : d->tokens;
    op->task.cols = d->hidden;
    op->task.inner = lowering->model->max_seq;
    op->task.sequences = (int32_t)d->sequences;
    return op;
}

void lower_begin(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    Op *load = op_add(lowering, SECTION_BEGIN, TASK_LOAD_TOKENS, PHASE_FORWARD, "load tokens");
    load->task.rows = d->tokens;
    load->task.sequences = (int32_t)d->sequences;
    op_operand(load, op_whole(lowering, token_ids(lowering, "tokens")), ACCESS_WRITE);
    op_operand(load, op_whole(lowering, token_ids(lowering, "targets")), ACCESS_WRITE);

    mark_unit(lowering, SECTION_BEGIN, MARK_UNIT_NEED, UNIT_EMBEDDING);
    const int32_t partial = tokens_by(lowering, "embedded", d->hidden);
    const OpRef x = stream_at(lowering, residual_stream(lowering), 0);
    Op *embed = add_embedding(lowering, SECTION_BEGIN, TASK_EMBED, PHASE_FORWARD, "embed");
    op_operand(embed, unit_slice(lowering, lowering->weights[UNIT_EMBEDDING], "embed", "embed"), ACCESS_READ);
    op_operand(embed, d->vocab_split ? op_whole(lowering, partial) : x, ACCESS_WRITE);
    if (d->vocab_split) {
        mark_tp(lowering, SECTION_BEGIN, MARK_TP_LEAVE, op_whole(lowering, partial), x, "embedding sum");
    }
    if (lowering->model->position == POSITION_LEARNED) {
        Op *positions = add_positions(lowering, SECTION_BEGIN, TASK_POSITION, PHASE_FORWARD, "positions");
        op_operand(positions, x, ACCESS_UPDATE);
        op_operand(positions, unit_slice(lowering, lowering->weights[UNIT_EMBEDDING], "positions", "positions"),
                   ACCESS_READ);
    }
}

void lower_tail(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    const Section section = SECTION_TAIL;
    const int head_unit = lowering->model->tied_embeddings ? UNIT_EMBEDDING : lowering->head_unit;
    const char *head_slice = lowering->model->tied_embeddings ? "embed" : "lm_head";
    const Linear head = {.name = "head",
                         .first = head_slice,
                         .last = head_slice,
                         .backward_name = "head dgrad",
                         .weight_name = "head wgrad",
                         .unit = head_unit,
                         .in = d->hidden,
                         .out = d->vocab};
    const Norm norm = norm_of(lowering, lowering->head_unit, "final_norm", "final_norm_bias", "head_rstd");
    const int32_t h = between_by_hidden(lowering, "head_in");
    const int32_t h_full = tokens_by(lowering, "head_in_full", d->hidden);
    const int32_t logits = lowering_tensor(lowering, "logits", ROLE_LOGITS, d->dtype, d->tokens * d->vocab);
    const OpRef x_last = stream_at(lowering, residual_stream(lowering), lowering->model->layers);

    mark_unit(lowering, section, MARK_UNIT_NEED, UNIT_HEAD);
    add_norm(lowering, section, &norm, x_last, h);
    mark_tp(lowering, section, MARK_TP_ENTER, op_whole(lowering, h), op_whole(lowering, h_full), "head in");
    add_forward(lowering, section, &head, h_full, logits);
    Op *loss = op_mark(lowering, section, MARK_LOSS, "loss");
    op_operand(loss, op_whole(lowering, logits), ACCESS_UPDATE);

    const int32_t dh_full = tokens_by(lowering, "dhead_in_full", d->hidden);
    const OpRef dh = op_whole(lowering, between_by_hidden(lowering, "dhead_in"));
    mark_unit(lowering, section, MARK_UNIT_BACKWARD, UNIT_HEAD);
    add_input_gradient(lowering, section, &head, op_whole(lowering, logits), dh_full);
    add_weight_gradient(lowering, section, &head, op_whole(lowering, logits), h_full);
    mark_tp(lowering, section, MARK_TP_ENTER_BACKWARD, op_whole(lowering, dh_full), dh, "head input gradient");
    add_norm_backward(
        lowering, section, &norm,
        &(NormBackward){
            .dy = dh, .x = x_last, .residual = op_absent(), .dx = op_whole(lowering, gradient_stream(lowering))});
    mark_unit(lowering, section, MARK_UNIT_GRADIENT, UNIT_HEAD);
}

void lower_end(Lowering *lowering) {
    const int32_t gradients = lowering->gradients[UNIT_EMBEDDING];
    const OpRef g_full = op_whole(lowering, tokens_by(lowering, "dx_full", lowering->dims.hidden));
    mark_unit(lowering, SECTION_END, MARK_UNIT_BACKWARD, UNIT_EMBEDDING);
    if (!lowering->units[UNIT_EMBEDDING].trainable) {
        return;
    }
    mark_tp(lowering, SECTION_END, MARK_TP_LEAVE_BACKWARD, op_whole(lowering, gradient_stream(lowering)), g_full,
            "embedding gradient");
    if (lowering->model->position == POSITION_LEARNED) {
        Op *positions =
            add_positions(lowering, SECTION_END, TASK_POSITION_BACKWARD, PHASE_BACKWARD, "positions backward");
        op_operand(positions, g_full, ACCESS_READ);
        op_operand(positions, unit_slice(lowering, gradients, "positions", "positions"), ACCESS_WRITE);
    }
    Op *embed = add_embedding(lowering, SECTION_END, TASK_EMBED_BACKWARD, PHASE_BACKWARD, "embed backward");
    embed->task.accumulate = lowering->model->tied_embeddings;  // the head's gradient is there already
    op_operand(embed, g_full, ACCESS_READ);
    op_operand(embed, unit_slice(lowering, gradients, "embed", "embed"),
               embed->task.accumulate ? ACCESS_UPDATE : ACCESS_WRITE);
    mark_unit(lowering, SECTION_END, MARK_UNIT_GRADIENT, UNIT_EMBEDDING);
}
