// The GPU, cuDNN and numbers of the benches of attention.

#include "kernels/bench/bench_attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool bench_attention_open(const char *name, struct cudaDeviceProp *device, Bench *bench) {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0 || cudaGetDeviceProperties(device, 0) != cudaSuccess) {
        fprintf(stderr, "%s: nothing is measured: no NVIDIA GPU here (%s)\n", name,
                error != cudaSuccess ? cudaGetErrorString(error) : "none found");
        return false;
    }
    cudaFree(NULL);  // the context that cuDNN asks for
    *bench = (Bench){
        .means = {.arch = 10 * device->major + device->minor, .shared_bytes = (int64_t)device->sharedMemPerBlockOptin}};
    bench->cudnn = cudnn_attention_open(NULL, bench->why);
    bench->means.cudnn = bench->cudnn != NULL;
    return true;
}

static uint16_t bf16_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void bench_attention_fill(uint16_t *numbers, int64_t count, uint64_t seed) {
    uint64_t state = seed;
    for (int64_t i = 0; i < count; i++) {
        float sum = -2.0f;
        for (int j = 0; j < 4; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
            sum += (float)(state >> 40) / 16777216.0f;
        }
        numbers[i] = bf16_of(1.7f * sum);
    }
}

double bench_attention_worse(double off, double one) {
    return isnan(off) || one <= off ? off : one;
}
