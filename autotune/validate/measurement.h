// Statistics of measured step times: the median, its uncertainty, and whether predicted and measured rankings agree.

#pragma once

#include "sim/base/arena.h"

// The median of the values after the first warm_up; NAN values (a step that was not timed) are left out. 0 of nothing.
double measurement_median(const double *values, int count, int warm_up, Arena *arena);

// The standard error of the log of that median, as if the values were independent draws of one log-normal:
// sqrt(pi / 2 n) standard deviations of the logs (David and Nagaraja 2003, 10.3). 0 of fewer than two: not known.
double measurement_median_sd(const double *values, int count, int warm_up, Arena *arena);

// An interval that holds the true median with at least 90 % probability, whatever the distribution: order statistics
// under the binomial (David and Nagaraja 2003, 7.1). With few values, the whole range of them.
void measurement_interval(const double *values, int count, Arena *arena, double *low, double *high);

// Largest over smallest, minus one: what repeats of the same thing differ by. NAN of fewer than two.
double measurement_spread(const double *values, int count);

// Predicted and measured times of the same plans, per token.
typedef struct Agreement {
    int count;
    int best_predicted, best_measured;  // indices; -1 of nothing
    double regret;                      // measured time of the one predicted best over that of the one measured best
    double kendall_tau;                 // NAN of fewer than two
    double median_abs_error;            // |predicted / measured - 1|
    double median_bias;                 // predicted / measured - 1
    double
        constant_median_abs_error;  // of one rate for all plans, the middle of these very runs: NAN of fewer than two
} Agreement;

void measurement_agree(const double *predicted, const double *measured, int count, Arena *arena, Agreement *agreement);
