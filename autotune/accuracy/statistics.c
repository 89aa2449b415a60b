// Quantiles by GSL; Kendall's tau-b, which GSL lacks, over all pairs: the sets are meshes of one world, some dozens.

#include "autotune/accuracy/statistics.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

double statistics_quantile(double *values, int count, double share) {
    if (count == 0) {
        return 0;
    }
    gsl_sort(values, 1, (size_t)count);
    return gsl_stats_quantile_from_sorted_data(values, 1, (size_t)count, share);
}

double statistics_median(double *values, int count) {
    return statistics_quantile(values, count, 0.5);
}

static int order(double left, double right) {
    return (left > right) - (left < right);
}

double statistics_kendall_tau(const double *a, const double *b, int count) {
    double agreement = 0, ordered_a = 0, ordered_b = 0;
    for (int i = 0; i < count; i++) {
        for (int j = i + 1; j < count; j++) {
            const int in_a = order(a[i], a[j]), in_b = order(b[i], b[j]);
            agreement += in_a * in_b;
            ordered_a += in_a != 0;
            ordered_b += in_b != 0;
        }
    }
    return ordered_a > 0 && ordered_b > 0 ? agreement / sqrt(ordered_a * ordered_b) : NAN;
}

bool statistics_invert(double *matrix, int size, double *log_determinant) {
    gsl_matrix_view view = gsl_matrix_view_array(matrix, (size_t)size, (size_t)size);
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    int code = gsl_linalg_cholesky_decomp1(&view.matrix);
    *log_determinant = 0;
    for (int i = 0; i < size && code == GSL_SUCCESS; i++) {
        *log_determinant += 2 * log(matrix[i * size + i]);
    }
    code = code == GSL_SUCCESS ? gsl_linalg_cholesky_invert(&view.matrix) : code;
    gsl_set_error_handler(before);
    return code == GSL_SUCCESS;
}
