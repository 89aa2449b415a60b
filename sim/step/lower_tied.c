// The gradient of one table that two stages have a copy of: both get the sum, and take the same step from it. The norm
// counts it once.

#include "sim/step/lower_ops.h"
#include "sim/step/stages.h"
#include "sim/step/tied.h"

bool unit_is_tied(const Lowering *lowering, int unit) {
    return unit == stage_tied_unit(lowering->held, lowering->target, lowering->plan);
}

bool unit_reduces_each(const Lowering *lowering, int unit) {
    return lowering->reduce_each && !unit_is_tied(lowering, unit);
}

static const char *tied_slice(const StageLayers *held) {
    return held->embedding ? "embed" : held->further_table ? "further_embed" : "lm_head";
}

// The head's copy counts: of the embedding's unit what precedes the table.
int64_t unit_counted_elements(const Lowering *lowering, int unit) {
    const bool other = unit_is_tied(lowering, unit) && lowering->held->embedding;
    return other ? unit_slice_offset(lowering, tied_slice(lowering->held)) : lowering->units[unit].trained_elements;
}

static void add_tied_message(Lowering *lowering, TaskKind kind, LaneId lane, const char *name, OpRef gradient) {
    Op *op = op_add(lowering, SECTION_UPDATE, kind, PHASE_OPTIMIZER, name);
    op->task.lane = (int16_t)lane;
    op->task.peer = (int16_t)lowering->held->tied_peer;
    op->task.dtype = lowering->tensors[gradient.tensor].dtype;
    op->task.payload_bytes = gradient.bytes;
    op_operand(op, gradient, kind == TASK_SEND ? ACCESS_READ : ACCESS_WRITE);
}

// An all-reduce of two: each sends its whole table's gradient and adds what it receives. The layouts of the two units
// differ, so their shards hold different parts of it: summed before they are reduced (_exec_reduce_tied_grads of
// runtime/pipe/engine.py). Megatron-LM reduces first and sums afterwards (finalize_model_grads.py): the same work.
void lower_tied_gradient(Lowering *lowering, int unit) {
    if (!unit_is_tied(lowering, unit) || lowering->choice->alone) {
        return;
    }
    const char *slice = tied_slice(lowering->held);
    const OpRef gradient = unit_slice(lowering, lowering->units[unit].gradient_full, slice, slice);
    const Dtype dtype = lowering->tensors[gradient.tensor].dtype;
    const int64_t elements = gradient.bytes / dtype_bytes(dtype);
    const int32_t received = lowering_tensor(lowering, "tied gradients", ROLE_COMMUNICATION, dtype, elements);
    lowering->tensors[received].slots = 1;
    add_tied_message(lowering, TASK_SEND, LANE_SEND, "send tied gradients", gradient);
    add_tied_message(lowering, TASK_RECEIVE, LANE_RECEIVE, "receive tied gradients", op_whole(lowering, received));
    Op *sum = op_add(lowering, SECTION_UPDATE, TASK_ACCUMULATE, PHASE_OPTIMIZER, "add tied gradients");
    sum->task.unit = (int16_t)unit;
    sum->task.dtype = dtype;
    op_size(sum, 1, elements);
    op_operand(sum, op_whole(lowering, received), ACCESS_READ);
    op_operand(sum, gradient, ACCESS_UPDATE);
}

int64_t step_tied_elements(const ModelSpec *model, const TrainPlan *plan, const Target *target, Dtype *dtype) {
    ModelSpec padded = *model;
    padded.vocab = target_vocab(target, model, plan->mesh.size[AXIS_TP]);
    const Dims dims = tensor_parallel_dims(&padded, plan, target);
    *dtype = dims.gradient_dtype;
    return dims.embed_vocab * dims.hidden;
}
