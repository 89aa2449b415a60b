// Medians, because a shared machine has outliers in one direction only. The interval of a median from order statistics:
// k values lie below it with binomial probability, so [x(l), x(n+1-l)] misses it with 2 P(B(n, 1/2) < l).

#include "autotune/validate/measurement.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

#include "autotune/accuracy/statistics.h"

static const double COVERAGE = 0.9;

double measurement_median(const double *values, int count, int warm_up, Arena *arena) {
    double *kept = ARENA_ARRAY(arena, double, count > 0 ? count : 1);
    int kept_count = 0;
    for (int i = warm_up; i < count; i++) {
        if (isfinite(values[i])) {
            kept[kept_count++] = values[i];
        }
    }
    return statistics_median(kept, kept_count);
}

double measurement_median_sd(const double *values, int count, int warm_up, Arena *arena) {
    double *logs = ARENA_ARRAY(arena, double, count > 0 ? count : 1);
    size_t kept = 0;
    for (int i = warm_up; i < count; i++) {
        if (isfinite(values[i]) && values[i] > 0) {
            logs[kept++] = log(values[i]);
        }
    }
    return kept > 1 ? sqrt(M_PI / 2 / (double)kept) * gsl_stats_sd(logs, 1, kept) : 0;
}

// Largest number of values to leave out at either end of `count` sorted ones.
static int left_out(int count) {
    double log_term = count * log(0.5), below = 0;  // of P(B = 0), which underflows from 1075 values on
    int out = 0;
    for (int k = 0; k < count / 2; k++) {
        below += exp(log_term);
        if (2 * below > 1 - COVERAGE) {
            break;
        }
        out = k;
        log_term += log((double)(count - k) / (k + 1));
    }
    return out;
}

void measurement_interval(const double *values, int count, Arena *arena, double *low, double *high) {
    *low = *high = 0;
    if (count <= 0) {
        return;
    }
    double *sorted = ARENA_ARRAY(arena, double, count);
    for (int i = 0; i < count; i++) {
        sorted[i] = values[i];
    }
    gsl_sort(sorted, 1, (size_t)count);
    const int out = left_out(count);
    *low = sorted[out];
    *high = sorted[count - 1 - out];
}

double measurement_spread(const double *values, int count) {
    if (count < 2) {
        return NAN;
    }
    double least = values[0], most = values[0];
    for (int i = 1; i < count; i++) {
        least = fmin(least, values[i]);
        most = fmax(most, values[i]);
    }
    return most / least - 1;
}

static int least_of(const double *values, int count) {
    int best = count > 0 ? 0 : -1;
    for (int i = 1; i < count; i++) {
        best = values[i] < values[best] ? i : best;
    }
    return best;
}

// Baseline without knowledge of shapes: the same time per token for all.
static double constant_error(const double *measured, int count, double *sizes, Arena *arena) {
    double *sorted = ARENA_ARRAY(arena, double, count);
    memcpy(sorted, measured, (size_t)count * sizeof *sorted);
    const double middle = statistics_median(sorted, count);
    for (int i = 0; i < count; i++) {
        sizes[i] = fabs(middle / measured[i] - 1);
    }
    return statistics_median(sizes, count);
}

void measurement_agree(const double *predicted, const double *measured, int count, Arena *arena, Agreement *agreement) {
    *agreement = (Agreement){.count = count,
                             .best_predicted = least_of(predicted, count),
                             .best_measured = least_of(measured, count),
                             .regret = NAN,
                             .kendall_tau = NAN,
                             .median_abs_error = NAN,
                             .median_bias = NAN,
                             .constant_median_abs_error = NAN};
    if (count == 0) {
        return;
    }
    double *errors = ARENA_ARRAY(arena, double, count), *sizes = ARENA_ARRAY(arena, double, count);
    for (int i = 0; i < count; i++) {
        errors[i] = predicted[i] / measured[i] - 1;
        sizes[i] = fabs(errors[i]);
    }
    agreement->regret = measured[agreement->best_predicted] / measured[agreement->best_measured];
    agreement->kendall_tau = count > 1 ? statistics_kendall_tau(predicted, measured, count) : NAN;
    agreement->median_abs_error = statistics_median(sizes, count);
    agreement->median_bias = statistics_median(errors, count);
    agreement->constant_median_abs_error = count > 1 ? constant_error(measured, count, sizes, arena) : NAN;
}
