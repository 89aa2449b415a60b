// Tile sizes of our own tensor-core attention, and what follows from them for a launch.

#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/launch_shape.h"

enum {
    OWN_QUERIES = 128,  // per forward block
    OWN_KEYS = 64,      // per forward step
    OWN_SLOTS = 3,      // key or value tiles in shared memory: with 3, two blocks of head_dim 128 fit an SM of sm_80
    OWN_BACK_KEYS = 128,
    OWN_BACK_QUERIES = 64,
    OWN_BACK_ROW_BYTES = 4 * (2 * 2 * OWN_BACK_QUERIES + 32)  // lse and delta of two stages, the ticket
};

#ifdef __cplusplus
extern "C" {
#endif

LaunchShape attention_own_shape(const CudaAttention *call);
// What this tier needs of cuda_attention's workspace: a counter and turns in deterministic mode, then dq in fp32 when
// the gradient is bf16 (rows [sequence][query] of heads * head_dim).
int64_t attention_own_turns_bytes(const CudaAttention *call);
int64_t attention_own_workspace_bytes(const CudaAttention *call);

#ifdef __cplusplus
}
#endif
