// Launch shapes and workspace of our own attention, as numbers that can be checked on a machine without a GPU.

#include "kernels/cuda/attention_own.h"
#include "kernels/cuda/launch_plan.h"

enum { FORWARD_WARP_QUERIES = 32, BACKWARD_WARP_KEYS = 16, BF16_BYTES = 2, ALIGNMENT_BYTES = 256 };

// Backward: keys and values, two stages of queries and output gradients, score gradients, then the rows' lse and delta.
static int64_t backward_shared_bytes(int64_t head_dim) {
    const int64_t tiles =
        2 * OWN_BACK_KEYS * head_dim + 4 * OWN_BACK_QUERIES * head_dim + OWN_BACK_KEYS * OWN_BACK_QUERIES;
    return BF16_BYTES * tiles + OWN_BACK_ROW_BYTES;
}

LaunchShape attention_own_shape(const CudaAttention *call) {
    const KernelAttention *b = &call->block;
    if (call->backward) {
        return launch_line(launch_parts(b->keys, OWN_BACK_KEYS) * b->kv_heads * call->sequences,
                           OWN_BACK_KEYS / BACKWARD_WARP_KEYS * WARP_THREADS, backward_shared_bytes(b->head_dim));
    }
    return launch_grid(b->heads * call->sequences, launch_parts(b->queries, OWN_QUERIES),
                       OWN_QUERIES / FORWARD_WARP_QUERIES * WARP_THREADS,
                       BF16_BYTES * b->head_dim * (OWN_QUERIES + OWN_SLOTS * OWN_KEYS));
}

int64_t attention_own_turns_bytes(const CudaAttention *call) {
    const KernelAttention *b = &call->block;
    const int64_t turns = 1 + call->sequences * b->heads * launch_parts(b->queries, OWN_BACK_QUERIES);
    return call->backward && call->deterministic ? launch_parts(4 * turns, ALIGNMENT_BYTES) * ALIGNMENT_BYTES : 0;
}

int64_t attention_own_workspace_bytes(const CudaAttention *call) {
    const KernelAttention *b = &call->block;
    const bool narrow = call->backward && call->gradient == KERNEL_BF16;
    return attention_own_turns_bytes(call) + (narrow ? 4 * call->sequences * b->queries * b->heads * b->head_dim : 0);
}
