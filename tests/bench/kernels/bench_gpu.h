// What all GPU benchmarks need: the GPU, and the median of several times.

#pragma once

#include <cuda_runtime.h>
#include <stdbool.h>

// False, after saying so, without a GPU.
bool bench_gpu_find(const char *name, struct cudaDeviceProp *device);

// run enqueues work on the stream and returns 0. Median milliseconds of 21 calls, measured by events, after one call
// that loads code. Negative when CUDA fails.
float bench_gpu_middle_ms(int (*run)(const void *context), const void *context, cudaStream_t stream);
