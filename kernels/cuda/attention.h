// Attention on a GPU: what kernel_attention and kernel_attention_backward (kernels/kernels.h) compute, for several
// sequences in one call and in bf16 or fp32. Three tiers do it: a scalar kernel for any shape, our own tensor-core
// kernel (sm_80 and newer), and cuDNN where its library can be opened. Which one is decided once, at plan time.

#pragma once

#include "kernels/cuda/kernels_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    ATTENTION_TIER_AUTO,
    ATTENTION_TIER_SCALAR,
    ATTENTION_TIER_OWN,
    ATTENTION_TIER_CUDNN,
    ATTENTION_TIERS
} AttentionTier;

// One attention call. Sequence s begins at s times the *_sequence elements of each buffer; strides of rows are in
// `block`, whose o_stride is d_o's too. All are elements.
typedef struct CudaAttention {
    KernelAttention block;  // of one sequence
    int64_t sequences;
    int64_t q_sequence, kv_sequence, o_sequence, lse_sequence;
    KernelStore input;   // q, k, v and d_o
    KernelStore output;  // o
    bool merge;          // forward: o and lse hold another block's result; o is fp32 then
    bool backward;
    bool deterministic;             // equal inputs give equal bits; the forward pass does so always
    KernelStore gradient;           // fp32: dq, dk, dv are added to; bf16: they are written
    int64_t dq_stride, dkv_stride;  // backward
    int64_t dq_sequence, dkv_sequence;
    int64_t v_sequence, dv_stride, dv_sequence;  // of values that lie apart from keys (block.values.dim > 0)
} CudaAttention;

// Elements of a value, and of a head of o.
static inline int attention_value_dim(const KernelAttention *block) {
    return block->values.dim > 0 ? block->values.dim : block->head_dim;
}

typedef struct AttentionData {
    const void *q, *k, *v;
    void *o;             // read only in the backward pass (the final one)
    float *lse;          // likewise
    const void *d_o;     // backward from here on
    const float *delta;  // rowsum(do * o), as lse lies: cuda_attention_delta
    void *dq, *dk, *dv;
    void *workspace;
} AttentionData;

// What a tier needs to know of the machine.
typedef struct AttentionMeans {
    int arch;              // 80 for sm_80, 90 for sm_90
    int64_t shared_bytes;  // of one block, at most (opt-in)
    bool cudnn;            // the library was opened
} AttentionMeans;

// Whether a tier can serve the call: NULL, or why not in a few words.
const char *attention_refusal(AttentionTier tier, const CudaAttention *call, const AttentionMeans *means);
// The tier that serves the call: the one asked for, or with ATTENTION_TIER_AUTO the fastest that can. AUTO comes back
// when none can: attention_refusal of the tier asked for (of scalar for AUTO) says why.
AttentionTier attention_tier(AttentionTier asked, const CudaAttention *call, const AttentionMeans *means);
const char *attention_tier_name(AttentionTier tier);

struct CudnnAttention;

enum { ATTENTION_WHY_BYTES = 1024 };

// What is decided before the first step.
typedef struct AttentionPlan {
    CudaAttention call;
    AttentionTier tier;
    int cudnn_plan;
    int64_t workspace_bytes;
} AttentionPlan;

// Decides. cudnn: cudnn_attention_open's, or NULL; a call that cuDNN then has no plan for goes to the next tier under
// ATTENTION_TIER_AUTO. False with a sentence in why when no tier serves the call.
bool cuda_attention_plan(AttentionTier asked, const CudaAttention *call, const AttentionMeans *means,
                         struct CudnnAttention *cudnn, AttentionPlan *plan, char why[ATTENTION_WHY_BYTES]);
// Puts the work into the stream. 0, or a cudaError_t (cuDNN tier: or a cudnnStatus_t, cudnn_attention_error has words).
int cuda_attention(const AttentionPlan *plan, struct CudnnAttention *cudnn, const AttentionData *data,
                   struct CUstream_st *stream);
// delta = rowsum(do * o), laid out as lse: needed by the backward pass of every tier but cuDNN.
int cuda_attention_delta(const CudaAttention *call, const void *o, const void *d_o, float *delta,
                         struct CUstream_st *stream);

// One more score for each head, that no key has, behind all blocks of a whole sequence's o and lse; and its gradient,
// from that delta: added to dsinks, or written. sinks and dsinks are of the formats named.
int cuda_attention_sinks(const CudaAttention *call, KernelStore store, const void *sinks, void *o, float *lse,
                         struct CUstream_st *stream);
typedef struct AttentionSinksBack {
    KernelStore sinks_store, dsinks_store;
    const void *sinks;
    const float *lse, *delta;
    void *dsinks;
    bool accumulate;
} AttentionSinksBack;
int cuda_attention_sinks_backward(const CudaAttention *call, const AttentionSinksBack *back,
                                  struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
