// Small kernels, correct and faulty, that show what the stand-in detects. Each launches on the stream; 0: launched.

#pragma once

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PROBE_THREADS = 256 };

// y[i] = x[PROBE_THREADS - 1 - i] of each block through shared memory, with or without the barrier between.
int probe_reverse(cudaStream_t stream, int blocks, bool barrier, const float *x, float *y);
// y[thread] = how often a sum over the warps' places in shared memory was not that of its round, with or without the
// barrier that keeps a fast warp from the next round's write.
int probe_rounds(cudaStream_t stream, bool barrier, float *y);
// y[i] = x[i] + 1 through an asynchronous copy, with or without waiting for it.
int probe_copy(cudaStream_t stream, bool wait, const float *x, float *y);
// Even lanes sum by shuffles, odd ones return: an error.
int probe_half_warp(cudaStream_t stream, float *y);
// A thread writes one float past the shared memory of its launch.
int probe_overrun(cudaStream_t stream);
// c[16][8] = a[16][16] b[16][8] by ldmatrix and mma; b row-major, through the transposed load.
int probe_matrix(cudaStream_t stream, const uint16_t *a, const uint16_t *b, float *c);
// y = sum of all 32 * blocks numbers, block after block in order: each waits for the one before.
int probe_chain(cudaStream_t stream, int blocks, const float *x, uint32_t *turn, float *y);
// y[i] = f * x[i] + y[i]
int probe_scale_add(cudaStream_t stream, int64_t count, float f, const float *x, float *y);

#ifdef __cplusplus
}
#endif
