#include "kernels/kernels.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>

enum { COUNT = 40007 };  // past the size at which threads are used, and odd

Test(kernel_add, sums_elements_also_in_place) {
    kernel_set_threads(2);
    float *a = check_floats(COUNT, 1), *b = check_floats(COUNT, 2), *c = check_zeros(COUNT);
    kernel_add(COUNT, a, b, c);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(c[i], a[i] + b[i]);
    }
    kernel_add(COUNT, a, b, a);
    cr_assert_arr_eq(a, c, sizeof(float) * COUNT);
    free(a);
    free(b);
    free(c);
}

Test(kernel_copy_rows, copies_between_strides_and_touches_nothing_else) {
    kernel_set_threads(2);
    enum { ROWS = 300, COLS = 111, FROM = 130, TO = 120 };
    float *src = check_floats(ROWS * FROM, 1), *dst = check_floats(ROWS * TO, 2), *before = check_floats(ROWS * TO, 2);
    kernel_copy_rows(ROWS, COLS, FROM, TO, src, dst);
    for (int i = 0; i < ROWS * TO; i++) {
        cr_assert_eq(dst[i], i % TO < COLS ? src[i / TO * FROM + i % TO] : before[i]);
    }
    free(src);
    free(dst);
    free(before);
}

Test(kernel_copy_rows, copies_one_long_row_whole) {
    kernel_set_threads(2);
    float *src = check_floats(COUNT, 1), *dst = check_floats(COUNT + 1, 2), *before = check_floats(COUNT + 1, 2);
    kernel_copy_rows(1, COUNT, 5, 7, src, dst);
    cr_assert_arr_eq(dst, src, sizeof(float) * COUNT);
    cr_assert_eq(dst[COUNT], before[COUNT]);
    free(src);
    free(dst);
    free(before);
}

Test(kernel_zero, zeroes_exactly_count_elements) {
    kernel_set_threads(2);
    float *x = check_floats(COUNT + 1, 1), *before = check_floats(COUNT + 1, 1);
    kernel_zero(COUNT, x);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(x[i], 0.0f);
    }
    cr_assert_eq(x[COUNT], before[COUNT]);
    free(x);
    free(before);
}

Test(kernel_square_sum, weighs_the_leading_elements_for_any_border) {
    float *x = check_floats(COUNT, 1);
    const int64_t counts[] = {0, 1, 15, 17, 1000, COUNT}, lights[] = {0, 1, 16, 999, COUNT};
    for (int c = 0; c < 6; c++) {
        for (int l = 0; l < 5; l++) {
            double want = 2.0;
            for (int64_t i = 0; i < counts[c]; i++) {
                want += (i < lights[l] ? 0.125 : 1.0) * (double)x[i] * (double)x[i];
            }
            float sum = 2.0f;
            kernel_square_sum(counts[c], lights[l], 0.125, x, &sum, true);
            cr_assert_float_eq(sum, want, 1e-7 * want, "count %d light %d", (int)counts[c], (int)lights[l]);
            kernel_square_sum(counts[c], lights[l], 0.125, x, &sum, false);
            cr_assert_float_eq(sum, want - 2.0, 1e-7 * want);
        }
    }
    free(x);
}
