// Rotary position embedding (Su et al. 2021), pairs (i, i + d/2) of the first d elements of a head, angle = position *
// theta^(-2i/d), slower where the context is extended (rotary.h). Sines and cosines (angle.h, because libm's are not
// vectorised) are computed once per row and pair and shared by all heads.

#include "kernels/angle.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"
#include "kernels/rotary.h"

#include <math.h>

enum { PAIRS = 128 };  // in one pass over the heads; enough for head_dim 256

typedef struct Rope {
    KernelRope shape;
    const int32_t *position;
    float *x;
} Rope;

// Sine and cosine of every angle, rounded to float.
static void sines(int count, const double *restrict frequency, double position, float *restrict sine,
                  float *restrict cosine) {
    for (int i = 0; i < count; i++) {
        angle_sine(position * frequency[i], &sine[i], &cosine[i]);
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
            frequency[i] = rotary_scaled(pow(shape->theta, -2.0 * (first + i) / shape->turning), shape);
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
