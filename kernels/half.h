// bf16 on processors: the upper half of an fp32, rounded to nearest, ties to even. Only products are computed in it;
// other kernels take fp32, so bf16 data in memory is widened for them and their results are narrowed.

#pragma once

#include <stdbool.h>
#include <stdint.h>

void kernel_widen(int64_t count, const uint16_t *x, float *y);
void kernel_narrow(int64_t count, const float *x, uint16_t *y);  // NaN stays NaN

// c[m,n] = factor op(a) op(b) (+ c when accumulate) as kernel_gemm: a and b bf16, sums in fp32, rounded once if c is
// bf16.
typedef struct KernelHalfGemm {
    bool trans_a, trans_b, accumulate, half_c;
    int64_t m, n, k;
    float factor;
} KernelHalfGemm;

// Products that are ready to run: every resource that one needs is allocated in advance.
typedef struct KernelHalves KernelHalves;

enum { KERNEL_HALF_WHY_BYTES = 256 };

// Room for `most` products, on the threads of kernel_set_threads. NULL, with the reason in why: this build, processor
// or library cannot run them.
KernelHalves *kernel_halves_open(int most, char why[KERNEL_HALF_WHY_BYTES]);
void kernel_halves_close(KernelHalves *halves);  // may be NULL
// The number of the product, the same for an equal shape; -1 with the reason in why otherwise.
int kernel_halves_prepare(KernelHalves *halves, const KernelHalfGemm *shape, char why[KERNEL_HALF_WHY_BYTES]);
// Call after the last product is prepared: allocates their scratch memory; false when there is not enough.
bool kernel_halves_ready(KernelHalves *halves);
// Not reentrant: one call at a time.
void kernel_halves_gemm(KernelHalves *halves, int product, const void *a, const void *b, void *c);
