// Benchmark cases of kernels/cuda: each runs on device buffers shared by all cases, and gives the CPU kernel's results
// for the first rows.

#pragma once

#include "kernels/cuda/kernels_cuda.h"

enum { BENCH_CUDA_VISITS = 2 };                // experts per token
enum { BENCH_CUDA_INTEGERS = KERNEL_STORES };  // used as an output's store: int32 in memory, expected as floats

typedef struct BenchCuda {
    int64_t tokens, hidden, ffn, vocabulary;  // vocabulary: entries of the table and columns of the logits
    int head_dim;
    KernelStore store;
    KernelCuda at;
    // Set by bench_cuda_open, in device memory:
    int64_t size;                          // elements in each of these
    void *a, *b, *c, *d, *e, *f, *logits;  // `store`, logits [tokens, vocabulary]
    float *g, *m, *v, *x;                  // fp32, size elements: optimizer state
    float *rows[4];                        // fp32 per token
    float *scalars;                        // fp32
    int32_t *entries, *positions;          // per token
    int32_t *places;                       // BENCH_CUDA_VISITS per token, each once
} BenchCuda;

// Outputs of a run, and the CPU's expected values.
typedef struct BenchCudaOutput {
    const void *at;
    KernelStore store;
    int64_t count;
    float *expected;
} BenchCudaOutput;
enum { BENCH_CUDA_OUTPUTS = 3, BENCH_CUDA_COPIES = 12 };

// For one check; copies are all host memory that it allocated.
typedef struct BenchCudaWant {
    BenchCudaOutput outputs[BENCH_CUDA_OUTPUTS];
    void *copies[BENCH_CUDA_COPIES];
    int count;
} BenchCudaWant;

typedef struct BenchCudaCase {
    const char *name;
    int (*run)(const BenchCuda *bench, int64_t rows);
    void (*want)(const BenchCuda *bench, int64_t rows, BenchCudaWant *want);
    int64_t (*bytes)(const BenchCuda *bench, int64_t rows);  // minimum traffic, each operand once per pass
} BenchCudaCase;

extern const BenchCudaCase bench_cuda_cases[];
extern const int bench_cuda_case_count;

// 0, or CUDA's error. bench_cuda_fill fills the buffers.
int bench_cuda_open(BenchCuda *bench);
void bench_cuda_close(BenchCuda *bench);
int bench_cuda_fill(const BenchCuda *bench);

// The largest error of the case on `rows` rows, relative to the largest expected number; infinity when CUDA refuses.
double bench_cuda_error(const BenchCuda *bench, const BenchCudaCase *checked, int64_t rows);
// The error that rounding may cause.
double bench_cuda_limit(KernelStore store);
