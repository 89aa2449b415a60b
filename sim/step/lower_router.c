// Router parts other than its product and its choice, in programs that are executed: the correction of its scores,
// which no gradient changes, and the load-balancing loss. That loss is per sequence and per layer (DeepSeek-V3, section
// 2.1.2; Megatron-LM's seq_aux_loss): independent of how ranks and micro-steps share the batch, unlike the loss of a
// rank's micro-batch (transformers' load_balancing_loss_func). Ranks that split a sequence sum how often its tokens
// visit each expert. Not in the programs of other targets.

#include "sim/step/experts.h"

static const char CORRECTION[] = "router_correction";

bool lowering_corrects(const Lowering *lowering) {
    return lowering->model->experts.sigmoid.groups > 0 && lowering->target->own_kernels;
}

static bool balances(const Lowering *lowering) {
    return lowering->model->experts.balance > 0 && lowering->target->own_kernels;
}

static OpRef correction_in(const Lowering *lowering, const int32_t tensors[UNIT_COUNT]) {
    return lowering_corrects(lowering) ? unit_slice(lowering, tensors[UNIT_LAYER], CORRECTION, CORRECTION)
                                       : op_absent();
}

// Counts for each sequence and expert.
static OpRef visits(Lowering *lowering) {
    const int64_t count = lowering->dims.sequences * lowering->model->experts.count;
    return balances(lowering)
               ? op_whole(lowering, lowering_tensor(lowering, "expert_visits", ROLE_ACTIVATION, DTYPE_FP32, count))
               : op_absent();
}

static bool has_more(const Lowering *lowering) {
    return lowering_corrects(lowering) || balances(lowering);
}

void told_router(Lowering *lowering, Op *op) {
    if (has_more(lowering)) {
        op_operand(op, correction_in(lowering, lowering->weights), ACCESS_READ);
        op_operand(op, visits(lowering), ACCESS_WRITE);
    }
    if (balances(lowering) && lowering_group_size(lowering, lowering->sequence_group) > 1) {
        Op sum =
            op_collective(lowering, TASK_ALL_REDUCE, LANE_CP, lowering->sequence_group, "sum visits", PHASE_FORWARD);
        sum.task.dtype = DTYPE_FP32;
        op_operand(&sum, visits(lowering), ACCESS_UPDATE);
        sum.task.payload_bytes = sum.operands[AT_COLLECTIVE_FROM].bytes;
        op_list_append(lowering->arena, &lowering->lists[SECTION_LAYER_FORWARD], &sum);
    }
}

// The correction's gradient is zero.
void told_router_backward(Lowering *lowering, Op *op) {
    if (has_more(lowering)) {
        op_operand(op, correction_in(lowering, lowering->gradients), ACCESS_WRITE);
        op_operand(op, visits(lowering), ACCESS_READ);
    }
}
