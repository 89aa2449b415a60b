// Rotary positions (Su et al. 2021), pairs (i, i + d/2) of the first d elements of a head, angle = position *
// theta^(-2i/d). Angles, sines and cosines are made in double once per row and pair and shared by the heads: reduced by
// pi/2 in three parts (Cody and Waite 1980) and summed by Taylor series, because libm's are not vectorised. Exact to
// float rounding for angles below 2^20.

#include "kernels/cpu/tier.h"

#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"

#include <math.h>

enum { PAIRS = 128 };  // of one pass over the heads; head_dim 256 fits

typedef struct Rope {
    KernelRope shape;
    const int32_t *position;
    float *x;
} Rope;

// sin and cos of every angle, rounded to float.
static void sines(int count, const double *restrict frequency, double position, float *restrict sine,
                  float *restrict cosine) {
    for (int i = 0; i < count; i++) {
        const double angle = position * frequency[i];
        const int32_t quarter = (int32_t)(angle * 0.63661977236758134308 + 0.5);  // 2/pi; angles are never negative
        const double n = (double)quarter;
        // pi/2 = 1.5707963267341256 (33 bits) + 6.077100506303966e-11 (33 bits) + 2.0222662487959506e-21, as in fdlibm
        const double r =
            angle - n * 1.57079632673412561417e+00 - n * 6.07710050630396597660e-11 - n * 2.02226624879595063154e-21;
        const double z = r * r;
        const double s =
            r + r * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 - z / 39916800))));
        const double c =
            1 +
            z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z / 479001600)))));
        const double sin_part = quarter & 1 ? c : s, cos_part = quarter & 1 ? s : c;
        sine[i] = (float)(quarter & 2 ? -sin_part : sin_part);
        cosine[i] = (float)((quarter + 1) & 2 ? -cos_part : cos_part);
    }
}

static void turn(int count, const float *restrict sine, const float *restrict cosine, float *restrict a,
                 float *restrict b) {
    for (int i = 0; i < count; i++) {
        const float u = a[i], v = b[i];
        a[i] = u * cosine[i] - v * sine[i];
        b[i] = v * cosine[i] + u * sine[i];
    }
}

static void rope_rows(const void *context, int64_t begin, int64_t end) {
    const Rope *r = context;
    const KernelRope *shape = &r->shape;
    const int half = shape->turning / 2;
    for (int first = 0; first < half; first += PAIRS) {
        const int count = half - first < PAIRS ? half - first : PAIRS;
        double frequency[PAIRS];
        for (int i = 0; i < count; i++) {
            frequency[i] = pow(shape->theta, -2.0 * (first + i) / shape->turning);
        }
        for (int64_t row = begin; row < end; row++) {
            float sine[PAIRS], cosine[PAIRS];
            sines(count, frequency, r->position[row], sine, cosine);
            for (int i = 0; shape->backward && i < count; i++) {
                sine[i] = -sine[i];
            }
            for (int head = 0; head < shape->heads; head++) {
                float *x = r->x + row * shape->stride + (int64_t)head * shape->head_dim + first;
                turn(count, sine, cosine, x, x + half);
            }
        }
    }
}

void kernel_rope(int64_t rows, const KernelRope *shape, const int32_t *position, float *x) {
    const Rope rope = {*shape, position, x};
    parallel_rows(rows, (int64_t)shape->heads * shape->turning, rope_rows, &rope);
}
