// Activations and their derivatives, element by element, written so that loops over them vectorise: SiLU, GELU (erf)
// and its tanh form, which is x sigma(2u), u = sqrt(2/pi) (x + 0.044715 x^3). erf: a polynomial in x^2 below 1 and
// 1 - exp(-polynomial) from 1 to 4, both interpolated at Chebyshev nodes (relative error 2e-9, absolute 5e-10 before
// rounding).

#pragma once

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"

typedef struct Activated {
    float value, slope;
} Activated;

static inline Activated activate_silu(float x) {
    const float sigma = 1.0f / (1.0f + exp_fast(-x));
    return (Activated){x * sigma, sigma * (1.0f + x * (1.0f - sigma))};
}

// Phi(x), the normal CDF: (1 + erf(t)) / 2, t = x / sqrt 2; 0 and 1 beyond |t| = 4 (erfc(4) is 1.5e-8).
static inline float normal_phi(float x) {
    const float t = x * 0.70710678f, z = t * t, a = t < 0.0f ? -t : t;
    float small = 7.875875112e-05f;
    small = small * z - 8.016864302e-04f;
    small = small * z + 5.189087425e-03f;
    small = small * z - 2.685421201e-02f;
    small = small * z + 1.128359472e-01f;
    small = small * z - 3.761262667e-01f;
    small = small * z + 1.283791658e-01f;
    small = 0.5f + 0.5f * (t + t * small);
    float large = -1.637151439e-06f;
    large = large * a + 4.605804318e-05f;
    large = large * a - 5.968056299e-04f;
    large = large * a + 4.759596313e-03f;
    large = large * a - 2.642113606e-02f;
    large = large * a + 1.100800830e-01f;
    large = large * a + 6.318260515e-01f;
    large = large * a + 1.130233435e+00f;
    large = large * a - 3.201380657e-04f;
    const float rest = a > 4.0f ? 0.0f : 0.5f * exp_fast(-large);  // half of erfc(a)
    const float far = t < 0.0f ? rest : 1.0f - rest;
    return a < 1.0f ? small : far;
}

static inline Activated activate_gelu(float x) {
    const float phi = normal_phi(x);
    const float density = 0.39894228f * exp_fast(-0.5f * x * x);  // 1 / sqrt(2 pi)
    return (Activated){x * phi, phi + x * density};
}

static inline Activated activate_gelu_tanh(float x) {
    const float twice = 1.5957691216f;  // 2 sqrt(2 / pi)
    const float sigma = 1.0f / (1.0f + exp_fast(-twice * (x + 0.044715f * x * x * x)));
    const float bend = twice * (1.0f + 3.0f * 0.044715f * x * x);
    const float away = sigma * (1.0f - sigma);
    return (Activated){x * sigma, sigma + (away > 0.0f ? x * away * bend : 0.0f)};  // avoids 0 * infinity far out
}

static inline Activated activate(KernelActivation activation, float x) {
    return activation == KERNEL_SILU   ? activate_silu(x)
           : activation == KERNEL_GELU ? activate_gelu(x)
                                       : activate_gelu_tanh(x);
}

// name[activation] runs body(context, begin, end, activation) on a range; the body is inlined once per activation, so
// that no loop selects one.
#define EACH_ACTIVATION(name, body)                                                                                    \
    static void name##_silu(const void *context, int64_t begin, int64_t end) {                                         \
        body(context, begin, end, KERNEL_SILU);                                                                        \
    }                                                                                                                  \
    static void name##_gelu(const void *context, int64_t begin, int64_t end) {                                         \
        body(context, begin, end, KERNEL_GELU);                                                                        \
    }                                                                                                                  \
    static void name##_gelu_tanh(const void *context, int64_t begin, int64_t end) {                                    \
        body(context, begin, end, KERNEL_GELU_TANH);                                                                   \
    }                                                                                                                  \
    static RangeBody *const name[] = {                                                                                 \
        [KERNEL_SILU] = name##_silu, [KERNEL_GELU] = name##_gelu, [KERNEL_GELU_TANH] = name##_gelu_tanh}
