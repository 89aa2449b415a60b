// Gated activations (Shazeer 2020): s = act(gate) * up, elementwise over strided rows.
// d up = ds * act(gate); d gate = ds * up * act'(gate). The activations are in activate.h.

#include "kernels/cpu/tier.h"

#include "kernels/cpu/activate.h"
#include "kernels/kernels.h"

typedef struct Gated {
    KernelGated shape;
    const float *ds, *gate, *up;
    float *s, *dgate, *dup;
} Gated;

__attribute__((always_inline)) static inline void forward(const void *context, int64_t begin, int64_t end,
                                                          KernelActivation activation) {
    const Gated *w = context;
    const int64_t cols = w->shape.cols, stride = w->shape.stride;
    for (int64_t row = begin; row < end; row++) {
        const float *restrict gate = w->gate + row * stride;
        const float *restrict up = w->up + row * stride;
        float *restrict s = w->s + row * cols;
        for (int64_t col = 0; col < cols; col++) {
            s[col] = activate(activation, gate[col]).value * up[col];
        }
    }
}

EACH_ACTIVATION(forward_of, forward);

void kernel_gated(const KernelGated *shape, const float *gate, const float *up, float *s) {
    const Gated gated = {.shape = *shape, .gate = gate, .up = up, .s = s};
    parallel_rows(shape->rows, shape->cols, forward_of[shape->activation], &gated);
}

__attribute__((always_inline)) static inline void backward(const void *context, int64_t begin, int64_t end,
                                                           KernelActivation activation) {
    const Gated *w = context;
    const int64_t cols = w->shape.cols, stride = w->shape.stride;
    for (int64_t row = begin; row < end; row++) {
        const float *ds = w->ds + row * cols;
        const float *gate = w->gate + row * stride;
        const float *up = w->up + row * stride;
        float *dgate = w->dgate + row * stride;
        float *dup = w->dup + row * stride;
#pragma GCC ivdep  // dgate may be gate, dup may be up
        for (int64_t col = 0; col < cols; col++) {
            const float u = up[col], d = ds[col];
            const Activated gated = activate(activation, gate[col]);
            dgate[col] = d * u * gated.slope;
            dup[col] = d * gated.value;
        }
    }
}

EACH_ACTIVATION(backward_of, backward);

void kernel_gated_backward(const KernelGated *shape, const float *ds, const float *gate, const float *up, float *dgate,
                           float *dup) {
    const Gated gated = {.shape = *shape, .ds = ds, .gate = gate, .up = up, .dgate = dgate, .dup = dup};
    parallel_rows(shape->rows, shape->cols, backward_of[shape->activation], &gated);
}
