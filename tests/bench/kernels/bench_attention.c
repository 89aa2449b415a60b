// The GPU, cuDNN and input numbers for the attention benchmarks.

#include "tests/bench/kernels/bench_attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bench_attention_open(const char *name, struct cudaDeviceProp *device, Bench *bench) {
    if (!bench_gpu_find(name, device)) {
        return false;
    }
    cudaFree(NULL);  // creates the context that cuDNN needs
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

float bench_attention_float(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

CudaAttention bench_attention_call(const BenchAttentionShape *shape) {
    const int64_t local = shape->local, q = (int64_t)shape->heads * shape->head_dim;
    const int64_t kv = (int64_t)shape->kv_heads * shape->head_dim;
    return (CudaAttention){.block = {.queries = shape->length,
                                     .keys = shape->length,
                                     .heads = shape->heads,
                                     .kv_heads = shape->kv_heads,
                                     .head_dim = shape->head_dim,
                                     .q_stride = q,
                                     .kv_stride = kv,
                                     .o_stride = q,
                                     .lse_stride = local},
                           .sequences = shape->sequences,
                           .q_sequence = local * q,
                           .kv_sequence = local * kv,
                           .o_sequence = local * q,
                           .lse_sequence = local * shape->heads,
                           .input = KERNEL_BF16,
                           .output = shape->results,
                           .gradient = shape->results,
                           .dq_stride = q,
                           .dkv_stride = kv,
                           .dq_sequence = local * q,
                           .dkv_sequence = local * kv};
}

double bench_attention_distance(const void *at, KernelStore store, const float *want, int64_t count) {
    const size_t bytes = (size_t)(count * kernel_store_bytes(store));
    void *got = malloc(bytes);
    double off = INFINITY, largest = 0.0;
    if (got && want && cudaMemcpy(got, at, bytes, cudaMemcpyDeviceToHost) == cudaSuccess) {
        off = 0.0;
        for (int64_t i = 0; i < count; i++) {
            const float x = store == KERNEL_BF16 ? bench_attention_float(((uint16_t *)got)[i]) : ((float *)got)[i];
            const double one = fabs((double)x - (double)want[i]);
            off = isnan(off) || one <= off ? off : one;  // NaN is kept
            largest = fmax(largest, fabs((double)want[i]));
        }
    }
    free(got);
    return off / largest;
}
