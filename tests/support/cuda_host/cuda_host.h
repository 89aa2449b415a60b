// A stand-in for the CUDA runtime, for tests only: kernels/cuda/*.cu run on the CPU, one fiber per GPU thread, and
// streams are queues that run when something waits for them. Every choice that a GPU leaves open (which thread, block
// or stream goes next) is drawn from one seed, so that a missing barrier or event shows as wrong data and can be
// repeated. Not covered: races inside one fiber's stretch between two waits.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Seed of everything that follows on any thread; 1 until called.
void cuda_host_seed(uint64_t seed);

// From now on device memory behaves as a GPU's: the machine faults where the program accesses it directly, or past its
// end. It is accessible only inside calls that let streams run.
void cuda_host_guard(void);

// From now on the GPU reports this many multiprocessors, and caches to match; by default an H200's.
void cuda_host_processors(int count);

// Switches warpgroup products, as on sm_90a, on or off from now on.
void cuda_host_groups(bool there);

// Blocks that have run since the start: that a test ran something at all.
uint64_t cuda_host_blocks(void);

// 16-byte accesses that kernels have made since the start through that primitive (words.cuh).
typedef struct CudaHostWords {
    uint64_t loads, stores;
} CudaHostWords;
CudaHostWords cuda_host_words(void);

#ifdef __cplusplus
}
#endif
