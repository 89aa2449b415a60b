// One attention call with its buffers, for a GPU tier under the stand-in and for the CPU's kernels as its reference.

#pragma once

#include "kernels/cuda/attention.h"

// A block for tables of rows: `gap` unused elements after every token's row and after every head's log-sum-exps.
#define BLOCK(queries, keys, q_first, k_first, heads, kv_heads, dim, gap)                                              \
    {                                                                                                                  \
        queries, keys, q_first, k_first, heads, kv_heads, dim, (heads) * (dim) + (gap), (kv_heads) * (dim) + (gap),    \
            (heads) * (dim) + (gap), (queries) + (gap), 0, 0, 0, {0}, 0                                                \
    }

// Buffers of every sequence. Inputs are numbers that bf16 holds exactly; the wide ones are the same in fp32.
typedef struct CudaAttentionCase {
    CudaAttention call;
    int64_t q_size, kv_size, o_size, lse_size, dq_size, dkv_size;  // elements of all sequences
    float *q, *k, *v, *d_o;
    uint16_t *narrow_q, *narrow_k, *narrow_v, *narrow_d_o;
    float *o, *lse, *delta, *dq, *dk, *dv;  // the CPU's results
} CudaAttentionCase;

// Fills sequence strides: each sequence's rows follow the previous one's. Freed by cuda_attention_case_free.
CudaAttentionCase cuda_attention_case(KernelAttention block, int64_t sequences, uint64_t seed);
void cuda_attention_case_free(CudaAttentionCase *c);

// The CPU's forward pass of every sequence: into c->o and c->lse, which merge when the call says so.
void cuda_attention_case_forward(CudaAttentionCase *c);
// The CPU's delta from c->o, and its gradients, added to c->dq, c->dk, c->dv; c->o and c->lse are the final ones.
void cuda_attention_case_backward(CudaAttentionCase *c);

// A tier's results, widened to fp32. Both wait for completion.
typedef struct CudaAttentionAnswer {
    float *o, *lse, *dq, *dk, *dv;
} CudaAttentionAnswer;

// start: initial contents of o and lse (merge), NULL: garbage that must be overwritten.
CudaAttentionAnswer cuda_attention_forward_of(AttentionTier tier, const CudaAttentionCase *c,
                                              const CudaAttentionAnswer *start);
// Gradients start at zero, or at `start`. o and lse are c->o and c->lse.
CudaAttentionAnswer cuda_attention_backward_of(AttentionTier tier, const CudaAttentionCase *c);
CudaAttentionAnswer cuda_attention_backward_again(AttentionTier tier, const CudaAttentionCase *c,
                                                  const CudaAttentionAnswer *start);
void cuda_attention_answer_free(CudaAttentionAnswer *answer);
