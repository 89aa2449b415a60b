// A head that is split over the vocabulary while the loss works on whole rows, as in transformers since 5.10: every tp
// rank computes its columns of the logits, gathers all of them, and takes its columns of their gradient.

#include "sim/step/lower_ops.h"

bool head_gathers(const Lowering *lowering) {
    return lowering->dims.head_vocab < lowering->dims.vocab;
}

static int32_t logits_of(Lowering *lowering, const char *name, int64_t columns) {
    return lowering_tensor(lowering, name, ROLE_LOGITS, lowering->dims.dtype, lowering->dims.tokens * columns);
}

int32_t head_part(Lowering *lowering) {
    return logits_of(lowering, "logits_part", lowering->dims.head_vocab);
}

static Op *add_copy(Lowering *lowering, TaskKind kind, Phase phase, const char *name) {
    const Dims *d = &lowering->dims;
    Op *op = op_add(lowering, SECTION_TAIL, kind, phase, name);
    op_size(op, d->tokens, d->head_vocab);
    op->task.stride = d->vocab;
    return op;
}

// The parts arrive one after another; a row of the logits is one row from each.
void head_gather(Lowering *lowering, int32_t logits) {
    const Dims *d = &lowering->dims;
    const OpRef part = op_whole(lowering, head_part(lowering));
    const OpRef parts = op_whole(lowering, logits_of(lowering, "logits_parts", d->vocab));
    Op gather = op_collective(lowering, TASK_ALL_GATHER, LANE_TP, lowering->tp_group, "gather logits", PHASE_LOSS);
    gather.task.dtype = d->dtype;
    gather.task.payload_bytes = d->tokens * d->vocab * d->element;
    op_list_move(lowering, &lowering->lists[SECTION_TAIL], gather, part, parts, ACCESS_WRITE);

    Op *join = add_copy(lowering, TASK_UNPACK, PHASE_FORWARD, "join logits");
    join->task.inner = lowering->tp;
    op_operand(join, parts, ACCESS_READ);
    op_operand(join, op_whole(lowering, logits), ACCESS_WRITE);
}

void head_slice_gradient(Lowering *lowering, int32_t gradients) {
    const Dims *d = &lowering->dims;
    OpRef own = op_whole(lowering, gradients);
    own.rank_group = lowering->tp_group;
    own.rank_stride_bytes = d->head_vocab * d->element;
    own.bytes -= (lowering->tp - 1) * own.rank_stride_bytes;
    Op *slice = add_copy(lowering, TASK_COPY, PHASE_BACKWARD, "own logit gradient");
    op_operand(slice, own, ACCESS_READ);
    op_operand(slice, op_whole(lowering, head_part(lowering)), ACCESS_WRITE);
}
