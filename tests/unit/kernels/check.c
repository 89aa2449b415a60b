#include "tests/unit/kernels/check.h"

#include <math.h>

#include "tests/support/splitmix.h"

// The top 24 bits as a float.
static float next_float(uint64_t *state) {
    return (float)((double)(splitmix_next(state) >> 40) / 8388608.0 - 1.0);
}

float *check_floats(int64_t count, uint64_t seed) {
    float *x = malloc(sizeof *x * (size_t)(count + 1));
    for (int64_t i = 0; i < count; i++) {
        x[i] = next_float(&seed);
    }
    return x;
}

float *check_zeros(int64_t count) {
    return calloc((size_t)count + 1, sizeof(float));
}

double *check_doubles(const float *x, int64_t count) {
    double *y = malloc(sizeof *y * (size_t)(count + 1));
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i];
    }
    return y;
}

double check_distance(const float *got, const double *want, int64_t count) {
    double largest = 0.0, off = 0.0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(got[i]) || isnan(want[i]) || isinf(got[i]) != isinf(want[i])) {
            return INFINITY;
        }
        if (isinf(want[i])) {
            if ((got[i] > 0) != (want[i] > 0)) {
                return INFINITY;
            }
            continue;
        }
        largest = fmax(largest, fabs(want[i]));
        off = fmax(off, fabs((double)got[i] - want[i]));
    }
    return off == 0.0 ? 0.0 : largest == 0.0 ? INFINITY : off / largest;
}

double check_distance_f(const float *got, const float *want, int64_t count) {
    double *wide = check_doubles(want, count);
    const double distance = check_distance(got, wide, count);
    free(wide);
    return distance;
}

double check_slope(double (*value)(const void *), const void *context, double *x) {
    const double at = *x, step = 1e-5 * fmax(1.0, fabs(at));
    *x = at + step;
    const double above = value(context);
    *x = at - step;
    const double below = value(context);
    *x = at;
    return (above - below) / (2.0 * step);
}
