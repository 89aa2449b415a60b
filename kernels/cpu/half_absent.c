// Used in builds without oneDNN's header: there are no products in bf16.

#include <stdio.h>

#include "kernels/half.h"

KernelHalves *kernel_halves_open(int most, char why[KERNEL_HALF_WHY_BYTES]) {
    (void)most;
    snprintf(why, KERNEL_HALF_WHY_BYTES,
             "bf16 on processors is not part of this build: it needs oneDNN 2 (package libdnnl-dev)");
    return NULL;
}

void kernel_halves_close(KernelHalves *halves) {
    (void)halves;
}

int kernel_halves_prepare(KernelHalves *halves, const KernelHalfGemm *shape, char why[KERNEL_HALF_WHY_BYTES]) {
    (void)halves, (void)shape;
    snprintf(why, KERNEL_HALF_WHY_BYTES, "not part of this build");
    return -1;
}

bool kernel_halves_ready(KernelHalves *halves) {
    (void)halves;
    return false;
}

void kernel_halves_gemm(KernelHalves *halves, int product, const void *a, const void *b, void *c) {
    (void)halves, (void)product, (void)a, (void)b, (void)c;
}
