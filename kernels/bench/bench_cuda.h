// Benchmark cases of kernels/cuda: each runs on device buffers that all cases share, and tells what the CPU's kernel
// makes of the first rows.

#pragma once

#include "kernels/cuda/kernels_cuda.h"

enum { BENCH_CUDA_VISITS = 2 };                // experts of a token
enum { BENCH_CUDA_INTEGERS = KERNEL_STORES };  // an output's store: int32 at the place, expected as floats

typedef struct BenchCuda {
    int64_t tokens, hidden, ffn, vocabulary;  // vocabulary: entries of the table and columns of the logits
    int head_dim;
    KernelStore store;
    KernelCuda at;
    // Set by bench_cuda_open, in device memory:
    int64_t size;                          // elements of each of these
    void *a, *b, *c, *d, *e, *f, *logits;  // `store`, logits [tokens, vocabulary]
    float *g, *m, *v, *x;                  // fp32, size elements: optimizer state
    float *rows[4];                        // fp32 per token
    float *scalars;                        // fp32
    int32_t *entries, *positions;          // per token
    int32_t *places;                       // BENCH_CUDA_VISITS per token, each once
} BenchCuda;

// What a run leaves behind, and what the CPU says it should be.
typedef struct BenchCudaOutput {
    const void *at;
    KernelStore store;
    int64_t count;
    float *expected;
} BenchCudaOutput;
enum { BENCH_CUDA_OUTPUTS = 3, BENCH_CUDA_COPIES = 12 };

// Of one check; copies are all memory of the host that it took.
typedef struct BenchCudaWant {
    BenchCudaOutput outputs[BENCH_CUDA_OUTPUTS];
    void *copies[BENCH_CUDA_COPIES];
    int count;
} BenchCudaWant;

typedef struct BenchCudaCase {
    const char *name;
    int (*run)(const BenchCuda *bench, int64_t rows);
    void (*want)(const BenchCuda *bench, int64_t rows, BenchCudaWant *want);
    int64_t (*bytes)(const BenchCuda *bench, int64_t rows);  // that must move, each operand once a pass
} BenchCudaCase;

extern const BenchCudaCase bench_cuda_cases[];
extern const int bench_cuda_case_count;

// 0, or what CUDA says. Buffers are filled by bench_cuda_fill.
int bench_cuda_open(BenchCuda *bench);
void bench_cuda_close(BenchCuda *bench);
int bench_cuda_fill(const BenchCuda *bench);

// The largest error of the case on `rows` rows, relative to the largest expected number; infinity when CUDA refuses.
double bench_cuda_error(const BenchCuda *bench, const BenchCudaCase *checked, int64_t rows);
// What rounding may make of it.
double bench_cuda_limit(KernelStore store);
