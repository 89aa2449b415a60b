// What the benchmark cases are written with: numbers of the device on the host, and what is expected.

#pragma once

#include <stdlib.h>

#include "kernels/bench/bench_cuda.h"

// The first `count` numbers of a buffer of the bench's format, of floats, of integers. The caller frees.
float *host_of(const BenchCuda *bench, const void *at, int64_t count);
float *host_floats(const float *at, int64_t count);
int32_t *host_ints(const int32_t *at, int64_t count);
// x as the format keeps it.
void host_round(KernelStore store, int64_t count, float *x);

// An output with room for what is expected.
static inline void expect(BenchCudaOutput *output, const void *at, KernelStore store, int64_t count) {
    *output = (BenchCudaOutput){at, store, count, calloc((size_t)count, sizeof(float))};
}

// bench_cuda_experts.c
int64_t bench_route_workspace(int64_t rows);
#define BENCH_CUDA_EXPERT_CASE(name)                                                                                   \
    int run_##name(const BenchCuda *bench, int64_t rows);                                                              \
    void want_##name(const BenchCuda *bench, int64_t rows, BenchCudaOutput *out);                                      \
    int64_t bytes_##name(const BenchCuda *bench, int64_t rows)
BENCH_CUDA_EXPERT_CASE(route);
BENCH_CUDA_EXPERT_CASE(spread);
BENCH_CUDA_EXPERT_CASE(collect);
BENCH_CUDA_EXPERT_CASE(collect_backward);
