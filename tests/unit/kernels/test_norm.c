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

// ---------------------------------------------------------------------------------------------- layer norm

typedef struct Layer {
    int64_t rows, cols;
    double *x, *w, *bias;
    const float *dy;
} Layer;

static void layer_statistics(const Layer *n, int64_t row, double *mean, double *deviation) {
    const double *x = n->x + row * n->cols;
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < n->cols; i++) {
        sum += x[i];
    }
    *mean = sum / (double)n->cols;
    for (int64_t i = 0; i < n->cols; i++) {
        squares += (x[i] - *mean) * (x[i] - *mean);
    }
    *deviation = sqrt(squares / (double)n->cols + (double)EPS);
}

static double layer_value(const void *context) {
    const Layer *n = context;
    double value = 0.0;
    for (int64_t row = 0; row < n->rows; row++) {
        double mean, deviation;
        layer_statistics(n, row, &mean, &deviation);
        for (int64_t i = 0; i < n->cols; i++) {
            const double normed = (n->x[row * n->cols + i] - mean) / deviation;
            value += (normed * n->w[i] + n->bias[i]) * (double)n->dy[row * n->cols + i];
        }
    }
    return value;
}

// Rows far from zero: mean of squares minus square of the mean would have no digits left as a variance.
static float *shifted(int64_t rows, int64_t cols) {
    float *x = check_floats(rows * cols, 1);
    for (int64_t i = 0; i < rows * cols; i++) {
        x[i] += i / cols % 2 ? 100.0f : 0.0f;
    }
    return x;
}

Test(kernel_layernorm, equals_the_definition_in_double_with_and_without_bias) {
    for (int s = 1; s < SHAPES; s++) {
        for (int biased = 0; biased < 2; biased++) {
            const int64_t rows = shapes[s][0], cols = shapes[s][1];
            float *x = shifted(rows, cols), *w = check_floats(cols, 2), *bias = check_floats(cols, 6);
            float *y = check_zeros(rows * cols), *statistics = check_zeros(2 * rows);
            const Layer n = {rows, cols, check_doubles(x, rows * cols), check_doubles(w, cols), NULL, NULL};
            kernel_layernorm(rows, cols, EPS, x, w, biased ? bias : NULL, y, statistics, statistics + rows);
            for (int64_t i = 0; i < rows * cols; i++) {
                double mean, deviation;
                layer_statistics(&n, i / cols, &mean, &deviation);
                const double want = (n.x[i] - mean) / deviation * n.w[i % cols] + (biased ? (double)bias[i % cols] : 0);
                cr_assert_float_eq(y[i], want, 4e-5, "%g, not %g", (double)y[i], want);  // 100 * 2^-24 / deviation
            }
            free(x), free(w), free(bias), free(y), free(statistics), free(n.x), free(n.w);
        }
    }
}

static void check_layer_backward(int64_t rows, int64_t cols, bool residual, bool accumulate) {
    float *x = check_floats(rows * cols, 1), *w = check_floats(cols, 2), *dy = check_floats(rows * cols, 3);
    float *bias = check_floats(cols, 6), *y = check_zeros(rows * cols), *statistics = check_zeros(2 * rows);
    float *stream = check_floats(rows * cols, 4), *dx = check_floats(rows * cols, 4), *dw = check_floats(cols, 5);
    float *dbias = check_floats(cols, 5), *before = check_floats(cols, 5);
    Layer n = {rows, cols, check_doubles(x, rows * cols), check_doubles(w, cols), check_doubles(bias, cols), dy};
    kernel_layernorm(rows, cols, EPS, x, w, bias, y, statistics, statistics + rows);
    kernel_layernorm_backward(rows, cols, dy, x, w, statistics, statistics + rows, residual ? dx : NULL, dx, dw,
                              accumulate);  // dx in place
    kernel_column_sum(rows, cols, dy, dbias, accumulate);
    for (int64_t i = 0; i < rows * cols; i += rows * cols / 50 + 1) {
        const double want = check_slope(layer_value, &n, n.x + i) + (residual ? (double)stream[i] : 0.0);
        cr_assert_float_eq(dx[i], want, 5e-6 * fmax(1.0, fabs(want)), "dx[%d] %g, not %g", (int)i, (double)dx[i], want);
    }
    for (int64_t i = 0; i < cols; i += cols / 20 + 1) {
        const double add = accumulate ? (double)before[i] : 0.0;
        const double want = check_slope(layer_value, &n, n.w + i) + add;
        const double want_bias = check_slope(layer_value, &n, n.bias + i) + add;
        cr_assert_float_eq(dw[i], want, 5e-6 * fmax(1.0, fabs(want)), "dw[%d] %g, not %g", (int)i, (double)dw[i], want);
        cr_assert_float_eq(dbias[i], want_bias, 5e-6 * fmax(1.0, fabs(want_bias)), "dbias[%d]", (int)i);
    }
    free(x), free(w), free(dy), free(bias), free(y), free(statistics), free(stream), free(dx), free(dw), free(dbias);
    free(before), free(n.x), free(n.w), free(n.bias);
}

Test(kernel_layernorm_backward, equals_central_differences_with_and_without_residual_and_accumulation) {
    for (int s = 1; s < SHAPES; s++) {
        for (int mode = 0; mode < 4; mode++) {
            check_layer_backward(shapes[s][0], shapes[s][1], mode & 1, mode & 2);
        }
    }
}

static void check_add_norm(int64_t rows, int64_t cols, bool layer) {
    const int64_t count = rows * cols;
    float *x = check_floats(count, 1), *more = check_floats(count, 2), *w = check_floats(cols, 3);
    float *sum[2] = {check_zeros(count), check_zeros(count)}, *y[2] = {check_zeros(count), check_zeros(count)};
    float *rows_of[2] = {check_zeros(2 * rows), check_zeros(2 * rows)};
    kernel_add(count, x, more, sum[0]);
    if (layer) {
        kernel_layernorm(rows, cols, EPS, sum[0], w, w, y[0], rows_of[0], rows_of[0] + rows);
    } else {
        kernel_rmsnorm(rows, cols, EPS, sum[0], w, y[0], rows_of[0] + rows);
    }
    kernel_norm(&(KernelNorm){.rows = rows,
                              .cols = cols,
                              .eps = EPS,
                              .x = x,
                              .add = more,
                              .w = w,
                              .bias = layer ? w : NULL,
                              .added = sum[1],
                              .y = y[1],
                              .mean = layer ? rows_of[1] : NULL,
                              .rstd = rows_of[1] + rows});
    cr_assert_arr_eq(sum[0], sum[1], sizeof(float) * (size_t)count);
    cr_assert_arr_eq(y[0], y[1], sizeof(float) * (size_t)count);
    cr_assert_arr_eq(rows_of[0], rows_of[1], sizeof(float) * (size_t)(2 * rows));
    free(x), free(more), free(w), free(sum[0]), free(sum[1]), free(y[0]), free(y[1]), free(rows_of[0]),
        free(rows_of[1]);
}

Test(kernel_norm, gives_the_bits_of_the_sum_and_its_norm) {
    for (int s = 0; s < SHAPES; s++) {
        check_add_norm(shapes[s][0], shapes[s][1], false);
        check_add_norm(shapes[s][0], shapes[s][1], true);
    }
}
