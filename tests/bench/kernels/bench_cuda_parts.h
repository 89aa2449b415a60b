// Helpers for writing the benchmark cases: device numbers copied to the host, and expected values.

#pragma once

#include "tests/bench/kernels/bench_cuda.h"

// The first `count` numbers of a buffer in the bench's format, of floats, of integers: copies that the check frees.
float *host_of(BenchCudaWant *want, const BenchCuda *bench, const void *at, int64_t count);
float *host_floats(BenchCudaWant *want, const float *at, int64_t count);
int32_t *host_ints(BenchCudaWant *want, const int32_t *at, int64_t count);
// Zeros that the check frees.
void *host_room(BenchCudaWant *want, int64_t count, size_t element_bytes);
// Rounds x to the format.
void host_round(KernelStore store, int64_t count, float *x);

// An output and room for its expected values; `expect_from`: initialised with the current contents.
float *expect(BenchCudaWant *want, int output, const void *at, KernelStore store, int64_t count);
float *expect_from(BenchCudaWant *want, int output, const void *at, KernelStore store, int64_t count);

// Defined in bench_cuda_experts.c.
int64_t bench_route_workspace(int64_t rows);
#define BENCH_CUDA_EXPERT_CASE(name)                                                                                   \
    int run_##name(const BenchCuda *bench, int64_t rows);                                                              \
    void want_##name(const BenchCuda *bench, int64_t rows, BenchCudaWant *want);                                       \
    int64_t bytes_##name(const BenchCuda *bench, int64_t rows)
BENCH_CUDA_EXPERT_CASE(route);
BENCH_CUDA_EXPERT_CASE(spread);
BENCH_CUDA_EXPERT_CASE(collect);
BENCH_CUDA_EXPERT_CASE(collect_backward);
