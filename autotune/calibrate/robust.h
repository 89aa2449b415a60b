// Weights of Student's t with 4 degrees of freedom: outliers are down-weighted, none is discarded.

#pragma once

#define ROBUST_FREEDOM 4.0

// Of normal values: the weighted mean square over the variance, E[w z^2] / E[w], by quadrature.
#define ROBUST_CONSISTENCY 0.746

// And what such weights make of the information of normal values: 1 / 1.08 (the variance of the mean) over E[w] =
// 1.053.
#define ROBUST_INFORMATION 0.88

static inline double robust_weight(double z) {
    return (ROBUST_FREEDOM + 1) / (ROBUST_FREEDOM + z * z);
}
