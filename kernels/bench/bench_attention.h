// What both benches of attention on a GPU need: the GPU, what its tiers can be had with, and numbers like activations.

#pragma once

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/cudnn_attention.h"

#define BENCH_ATTENTION_LIMIT 0.02  // error relative to the largest number: what bf16 makes of it

typedef struct Bench {
    AttentionMeans means;
    CudnnAttention *cudnn;  // NULL: it is not there
    char why[ATTENTION_WHY_BYTES];
} Bench;

// False without a GPU, which is said. The caller closes cudnn.
bool bench_attention_open(const char *name, struct cudaDeviceProp *device, Bench *bench);

// Sums of four uniform numbers in bf16: near normal, as activations are; a constant would draw less power.
void bench_attention_fill(uint16_t *numbers, int64_t count, uint64_t seed);

// The larger of the largest error so far and one more; NaN stays.
double bench_attention_worse(double off, double one);
