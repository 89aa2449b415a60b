// Attention on a GPU: what kernel_attention and kernel_attention_backward (kernels/kernels.h) compute, for several
// sequences per call and in bf16 or fp32. There are three tiers: a scalar kernel for any shape, our own tensor-core
// kernel (sm_80 and newer), and cuDNN where its library can be opened. The tier is chosen once, at plan time.

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

// One attention call. Sequence s begins at s times the *_sequence elements of each buffer; row strides are in `block`,
// whose o_stride also applies to d_o. All are in elements.
typedef struct CudaAttention {
    KernelAttention block;  // of one sequence
    int64_t sequences;
    int64_t q_sequence, kv_sequence, o_sequence, lse_sequence;
    KernelStore input;   // q, k, v and d_o
    KernelStore output;  // o
    bool merge;          // forward: o and lse hold another block's result; o is then fp32
    bool backward;
    bool deterministic;             // equal inputs give equal bits; always true of the forward pass
    KernelStore gradient;           // fp32: dq, dk, dv are accumulated; bf16: they are overwritten
    int64_t dq_stride, dkv_stride;  // backward
    int64_t dq_sequence, dkv_sequence;
    int64_t v_sequence, dv_stride, dv_sequence;  // for values stored apart from keys (block.values.dim > 0)
} CudaAttention;

typedef struct AttentionData {
    const void *q, *k, *v;
    void *o;             // read only in the backward pass (the final one)
    float *lse;          // likewise
    const void *d_o;     // this and the following: backward only
    const float *delta;  // rowsum(do * o), laid out as lse: cuda_attention_delta
    void *dq, *dk, *dv;
    void *workspace;
} AttentionData;

// What the choice of a tier depends on besides the call.
typedef struct AttentionMeans {
    int arch;              // 80 for sm_80, 90 for sm_90
    int64_t shared_bytes;  // maximum per block (opt-in)
    bool cudnn;            // the library was opened
} AttentionMeans;

// Whether a tier can serve the call: NULL, or a short reason why not.
const char *attention_refusal(AttentionTier tier, const CudaAttention *call, const AttentionMeans *means);
// The tier that serves the call: the requested one, or with ATTENTION_TIER_AUTO the fastest that can. Returns AUTO when
// none can: attention_refusal of the requested tier (of scalar for AUTO) gives the reason.
AttentionTier attention_tier(AttentionTier asked, const CudaAttention *call, const AttentionMeans *means);
const char *attention_tier_name(AttentionTier tier);

struct CudnnAttention;

enum { ATTENTION_WHY_BYTES = 1024 };

// Everything that is decided before the first step.
typedef struct AttentionPlan {
    CudaAttention call;
    AttentionTier tier;
    int cudnn_plan;
    int64_t workspace_bytes;
} AttentionPlan;

// Makes the plan. cudnn: from cudnn_attention_open, or NULL; under ATTENTION_TIER_AUTO a call that cuDNN turns out to
// have no plan for goes to the next tier. False, with a sentence in why, when no tier serves the call.
bool cuda_attention_plan(AttentionTier asked, const CudaAttention *call, const AttentionMeans *means,
                         struct CudnnAttention *cudnn, AttentionPlan *plan, char why[ATTENTION_WHY_BYTES]);
// Enqueues the work on the stream. 0, or a cudaError_t (cuDNN tier: or a cudnnStatus_t; see cudnn_attention_error).
int cuda_attention(const AttentionPlan *plan, struct CudnnAttention *cudnn, const AttentionData *data,
                   struct CUstream_st *stream);
// delta = rowsum(do * o), laid out as lse: needed by the backward pass of every tier except cuDNN.
int cuda_attention_delta(const CudaAttention *call, const void *o, const void *d_o, float *delta,
                         struct CUstream_st *stream);

// Attention sinks: one more score per head that belongs to no key, applied after all blocks to a whole sequence's o and
// lse; and its gradient, from that delta: added to dsinks, or written. sinks and dsinks have the given formats.
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
