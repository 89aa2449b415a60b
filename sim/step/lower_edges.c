// The ends of a micro-step: tokens and embedding, final norm, head and loss, and the embedding's gradient.

#include "sim/step/further.h"

static int32_t token_ids(Lowering *lowering, const char *name) {
    return lowering_tensor(lowering, name, ROLE_RUNTIME, DTYPE_INT32, lowering->dims.tokens);
}

Op *add_embedding(Lowering *lowering, Section section, TaskKind kind, Phase phase, const char *name) {
    const Dims *d = &lowering->dims;
    Op *op = op_add(lowering, section, kind, phase, name);
    op_size(op, d->tokens, d->hidden);
    op->task.inner = d->embed_vocab;
    op->task.vocab_split = d->embed_split;
    op->task.scaled = lowering->model->scaled_embeddings;
    op_operand(op, op_whole(lowering, token_ids(lowering, "tokens")), ACCESS_READ);
    return op;
}

static Op *add_positions(Lowering *lowering, Section section, TaskKind kind, Phase phase, const char *name) {
    const Dims *d = &lowering->dims;
    Op *op = op_add(lowering, section, kind, phase, name);
    op_size(op, kind == TASK_POSITION ? d->tokens_between : d->tokens, d->hidden);
    op->task.inner = lowering->model->max_seq;
    op->task.sequences = (int32_t)d->sequences;
    return op;
}

static void add_load(Lowering *lowering, Section section, const char *tokens) {
    const Dims *d = &lowering->dims;
    Op *load = op_add(lowering, section, TASK_LOAD_TOKENS, PHASE_FORWARD, "load tokens");
    load->task.rows = d->tokens;
    load->task.sequences = (int32_t)d->sequences;
    op_operand(load, op_whole(lowering, token_ids(lowering, tokens)), ACCESS_WRITE);
    op_operand(load, op_whole(lowering, token_ids(lowering, "targets")), ACCESS_WRITE);
}

void lower_begin(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    add_load(lowering, SECTION_BEGIN, "tokens");
    mark_unit(lowering, SECTION_BEGIN, MARK_UNIT_NEED, UNIT_EMBEDDING);
    const int32_t partial = tokens_by(lowering, "embedded", d->hidden);
    const OpRef x = stream_at(lowering, residual_stream(lowering), 0);
    Op *embed = add_embedding(lowering, SECTION_BEGIN, TASK_EMBED, PHASE_FORWARD, "embed");
    op_operand(embed, unit_slice(lowering, lowering->weights[UNIT_EMBEDDING], "embed", "embed"), ACCESS_READ);
    op_operand(embed, d->embed_split ? op_whole(lowering, partial) : x, ACCESS_WRITE);
    if (d->embed_split) {
        mark_tp(lowering, SECTION_BEGIN, MARK_TP_LEAVE, op_whole(lowering, partial), x, "embedding sum");
    }
    if (lowering->model->position == POSITION_LEARNED) {
        Op *positions = add_positions(lowering, SECTION_BEGIN, TASK_POSITION, PHASE_FORWARD, "positions");
        op_operand(positions, x, ACCESS_UPDATE);
        op_operand(positions, unit_slice(lowering, lowering->weights[UNIT_EMBEDDING], "positions", "positions"),
                   ACCESS_READ);
    }
}

// One of the equal parts that the tensor's rows are split into.
static OpRef part_of(const Lowering *lowering, int32_t tensor, int chunk) {
    OpRef part = op_whole(lowering, tensor);
    part.bytes /= lowering->loss_chunks;
    part.offset_bytes = chunk * part.bytes;
    return part;
}

static int32_t logits_of_part(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    return lowering_tensor(lowering, "logits", ROLE_LOGITS, d->dtype, d->tokens / lowering->loss_chunks * d->vocab);
}

// What a pipeline's buffers still hold: of this micro-step and of the one before, until others take their places.
static void hold_logits(Lowering *lowering) {
    const Dims *d = &lowering->dims;
    if (lowering->target->logits_held) {
        const int64_t held = lowering->plan->grad_accum > 1 ? 2 : 1;
        const int32_t logits =
            lowering_tensor(lowering, "held_logits", ROLE_LOGITS, d->dtype, held * d->tokens * d->vocab);
        lowering->tensors[logits].persistent = lowering->tensors[logits].untouched = true;
    }
}

// PyTorch's chunked losses accumulate the gradient of their input in fp32.
static int32_t collected_gradient(Lowering *lowering, int32_t dh) {
    const bool chunked = target_loss(lowering->target, lowering->plan) == LOSS_CHUNKED;
    const bool as_it_is = lowering->target->own_kernels || (chunked && lowering->target->loss_collects_half);
    return (chunked || lowering->target->loss_remakes_logits) && !as_it_is
               ? lowering_tensor(lowering, "dhead_in_fp32", ROLE_ACTIVATION, DTYPE_FP32,
                                 lowering->dims.tokens * lowering->dims.hidden)
               : dh;
}

static void add_cast(Lowering *lowering, int32_t from, int32_t to) {
    Op *op = op_copy(lowering, SECTION_TAIL, PHASE_BACKWARD, "head input gradient cast", 1,
                     lowering->dims.tokens * lowering->dims.hidden, op_whole(lowering, from), op_whole(lowering, to));
    op->task.dtype = DTYPE_FP32;
}

// Whether the head's unit is gathered again after its norm and after each chunk of the loss.
static bool hands_head_back(const Lowering *lowering) {
    return lowering->target->loss_regathers && !lowering->model->tied_embeddings &&
           target_loss(lowering->target, lowering->plan) == LOSS_CHUNKED;
}

// Not before the tensor `behind` exists: the task that produced it released the unit.
static void need_head_again(Lowering *lowering, int32_t behind, Phase phase) {
    if (hands_head_back(lowering)) {
        Op *mark = op_mark(lowering, SECTION_TAIL, MARK_UNIT_NEED, "head again");
        mark->task.unit = UNIT_HEAD;
        mark->task.phase = phase;
        op_operand(mark, op_whole(lowering, behind), ACCESS_READ);
    }
}

// Head, loss and the head's gradients for a chunk of the tokens. The rest of backward begins with the last chunk. A
// head whose logits are gathered is not chunked.
static void lower_head(Lowering *lowering, const Linear *head, int chunk, int32_t h, int32_t dh) {
    const Section section = SECTION_TAIL;
    const int64_t count = lowering->dims.tokens / lowering->loss_chunks;
    const bool gathers = head_gathers(lowering);
    const int32_t logits = logits_of_part(lowering), made = gathers ? head_part(lowering) : logits;
    const Rows forward = {part_of(lowering, h, chunk), op_whole(lowering, made), count, chunk == 0};
    const Rows backward = {part_of(lowering, dh, chunk), op_whole(lowering, made), count, chunk == 0};
    add_forward_rows(lowering, section, head, &forward);
    if (gathers) {
        head_gather(lowering, logits);
    }
    if (lowering->target->loss_remakes_logits) {  // in backward there; the loss makes gradients from these
        Linear again = *head;
        again.name = "head again";
        add_forward_rows(lowering, section, &again, &forward);
    }
    Op *loss = op_mark(lowering, section, MARK_LOSS, "loss");
    loss->task.rows = count;
    loss->task.accumulate = chunk > 0 || lowering->held->further > 0;
    op_operand(loss, op_whole(lowering, logits), ACCESS_UPDATE);
    op_operand(loss, part_of(lowering, token_ids(lowering, "targets"), chunk), ACCESS_READ);
    if (chunk == lowering->loss_chunks - 1 && !hands_head_back(lowering)) {
        mark_unit(lowering, section, MARK_UNIT_BACKWARD, UNIT_HEAD);
    }
    if (gathers) {
        head_slice_gradient(lowering, logits);
    }
    add_input_gradient_rows(lowering, section, head, &backward);
    if (gathers) {
        mark_tp(lowering, section, MARK_TP_PART_BACKWARD, op_whole(lowering, dh), op_whole(lowering, dh),
                "head input gradient");
    }
    add_weight_gradient_rows(lowering, section, head, &forward);
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
                         .out = d->head_vocab,
                         .of_loss = true};
    const Norm norm = norm_of(lowering, lowering->head_unit, "final_norm", "final_norm_bias", "head_rstd");
    const int32_t h = between_by_hidden(lowering, "head_in");
    const int32_t h_full = tokens_by(lowering, "head_in_full", d->hidden);
    logits_of_part(lowering);
    hold_logits(lowering);
    const OpRef x_last = stream_at(lowering, residual_stream(lowering), lowering->model->layers);

    if (lowering_has_stages(lowering)) {  // the first stage's tokens are not on this rank
        add_load(lowering, section, "tokens of the loss");
    }
    mark_unit(lowering, section, MARK_UNIT_NEED, UNIT_HEAD);
    add_norm(lowering, section, &norm, x_last, h);
    mark_tp(lowering, section, MARK_TP_ENTER, op_whole(lowering, h), op_whole(lowering, h_full), "head in");
    const int32_t dh_full = tokens_by(lowering, "dhead_in_full", d->hidden);
    const OpRef dh = op_whole(lowering, between_by_hidden(lowering, "dhead_in"));
    const int32_t collected = collected_gradient(lowering, dh_full);
    need_head_again(lowering, h_full, PHASE_FORWARD);
    lower_further(lowering, &head, x_last);
    for (int chunk = 0; chunk < lowering->loss_chunks; chunk++) {
        lower_head(lowering, &head, chunk, h_full, collected);
    }
    need_head_again(lowering, collected, PHASE_BACKWARD);
    if (hands_head_back(lowering)) {
        mark_unit(lowering, section, MARK_UNIT_BACKWARD, UNIT_HEAD);
    }
    if (collected != dh_full) {
        add_cast(lowering, collected, dh_full);
    }
    mark_tp(lowering, section, MARK_TP_ENTER_BACKWARD, op_whole(lowering, dh_full), dh, "head input gradient");
    const OpRef further = lower_further_backward(lowering, &head, x_last);
    add_norm_backward(
        lowering, section, &norm,
        &(NormBackward){
            .dy = dh, .x = x_last, .residual = further, .dx = gradient_at(lowering, lowering->model->layers)});
    mark_unit(lowering, section, MARK_UNIT_GRADIENT, UNIT_HEAD);
}

void lower_end(Lowering *lowering) {
    const int32_t gradients = lowering->gradients[UNIT_EMBEDDING];
    const OpRef g_full = op_whole(lowering, tokens_by(lowering, "dx_full", lowering->dims.hidden));
    mark_unit(lowering, SECTION_END, MARK_UNIT_BACKWARD, UNIT_EMBEDDING);
    if (!lowering->units[UNIT_EMBEDDING].trainable) {
        return;
    }
    mark_tp(lowering, SECTION_END, MARK_TP_LEAVE_BACKWARD, gradient_at(lowering, 0), g_full, "embedding gradient");
    if (lowering->model->position == POSITION_LEARNED) {
        Op *positions =
            add_positions(lowering, SECTION_END, TASK_POSITION_BACKWARD, PHASE_BACKWARD, "positions backward");
        op_operand(positions, g_full, ACCESS_READ);
        op_operand(positions, unit_slice(lowering, gradients, "positions", "positions"), ACCESS_WRITE);
    }
    Op *embed = add_embedding(lowering, SECTION_END, TASK_EMBED_BACKWARD, PHASE_BACKWARD, "embed backward");
    embed->task.accumulate =  // added to the head's gradient, or that of further tokens
        (lowering->model->tied_embeddings && lowering->held->head) || lowering->held->further > 0;
    op_operand(embed, g_full, ACCESS_READ);
    op_operand(embed, unit_slice(lowering, gradients, "embed", "embed"),
               embed->task.accumulate ? ACCESS_UPDATE : ACCESS_WRITE);
    mark_unit(lowering, SECTION_END, MARK_UNIT_GRADIENT, UNIT_EMBEDDING);
}
