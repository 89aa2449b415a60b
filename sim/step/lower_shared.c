// More ranks of tp than key-value heads: the product of queries, keys and values stays cut evenly, its results are
// gathered over tp, and a rank reads its queries and its one key-value head out of them. Backward, zeros around its
// gradients are summed with the other ranks' (Megatron-LM f7dfb99795: transformer/attention.py,
// get_query_key_value_tensors; tensor_parallel/mappings.py, _gather_along_last_dim, _reduce_scatter_along_last_dim).

#include "sim/step/lower_ops.h"

bool lowering_shares_keys(const Lowering *lowering) {
    const Dims *d = &lowering->dims;
    return lowering->fused_qkv && d->qkv_width < d->q_width + d->k_width + d->v_width;
}

static void add_over_tp(Lowering *lowering, Section section, TaskKind kind, const char *name, OpRef from, OpRef to) {
    Op op = op_collective(lowering, kind, LANE_TP, lowering->tp_group, name, layer_phase(section));
    op.task.unhidden = true;
    op.task.payload_bytes = kind == TASK_ALL_GATHER ? to.bytes : from.bytes;
    op_list_move(lowering, &lowering->lists[section], op, from, to, ACCESS_WRITE);
}

int32_t shared_keys_whole(Lowering *lowering) {
    return tokens_by(lowering, "qkv_whole", lowering->dims.qkv_width * lowering->tp);
}

// Ranks' columns come, and leave, one rank after the other: a copy puts them side by side.
int32_t lower_shared_keys(Lowering *lowering, int32_t qkv) {
    const Section section = SECTION_LAYER_FORWARD;
    const int64_t width = lowering->dims.qkv_width * lowering->tp;
    const OpRef apart = op_whole(lowering, tokens_by(lowering, "qkv_apart", width));
    const int32_t whole = shared_keys_whole(lowering);
    add_over_tp(lowering, section, TASK_ALL_GATHER, "gather qkv", op_whole(lowering, qkv), apart);
    op_copy(lowering, section, PHASE_FORWARD, "parts together", lowering->dims.tokens, width, apart,
            op_whole(lowering, whole));
    return whole;
}

int32_t shared_keys_gradient(Lowering *lowering) {
    return tokens_by(lowering, "dqkv_whole", lowering->dims.qkv_width * lowering->tp);
}

void lower_shared_keys_backward(Lowering *lowering, int32_t dqkv) {
    const Section section = SECTION_LAYER_BACKWARD;
    const int64_t width = lowering->dims.qkv_width * lowering->tp;
    const OpRef whole = op_whole(lowering, shared_keys_gradient(lowering));
    const OpRef padded = op_whole(lowering, tokens_by(lowering, "dqkv_padded", width));
    const OpRef apart = op_whole(lowering, tokens_by(lowering, "dqkv_apart", width));
    op_copy(lowering, section, PHASE_BACKWARD, "zeros around dqkv", lowering->dims.tokens, width, whole, padded);
    op_copy(lowering, section, PHASE_BACKWARD, "parts of ranks", lowering->dims.tokens, width, padded, apart);
    add_over_tp(lowering, section, TASK_REDUCE_SCATTER, "scatter dqkv", apart, op_whole(lowering, dqkv));
}
