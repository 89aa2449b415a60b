#include "tests/unit/kernels/cuda/held.h"

#include <criterion/criterion.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/bf16.h"
#include "tests/support/cuda_host/cuda_host.h"
#include "tests/support/seed.h"
#include "tests/support/splitmix.h"
#include "tests/unit/kernels/check.h"

int64_t draw_below(Draw *draw, int64_t limit) {
    return (int64_t)(splitmix_next(&draw->state) % (uint64_t)limit);
}

int64_t draw_one(Draw *draw, const int64_t *choices, int count) {
    return choices[draw_below(draw, count)];
}

int64_t draw_rows(Draw *draw) {
    static const int64_t choices[] = {1, 2, 3, 7, 16, 33, 70};
    return draw_one(draw, choices, sizeof choices / sizeof *choices);
}

int64_t draw_cols(Draw *draw) {
    static const int64_t choices[] = {1, 3, 8, 24, 64, 72, 100, 131, 264, 520, 1000, 2056};
    return draw_one(draw, choices, sizeof choices / sizeof *choices);
}

void each_case(int cases, void (*check)(Draw *draw, KernelStore store)) {
    const uint64_t first = seed_of_run("cases", 1);
    for (int i = 0; i < cases; i++) {
        for (int store = 0; store < KERNEL_STORES; store++) {
            Draw draw = {first + (uint64_t)i, 2 * (first + (uint64_t)i) + (uint64_t)store};
            check(&draw, (KernelStore)store);
        }
    }
}

static Held held_new(Draw *draw, KernelStore store, int64_t count) {
    const int64_t bytes = kernel_store_bytes(store), skipped = draw_below(draw, 4) == 0 ? 1 + draw_below(draw, 7) : 0;
    Held held = {store, count, NULL, NULL};
    cr_assert_eq(cudaMalloc(&held.allocation, (size_t)((skipped + (count > 0 ? count : 1)) * bytes)), cudaSuccess);
    held.at = (char *)held.allocation + skipped * bytes;
    return held;
}

Held held_of(Draw *draw, KernelStore store, const float *x, int64_t count) {
    const Held held = held_new(draw, store, count);
    for (int64_t i = 0; i < count; i++) {
        if (store == KERNEL_BF16) {
            ((uint16_t *)held.at)[i] = bf16_of(x[i]);
        } else {
            ((float *)held.at)[i] = x[i];
        }
    }
    return held;
}

Held held_draw(Draw *draw, KernelStore store, int64_t count) {
    float *x = check_floats(count, (uint64_t)draw_below(draw, INT32_MAX));
    const Held held = held_of(draw, store, x, count);
    free(x);
    return held;
}

Held held_copy(const Held *held) {
    Held copy = *held;
    const size_t bytes = (size_t)(held->count * kernel_store_bytes(held->store));
    const ptrdiff_t skipped = (char *)held->at - (char *)held->allocation;
    cr_assert_eq(cudaMalloc(&copy.allocation, bytes + (size_t)skipped + (bytes == 0)), cudaSuccess);
    copy.at = (char *)copy.allocation + skipped;
    memcpy(copy.at, held->at, bytes);
    return copy;
}

float *held_floats(const Held *held) {
    float *x = check_zeros(held->count);
    for (int64_t i = 0; i < held->count; i++) {
        x[i] = held->store == KERNEL_BF16 ? bf16_value(((const uint16_t *)held->at)[i]) : ((const float *)held->at)[i];
    }
    return x;
}

void held_free(Held *held) {
    cudaFree(held->allocation);
}

bool held_equal(const Held *a, const Held *b) {
    return memcmp(a->at, b->at, (size_t)(a->count * kernel_store_bytes(a->store))) == 0;
}

void held_near(const Draw *draw, const Held *got, const float *want, double limit, const char *what) {
    float *x = held_floats(got);
    const double distance = check_distance_f(x, want, got->count);
    free(x);
    cr_assert_leq(distance, limit, "%s is off by %.3g (at most %.3g): seed %d, %s, %d elements", what, distance, limit,
                  (int)draw->seed, got->store == KERNEL_BF16 ? "bf16" : "fp32", (int)got->count);
}

double held_limit(KernelStore store) {
    return store == KERNEL_BF16 ? 0x1.04p-8 : 4e-6;  // half a unit in the last place of 8 bits, and earlier rounding
}

KernelCuda place_open(Draw *draw, int64_t workspace_bytes) {
    KernelCuda at = {.processors = 1 + (int)draw_below(draw, 3), .workspace_bytes = workspace_bytes};
    cuda_host_seed((uint64_t)draw_below(draw, INT32_MAX));
    cr_assert_eq(cudaStreamCreateWithFlags((cudaStream_t *)&at.stream, cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(cudaMalloc(&at.workspace, (size_t)workspace_bytes), cudaSuccess);
    return at;
}

void place_wait(const KernelCuda *at) {
    cr_assert_eq(cudaStreamSynchronize(at->stream), cudaSuccess);
}

void place_close(KernelCuda *at) {
    place_wait(at);
    cudaStreamDestroy(at->stream);
    cudaFree(at->workspace);
}
