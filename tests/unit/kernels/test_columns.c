#include "kernels/kernels.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>

static const int64_t shapes[][2] = {{1, 1}, {3, 7}, {64, 16}, {65, 300}, {700, 33}, {129, 1000}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

Test(kernel_column_sum, equals_the_sum_in_double_with_and_without_accumulation) {
    for (int s = 0; s < SHAPES; s++) {
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            const int64_t rows = shapes[s][0], cols = shapes[s][1];
            float *x = check_floats(rows * cols, 1), *sums = check_floats(cols, 2), *before = check_floats(cols, 2);
            kernel_column_sum(rows, cols, x, sums, accumulate);
            for (int64_t col = 0; col < cols; col++) {
                double want = accumulate ? (double)before[col] : 0.0;
                for (int64_t row = 0; row < rows; row++) {
                    want += (double)x[row * cols + col];
                }
                cr_assert_float_eq(sums[col], want, 1e-6 * sqrt((double)rows) + 1e-6);
            }
            free(x), free(sums), free(before);
        }
    }
}

Test(kernel_copy_rows, of_stride_0_makes_every_row_the_same) {
    for (int s = 0; s < SHAPES; s++) {
        const int64_t rows = shapes[s][0], cols = shapes[s][1];
        float *row = check_floats(cols, 1), *x = check_floats(rows * cols, 2);
        kernel_copy_rows(rows, cols, 0, cols, row, x);
        for (int64_t i = 0; i < rows * cols; i++) {
            cr_assert_eq(x[i], row[i % cols]);
        }
        free(row), free(x);
    }
}

Test(kernel_add_bias, adds_the_bias_to_every_row_also_in_place) {
    for (int s = 0; s < SHAPES; s++) {
        const int64_t rows = shapes[s][0], cols = shapes[s][1];
        float *a = check_floats(rows * cols, 1), *b = check_floats(rows * cols, 2), *bias = check_floats(cols, 3);
        float *before = check_floats(rows * cols, 1);
        kernel_add_bias(rows, cols, a, b, bias, a);
        for (int64_t i = 0; i < rows * cols; i++) {
            cr_assert_float_eq(a[i], (double)before[i] + (double)b[i] + (double)bias[i % cols], 3e-7);
        }
        free(a), free(b), free(bias), free(before);
    }
}
