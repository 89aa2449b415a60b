// Gated activations (Shazeer 2020): s = act(gate) * up, elementwise over strided rows.
// d up = ds * act(gate); d gate = ds * up * act'(gate). The activations are in activate.h. A clamped gate is sharper
// than a SiLU, and one is added to the other half.

#include "kernels/cpu/activate.h"
#include "kernels/kernels.h"

#include <math.h>

typedef struct Gated {
    KernelGated shape;
    const float *ds, *gate, *up;
    float *s, *dgate, *dup;
} Gated;

static const float LIMIT = 7.0f, SHARPNESS = 1.702f;  // transformers' GptOssConfig.swiglu_limit, GptOssExperts.alpha

static inline float cut(float x, float low) {
    return x > LIMIT ? LIMIT : x < low ? low : x;
}

static inline Activated sharp(float gate) {
    const Activated a = activate_silu(SHARPNESS * gate);
    return (Activated){a.value / SHARPNESS, a.slope};
}

static inline float gated_value(KernelActivation activation, float gate, float up) {
    return activation == KERNEL_CLAMPED ? sharp(cut(gate, -INFINITY)).value * (cut(up, -LIMIT) + 1.0f)
                                        : activate(activation, gate).value * up;
}

__attribute__((always_inline)) static inline void forward(const void *context, int64_t begin, int64_t end,
                                                          KernelActivation activation) {
    const Gated *w = context;
    const int64_t cols = w->shape.cols, stride = w->shape.stride;
    for (int64_t row = begin; row < end; row++) {
        const float *restrict gate = w->gate + row * stride;
        const float *restrict up = w->up + row * stride;
        float *restrict s = w->s + row * cols;
        for (int64_t col = 0; col < cols; col++) {
            s[col] = gated_value(activation, gate[col], up[col]);
        }
    }
}

EACH_ACTIVATION(forward_of, forward);

static void forward_clamped(const void *context, int64_t begin, int64_t end) {
    forward(context, begin, end, KERNEL_CLAMPED);
}

void kernel_gated(const KernelGated *shape, const float *gate, const float *up, float *s) {
    const Gated gated = {.shape = *shape, .gate = gate, .up = up, .s = s};
    RangeBody *const rows = shape->activation == KERNEL_CLAMPED ? forward_clamped : forward_of[shape->activation];
    parallel_rows(shape->rows, shape->cols, rows, &gated);
}

// Values beyond the limit have no gradient; those at the limit have (torch.clamp).
static inline void gated_back(KernelActivation activation, float d, float gate, float up, float *dgate, float *dup) {
    if (activation == KERNEL_CLAMPED) {
        const Activated a = sharp(cut(gate, -INFINITY));
        *dgate = gate <= LIMIT ? d * (cut(up, -LIMIT) + 1.0f) * a.slope : 0.0f;
        *dup = fabsf(up) <= LIMIT ? d * a.value : 0.0f;
    } else {
        const Activated a = activate(activation, gate);
        *dgate = d * up * a.slope;
        *dup = d * a.value;
    }
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
            gated_back(activation, ds[col], gate[col], up[col], dgate + col, dup + col);
        }
    }
}

EACH_ACTIVATION(backward_of, backward);

static void backward_clamped(const void *context, int64_t begin, int64_t end) {
    backward(context, begin, end, KERNEL_CLAMPED);
}

void kernel_gated_backward(const KernelGated *shape, const float *ds, const float *gate, const float *up, float *dgate,
                           float *dup) {
    const Gated gated = {.shape = *shape, .ds = ds, .gate = gate, .up = up, .dgate = dgate, .dup = dup};
    RangeBody *const rows = shape->activation == KERNEL_CLAMPED ? backward_clamped : backward_of[shape->activation];
    parallel_rows(shape->rows, shape->cols, rows, &gated);
}
