// What the kernel tests share: numbers from a seed, the distance between a kernel's floats and the double reference,
// and derivatives by central differences.

#pragma once

#include <stdint.h>
#include <stdlib.h>

// Uniform in (-1, 1), the same sequence for the same seed on every machine. The caller frees.
float *check_floats(int64_t count, uint64_t seed);
double *check_doubles(const float *x, int64_t count);
float *check_zeros(int64_t count);

// max |got - want| / max(|want|), infinity where either holds a NaN or only one is infinite.
double check_distance(const float *got, const double *want, int64_t count);
double check_distance_f(const float *got, const float *want, int64_t count);

// d value / d *x by central differences: error about 1e-9 of the value's scale.
double check_slope(double (*value)(const void *), const void *context, double *x);
