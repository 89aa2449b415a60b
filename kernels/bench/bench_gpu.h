// What all benchmarks on a GPU need: the GPU, and the middle one of some times.

#pragma once

#include <cuda_runtime.h>
#include <stdbool.h>

// False without a GPU, which is said.
bool bench_gpu_find(const char *name, struct cudaDeviceProp *device);

// Of what puts its work into the stream and returns 0: milliseconds of the middle one of 21 calls, by events, after one
// that loads code. Negative when CUDA refuses.
float bench_gpu_middle_ms(int (*run)(const void *context), const void *context, cudaStream_t stream);
