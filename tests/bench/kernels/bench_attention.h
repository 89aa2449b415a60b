// What both GPU attention benchmarks need: the GPU, what its tiers can use, and activation-like numbers.

#pragma once

#include <stdint.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/cudnn_attention.h"
#include "tests/bench/kernels/bench_gpu.h"

#define BENCH_ATTENTION_LIMIT 0.02  // error relative to the largest number: bf16 rounding

typedef struct Bench {
    AttentionMeans means;
    CudnnAttention *cudnn;  // NULL: not available
    char why[ATTENTION_WHY_BYTES];
} Bench;

// False, after saying so, without a GPU. The caller closes cudnn.
bool bench_attention_open(const char *name, struct cudaDeviceProp *device, Bench *bench);

// Sums of four uniform numbers in bf16: near normal, as activations are; a constant would draw less power.
void bench_attention_fill(uint16_t *numbers, int64_t count, uint64_t seed);

float bench_attention_float(uint16_t half);

// One block with these numbers of queries and keys; a head's log-sum-exps occupy `local` places.
typedef struct BenchAttentionShape {
    int64_t length, local, sequences;
    int heads, kv_heads, head_dim;
    KernelStore results;  // o and gradients
} BenchAttentionShape;
CudaAttention bench_attention_call(const BenchAttentionShape *shape);

// Largest error of device numbers, relative to the largest number; infinity where they cannot be read.
double bench_attention_distance(const void *at, KernelStore store, const float *want, int64_t count);
