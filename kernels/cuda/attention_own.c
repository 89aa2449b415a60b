// Launch shapes and workspace of our own attention, as numbers that can be checked on a machine without a GPU.

#include "kernels/cuda/attention_own.h"

enum { WARP_THREADS = 32, FORWARD_WARP_QUERIES = 32, BACKWARD_WARP_KEYS = 16, BF16_BYTES = 2, ALIGNMENT_BYTES = 256 };

static int64_t parts(int64_t count, int64_t size) {
    return (count + size - 1) / size;
}

// Backward: keys and values, two stages of queries and output gradients, score gradients, then the rows' lse and delta.
static int64_t backward_shared_bytes(int64_t head_dim) {
    const int64_t tiles =
        2 * OWN_BACK_KEYS * head_dim + 4 * OWN_BACK_QUERIES * head_dim + OWN_BACK_KEYS * OWN_BACK_QUERIES;
    return BF16_BYTES * tiles + OWN_BACK_ROW_BYTES;
}

LaunchShape attention_own_shape(const CudaAttention *call) {
    const KernelAttention *b = &call->block;
    if (call->backward) {
        return (LaunchShape){
            .grid_x = (uint32_t)(parts(b->keys, OWN_BACK_KEYS) * b->kv_heads * call->sequences),
            .grid_y = 1,
            .grid_z = 1,
            .threads = OWN_BACK_KEYS / BACKWARD_WARP_KEYS * WARP_THREADS,
            .shared_bytes = (uint32_t)backward_shared_bytes(b->head_dim),
        };
    }
    return (LaunchShape){
        .grid_x = (uint32_t)(b->heads * call->sequences),
        .grid_y = (uint32_t)parts(b->queries, OWN_QUERIES),
        .grid_z = 1,
        .threads = OWN_QUERIES / FORWARD_WARP_QUERIES * WARP_THREADS,
        .shared_bytes = (uint32_t)(BF16_BYTES * b->head_dim * (OWN_QUERIES + OWN_SLOTS * OWN_KEYS)),
    };
}

int64_t attention_own_turns_bytes(const CudaAttention *call) {
    const KernelAttention *b = &call->block;
    const int64_t turns = 1 + call->sequences * b->heads * parts(b->queries, OWN_BACK_QUERIES);
    return call->backward && call->deterministic ? parts(4 * turns, ALIGNMENT_BYTES) * ALIGNMENT_BYTES : 0;
}

int64_t attention_own_workspace_bytes(const CudaAttention *call) {
    const KernelAttention *b = &call->block;
    const bool narrow = call->backward && call->gradient == KERNEL_BF16;
    return attention_own_turns_bytes(call) + (narrow ? 4 * call->sequences * b->queries * b->heads * b->head_dim : 0);
}
