// One benchmark problem: the shape of a transformer layer and the buffers all cases share; checks against double
// references.

#pragma once

#include "kernels/kernels.h"

typedef struct Bench {
    const char *name;
    int64_t tokens, hidden;
    int heads, kv_heads, head_dim;
    int64_t ffn, vocabulary;
    // Set by bench_open, all of `size` floats but the last three:
    int64_t size;
    float *a, *b, *c, *d, *e, *f;
    float *rows;    // 4 * tokens * heads
    float *logits;  // tokens * vocabulary
    int32_t *tokens_at;
} Bench;

KernelAttention bench_attention_shape(const Bench *bench);
KernelRope bench_rope_shape(const Bench *bench);

// Each runs its kernel once on the buffers' own numbers and returns the largest error of some sampled entries against
// double, relative to the largest sampled entry.
double check_gemm(Bench *bench);
double check_attention(Bench *bench);
double check_attention_backward(Bench *bench);
double check_rmsnorm(Bench *bench);
double check_rmsnorm_backward(Bench *bench);
double check_layernorm(Bench *bench);
double check_layernorm_backward(Bench *bench);
double check_rope(Bench *bench);
double check_swiglu(Bench *bench);
double check_swiglu_backward(Bench *bench);
double check_gelu(Bench *bench);
double check_gelu_backward(Bench *bench);
double check_loss(Bench *bench);
double check_adamw(Bench *bench);
double check_add(Bench *bench);
double check_square_sum(Bench *bench);
