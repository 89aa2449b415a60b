// Tokens on their way to the ranks of their experts and back: counts first, then rows by an all-to-all, put in order
// again where a rank has several experts (moe.md 3).

#include "sim/step/experts.h"

static Op *exchange(Lowering *lowering, Section section, const char *name, int64_t bytes, int32_t from, int32_t to) {
    const Phase phase = section == SECTION_LAYER_FORWARD ? PHASE_FORWARD : PHASE_BACKWARD;
    Op op = op_collective(lowering, TASK_ALL_TO_ALL, LANE_CP, lowering->ep_group, name, phase);
    op.task.dtype = lowering->tensors[from].dtype;
    op.task.payload_bytes = bytes;
    op_operand(&op, op_whole(lowering, from), ACCESS_READ);
    op_operand(&op, op_whole(lowering, to), ACCESS_WRITE);
    return op_list_append(lowering->arena, &lowering->lists[section], &op);
}

// How many tokens of each expert come: before any of them does. Sizes of the exchanges are the host's.
void exchange_counts(Lowering *lowering, const ExpertTensors *tensors) {
    Op *op = exchange(lowering, SECTION_LAYER_FORWARD, "count tokens", lowering->tensors[tensors->leave].bytes,
                      tensors->leave, tensors->come);
    op->task.awaited = true;
}

// To the ranks of the tokens' experts, or back.
static void exchange_tokens(Lowering *lowering, Section section, const char *name, const ExpertTensors *tensors,
                            bool back, int32_t from, int32_t to) {
    const int64_t row = lowering->dims.hidden * dtype_bytes(lowering->tensors[from].dtype);
    Op *op = exchange(lowering, section, name, received_rows(lowering) * row, from, to);
    told(lowering, op, tensors->leave);
    told(lowering, op, tensors->come);
    op->task.rows = rows_of_room(lowering);
    op->task.cols = lowering->dims.hidden;
    op->task.backward = back;
}

// Rows as they came from other ranks in the order of the experts here, or back.
static void reorder(Lowering *lowering, Section section, const char *name, const ExpertTensors *tensors, bool back,
                    int32_t from, int32_t to) {
    Op *op = add_routed(lowering, section, TASK_PERMUTE, name);
    op->task.rows = received_rows(lowering);
    op->task.inner = 1;
    op->task.groups = lowering_local_experts(lowering);
    op->task.backward = back;
    op_operand(op, op_whole(lowering, from), ACCESS_READ);
    op_operand(op, op_whole(lowering, tensors->come), ACCESS_READ);
    op_operand(op, op_whole(lowering, to), ACCESS_WRITE);
}

// Rows in the order of the experts of all ranks -> those of the experts here.
void dispatch(Lowering *lowering, Section section, const ExpertTensors *tensors, int32_t sent, int32_t to) {
    const bool sorts = lowering_local_experts(lowering) > 1;
    const int32_t came = sorts ? received_by(lowering, "experts_came", lowering->dims.hidden) : to;
    exchange_tokens(lowering, section, section == SECTION_LAYER_FORWARD ? "dispatch" : "combine backward", tensors,
                    false, sent, came);
    if (sorts) {
        reorder(lowering, section, "tokens by expert", tensors, false, came, to);
    }
}

void combine(Lowering *lowering, Section section, const ExpertTensors *tensors, int32_t from, int32_t to) {
    const bool sorts = lowering_local_experts(lowering) > 1;
    const int32_t sent = sorts ? received_by(lowering, "experts_leave", lowering->dims.hidden) : from;
    if (sorts) {
        reorder(lowering, section, "tokens by rank", tensors, true, from, sent);
    }
    exchange_tokens(lowering, section, section == SECTION_LAYER_FORWARD ? "combine" : "dispatch backward", tensors,
                    true, sent, to);
}
