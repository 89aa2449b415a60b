// One benchmark problem: the shape of a transformer layer and the buffers shared by all cases; checks against double
// references.

#pragma once

#include "kernels/kernels.h"

typedef struct Bench {
    const char *name;
    int64_t tokens, hidden;
    int heads, kv_heads, head_dim;
    int64_t ffn, vocabulary;
    // Set by bench_open, all with `size` floats except the last three:
    int64_t size;
    float *a, *b, *c, *d, *e, *f;
    float *rows;    // 4 * tokens * heads
    float *logits;  // tokens * vocabulary
    int32_t *tokens_at;
} Bench;

KernelAttention bench_attention_shape(const Bench *bench);
KernelRope bench_rope_shape(const Bench *bench);

typedef struct BenchError {
    double off, largest;
} BenchError;

// Each compares sampled entries of its kernel's output, or of what it makes the kernel compute from the buffers, with
// double references.
typedef void BenchCheck(Bench *bench, BenchError *error);
BenchCheck check_gemm, check_attention, check_attention_backward, check_rmsnorm, check_rmsnorm_backward,
    check_layernorm, check_layernorm_backward, check_rope, check_swiglu, check_swiglu_backward, check_gelu,
    check_gelu_backward, check_loss, check_adamw, check_add, check_square_sum;
