// Small vector helpers shared by the kernel families: lanes of the tier's natural width (GNU vector types), sums in a
// fixed order, and an exponential that the compiler vectorises (libm's is not vectorised without -ffast-math).

#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef float LanesAt __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));  // any address
typedef int32_t LanesMask __attribute__((vector_size(LANES * sizeof(float))));

static inline Lanes lanes_load(const float *x) {
    return *(const LanesAt *)x;
}

static inline Lanes lanes_max(Lanes a, Lanes b) {
    const LanesMask larger = a > b;
    return (Lanes)((larger & (LanesMask)a) | (~larger & (LanesMask)b));
}

// exp(x): x = n ln 2 + r with ln 2 in two parts (Cody and Waite 1980), e^r by a polynomial of degree 6 interpolated at
// the Chebyshev nodes of |r| <= ln 2 / 2 (relative error 1.1e-8 before rounding; below 2 ulp,
// tests/unit/kernels/test_exp.c). 0 below -87.33 (where floats lose precision), infinity above 88.37; NaN stays NaN.
static inline float exp_fast(float x) {
    const float magic = 12582912.0f;                // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
    const float shifted = x * 1.44269504f + magic;  // 1 / ln 2
    const float n = shifted - magic;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 = 355/512 - 2.1219444e-4
    const float r2 = r * r;                                       // Estrin's order: half the latency of Horner's
    const float high = (8.363232884e-03f * r + 4.166655421e-02f) + 1.392625083e-03f * r2;
    const float p = (1.0f + r) + r2 * ((1.666657667e-01f * r + 0.5f) + r2 * high);
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + 0x3f800000u;  // 2^n
    float power;
    memcpy(&power, &bits, sizeof power);
    const float low = x < -87.33f ? 0.0f : p * power;  // clipped after the polynomial: clamping x before it
    return x > 88.37f ? __builtin_inff() : low;        // makes gcc carry the constant results along in blends
}

// Four running sums, then a fixed tree: the order depends only on n.
static inline float lanes_total(const Lanes sum[4]) {
    const Lanes total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    float result = 0.0f;
    for (int lane = 0; lane < LANES; lane++) {
        result += total[lane];
    }
    return result;
}

static inline float lanes_sum(const float *x, int64_t n) {
    Lanes sum[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        for (int part = 0; part < 4; part++) {
            sum[part] += lanes_load(x + i + part * LANES);
        }
    }
    float rest = 0.0f;
    for (; i < n; i++) {
        rest += x[i];
    }
    return lanes_total(sum) + rest;
}

// Sum of a b (c - shift).
static inline float lanes_dot_of_three(const float *a, const float *b, const float *c, float shift, int64_t n) {
    Lanes sum[4] = {{0}};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        for (int part = 0; part < 2; part++) {
            const int64_t at = i + part * LANES;
            sum[part] += lanes_load(a + at) * lanes_load(b + at) * (lanes_load(c + at) - shift);
        }
    }
    float rest = 0.0f;
    for (; i < n; i++) {
        rest += a[i] * b[i] * (c[i] - shift);
    }
    return lanes_total(sum) + rest;
}

static inline float lanes_dot(const float *x, const float *y, int64_t n) {
    Lanes sum[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        for (int part = 0; part < 4; part++) {
            sum[part] += lanes_load(x + i + part * LANES) * lanes_load(y + i + part * LANES);
        }
    }
    for (; i + LANES <= n; i += LANES) {
        sum[0] += lanes_load(x + i) * lanes_load(y + i);
    }
    float rest = 0.0f;
    for (; i < n; i++) {
        rest += x[i] * y[i];
    }
    return lanes_total(sum) + rest;
}
