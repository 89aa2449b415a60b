// The launchers that cuda_attention calls: one per tier and direction, and the row passes around them. Each returns a
// cudaError_t as int, 0: launched. The caller has checked that the tier serves the call (attention_refusal).

#pragma once

#include "kernels/cuda/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

int attention_scalar_forward(const CudaAttention *call, const AttentionData *data, struct CUstream_st *stream);
int attention_scalar_backward(const CudaAttention *call, const AttentionData *data, struct CUstream_st *stream);
int attention_own_forward(const CudaAttention *call, const AttentionData *data, struct CUstream_st *stream);
int attention_own_backward(const CudaAttention *call, const AttentionData *data, struct CUstream_st *stream);

// Merges a packed block into (o, lse), or stores it there where the call does not merge: o_block
// [sequence][query][heads * head_dim] in bf16, lse_block [sequence][head][query].
int attention_merge(const CudaAttention *call, const void *o_block, const float *lse_block, float *o, float *lse,
                    struct CUstream_st *stream);

// Rows of several sequences; the other side of such a pass is packed.
typedef struct AttentionRows {
    int64_t sequences, rows, cols;
    int64_t stride, sequence;
} AttentionRows;
// to += from, which is packed and in bf16.
int attention_add_rows(const AttentionRows *rows, const void *from, float *to, struct CUstream_st *stream);
// to = from, rounded; from is packed.
int attention_narrow_rows(const AttentionRows *rows, const float *from, void *to, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
