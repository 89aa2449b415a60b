// cap tanh(x / cap): soft caps of scores and logits (gemma2). tanh: Cephes' tanhf (Moshier, netlib.org/cephes), a
// polynomial below 0.625 and 1 - 2 / (exp(2 a) + 1) above; written so that loops over it vectorise.

#pragma once

#include "kernels/cpu/lanes.h"

// Beyond 9, tanh is 1 in fp32. -inf, a masked column, stays -inf.
static inline float cap_softly(float x, float cap) {
    const float t = x / cap, whole = t < 0.0f ? -t : t, a = whole < 9.0f ? whole : 9.0f, z = a * a;
    float small = -5.70498872745e-3f;
    small = small * z + 2.06390887954e-2f;
    small = small * z - 5.37397155531e-2f;
    small = small * z + 1.33314422036e-1f;
    small = small * z - 3.33332819422e-1f;
    small = a + a * (small * z);
    const float large = 1.0f - 2.0f / (exp_fast(2.0f * a) + 1.0f);
    const float of_a = cap * (a < 0.625f ? small : large);
    return whole > 3e38f ? x : t < 0.0f ? -of_a : of_a;
}

// Derivative of the cap, from its result. 0 for masked columns.
static inline float cap_slope(float capped, float over_cap) {
    const float t = capped * over_cap;
    return capped > -__builtin_inff() ? 1.0f - t * t : 0.0f;
}
