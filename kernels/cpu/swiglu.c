// Gated SiLU (Shazeer 2020): s = gate * sigma(gate) * up, elementwise over strided rows.
// d up = ds * silu(gate); d gate = ds * up * sigma(gate) * (1 + gate (1 - sigma(gate))).

#include "kernels/cpu/tier.h"

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"

typedef struct Swiglu {
    int64_t cols, stride;
    const float *ds, *gate, *up;
    float *s, *dgate, *dup;
} Swiglu;

static void swiglu_rows(const void *context, int64_t begin, int64_t end) {
    const Swiglu *w = context;
    for (int64_t row = begin; row < end; row++) {
        const float *restrict gate = w->gate + row * w->stride;
        const float *restrict up = w->up + row * w->stride;
        float *restrict s = w->s + row * w->cols;
        for (int64_t col = 0; col < w->cols; col++) {
            s[col] = gate[col] / (1.0f + exp_fast(-gate[col])) * up[col];
        }
    }
}

void kernel_swiglu(int64_t rows, int64_t cols, int64_t stride, const float *gate, const float *up, float *s) {
    const Swiglu swiglu = {.cols = cols, .stride = stride, .gate = gate, .up = up, .s = s};
    parallel_rows(rows, cols, swiglu_rows, &swiglu);
}

static void swiglu_backward_rows(const void *context, int64_t begin, int64_t end) {
    const Swiglu *w = context;
    for (int64_t row = begin; row < end; row++) {
        const float *ds = w->ds + row * w->cols;
        const float *gate = w->gate + row * w->stride;
        const float *up = w->up + row * w->stride;
        float *dgate = w->dgate + row * w->stride;
        float *dup = w->dup + row * w->stride;
#pragma GCC ivdep  // dgate may be gate, dup may be up
        for (int64_t col = 0; col < w->cols; col++) {
            const float g = gate[col], u = up[col], d = ds[col];
            const float sigma = 1.0f / (1.0f + exp_fast(-g));
            dgate[col] = d * u * (sigma * (1.0f + g * (1.0f - sigma)));
            dup[col] = d * (g * sigma);
        }
    }
}

void kernel_swiglu_backward(int64_t rows, int64_t cols, int64_t stride, const float *ds, const float *gate,
                            const float *up, float *dgate, float *dup) {
    const Swiglu swiglu = {
        .cols = cols, .stride = stride, .ds = ds, .gate = gate, .up = up, .dgate = dgate, .dup = dup};
    parallel_rows(rows, cols, swiglu_backward_rows, &swiglu);
}
