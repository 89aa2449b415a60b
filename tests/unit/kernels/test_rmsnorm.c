#include "kernels/kernels.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static const float EPS = 1e-5f;

typedef struct Norm {
    int64_t rows, cols;
    double *x, *w;
    const float *dy;
} Norm;

static double norm_out(const Norm *n, int64_t row, int64_t col) {
    double squares = 0.0;
    for (int64_t i = 0; i < n->cols; i++) {
        squares += n->x[row * n->cols + i] * n->x[row * n->cols + i];
    }
    return n->x[row * n->cols + col] * n->w[col] / sqrt(squares / (double)n->cols + (double)EPS);
}

static double norm_value(const void *context) {
    const Norm *n = context;
    double value = 0.0;
    for (int64_t row = 0; row < n->rows; row++) {
        double squares = 0.0, dot = 0.0;
        for (int64_t i = 0; i < n->cols; i++) {
            const double x = n->x[row * n->cols + i];
            squares += x * x;
            dot += x * n->w[i] * (double)n->dy[row * n->cols + i];
        }
        value += dot / sqrt(squares / (double)n->cols + (double)EPS);
    }
    return value;
}

static const int64_t shapes[][2] = {{1, 1}, {3, 7}, {5, 64}, {200, 131}, {2, 1000}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

Test(kernel_rmsnorm, equals_the_definition_in_double) {
    for (int s = 0; s < SHAPES; s++) {
        const int64_t rows = shapes[s][0], cols = shapes[s][1];
        float *x = check_floats(rows * cols, 1), *w = check_floats(cols, 2);
        float *y = check_zeros(rows * cols), *rstd = check_zeros(rows);
        Norm n = {rows, cols, check_doubles(x, rows * cols), check_doubles(w, cols), NULL};
        kernel_rmsnorm(rows, cols, EPS, x, w, y, rstd);
        for (int64_t i = 0; i < rows * cols; i++) {
            cr_assert_float_eq(y[i], norm_out(&n, i / cols, i % cols), 2e-6 * fmax(1.0, fabs((double)y[i])));
        }
        free(x), free(w), free(y), free(rstd), free(n.x), free(n.w);
    }
}

static void check_backward(int64_t rows, int64_t cols, bool residual, bool accumulate) {
    float *x = check_floats(rows * cols, 1), *w = check_floats(cols, 2), *dy = check_floats(rows * cols, 3);
    float *y = check_zeros(rows * cols), *rstd = check_zeros(rows);
    float *stream = check_floats(rows * cols, 4), *dx = check_floats(rows * cols, 4), *dw = check_floats(cols, 5);
    float *before = check_floats(cols, 5);
    Norm n = {rows, cols, check_doubles(x, rows * cols), check_doubles(w, cols), dy};
    kernel_rmsnorm(rows, cols, EPS, x, w, y, rstd);
    kernel_rmsnorm_backward(rows, cols, dy, x, w, rstd, residual ? dx : NULL, dx, dw, accumulate);  // dx in place
    for (int64_t i = 0; i < rows * cols; i += rows * cols / 50 + 1) {
        const double want = check_slope(norm_value, &n, n.x + i) + (residual ? (double)stream[i] : 0.0);
        cr_assert_float_eq(dx[i], want, 4e-6 * fmax(1.0, fabs(want)), "dx[%d] %g, not %g", (int)i, (double)dx[i], want);
    }
    for (int64_t i = 0; i < cols; i += cols / 20 + 1) {
        const double want = check_slope(norm_value, &n, n.w + i) + (accumulate ? (double)before[i] : 0.0);
        cr_assert_float_eq(dw[i], want, 4e-6 * fmax(1.0, fabs(want)), "dw[%d] %g, not %g", (int)i, (double)dw[i], want);
    }
    free(x), free(w), free(dy), free(y), free(rstd), free(stream), free(dx), free(dw), free(before), free(n.x),
        free(n.w);
}

Test(kernel_rmsnorm_backward, equals_central_differences_with_and_without_residual_and_accumulation) {
    for (int s = 1; s < SHAPES; s++) {
        for (int mode = 0; mode < 4; mode++) {
            check_backward(shapes[s][0], shapes[s][1], mode & 1, mode & 2);
        }
    }
}
