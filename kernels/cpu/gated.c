// Gated activations (Shazeer 2020): s = act(gate) * up, elementwise over strided rows.
// d up = ds * act(gate); d gate = ds * up * act'(gate). The activations are in activate.h.

#include "kernels/cpu/tier.h"

#include "kernels/cpu/activate.h"
#include "kernels/kernels.h"

#include <math.h>

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

// ---------------------------------------------------------------------------------------------- clamped

static const float LIMIT = 7.0f, SHARPNESS = 1.702f;  // transformers' GptOssConfig.swiglu_limit, GptOssExperts.alpha

static inline float cut(float x, float low) {
    return x > LIMIT ? LIMIT : x < low ? low : x;
}

static inline Activated sharp(float gate) {
    const Activated a = activate_silu(SHARPNESS * gate);
    return (Activated){a.value / SHARPNESS, a.slope};
}

static void clamped_rows(const void *context, int64_t begin, int64_t end) {
    const Gated *w = context;
    const int64_t cols = w->shape.cols, stride = w->shape.stride;
    for (int64_t row = begin; row < end; row++) {
        const float *restrict gate = w->gate + row * stride, *restrict up = w->up + row * stride;
        float *restrict s = w->s + row * cols;
        for (int64_t col = 0; col < cols; col++) {
            s[col] = sharp(cut(gate[col], -INFINITY)).value * (cut(up[col], -LIMIT) + 1.0f);
        }
    }
}

void kernel_clamped(const KernelGated *shape, const float *gate, const float *up, float *s) {
    const Gated gated = {.shape = *shape, .gate = gate, .up = up, .s = s};
    parallel_rows(shape->rows, shape->cols, clamped_rows, &gated);
}

// Values beyond the limit have no gradient; those at the limit have (torch.clamp).
static void clamped_backward_rows(const void *context, int64_t begin, int64_t end) {
    const Gated *w = context;
    const int64_t cols = w->shape.cols, stride = w->shape.stride;
    for (int64_t row = begin; row < end; row++) {
        const float *ds = w->ds + row * cols, *gate = w->gate + row * stride, *up = w->up + row * stride;
        float *dgate = w->dgate + row * stride, *dup = w->dup + row * stride;
        for (int64_t col = 0; col < cols; col++) {
            const float g = cut(gate[col], -INFINITY), u = cut(up[col], -LIMIT), d = ds[col];
            const Activated a = sharp(g);
            const bool gate_moves = gate[col] <= LIMIT, up_moves = fabsf(up[col]) <= LIMIT;
            dgate[col] = gate_moves ? d * (u + 1.0f) * a.slope : 0.0f;
            dup[col] = up_moves ? d * a.value : 0.0f;
        }
    }
}

void kernel_clamped_backward(const KernelGated *shape, const float *ds, const float *gate, const float *up,
                             float *dgate, float *dup) {
    const Gated gated = {.shape = *shape, .ds = ds, .gate = gate, .up = up, .dgate = dgate, .dup = dup};
    parallel_rows(shape->rows, shape->cols, clamped_backward_rows, &gated);
}
