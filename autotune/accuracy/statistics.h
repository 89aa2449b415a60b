// The few statistics that scores use.

#pragma once

#include <stdbool.h>

// Linear interpolation between the order statistics (Hyndman and Fan 1996, type 7); sorts the values in place. 0 for an
// empty set.
double statistics_quantile(double *values, int count, double share);
double statistics_median(double *values, int count);

// Kendall's tau-b: agreement of two orders, ties on either side counted as neither (Kendall 1945). NAN when one side is
// constant.
double statistics_kendall_tau(const double *a, const double *b, int count);

// Inverts a symmetric positive definite matrix (size x size, row-major) in place (Cholesky); also gives the log of its
// determinant. False where it is not positive definite; its contents are then undefined.
bool statistics_invert(double *matrix, int size, double *log_determinant);
