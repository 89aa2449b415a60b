// Finds the GPU, and measures time on it.

#include "tests/bench/kernels/bench_gpu.h"

#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 21 };

bool bench_gpu_find(const char *name, struct cudaDeviceProp *device) {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0 || cudaGetDeviceProperties(device, 0) != cudaSuccess) {
        fprintf(stderr, "%s: nothing is measured: no NVIDIA GPU here (%s)\n", name,
                error != cudaSuccess ? cudaGetErrorString(error) : "none found");
        return false;
    }
    return true;
}

static int by_size(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

float bench_gpu_middle_ms(int (*run)(const void *context), const void *context, cudaStream_t stream) {
    cudaEvent_t start, end;
    float ms[CALLS];
    bool right = cudaEventCreate(&start) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess;
    right = right && run(context) == 0;
    for (int i = 0; right && i < CALLS; i++) {
        right = cudaEventRecord(start, stream) == cudaSuccess && run(context) == 0 &&
                cudaEventRecord(end, stream) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess &&
                cudaEventElapsedTime(&ms[i], start, end) == cudaSuccess;
    }
    cudaEventDestroy(start), cudaEventDestroy(end);
    qsort(ms, CALLS, sizeof *ms, by_size);
    return right ? ms[CALLS / 2] : -1.0f;
}
