#include "kernels/kernels.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { ROWS = 9, HEADS = 3 };

static const int32_t positions[ROWS] = {0, 1, 2, 63, 64, 1000, 8191, 131071, 7};

static void reference(int head_dim, int turning, int64_t stride, double theta, double *x) {
    const int half = turning / 2;
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < HEADS * half; i++) {
            double *a = x + row * stride + i / half * head_dim + i % half, *b = a + half;
            const double angle = positions[row] * pow(theta, -2.0 * (i % half) / turning);
            const double u = *a, v = *b;
            *a = u * cos(angle) - v * sin(angle);
            *b = v * cos(angle) + u * sin(angle);
        }
    }
}

Test(kernel_rope, turns_every_pair_by_position_times_frequency) {
    const int head_dims[] = {2, 8, 40, 64, 256, 320};
    const double thetas[] = {10000.0, 500000.0};
    for (int d = 0; d < 6; d++) {
        for (int t = 0; t < 2; t++) {
            const int64_t stride = HEADS * head_dims[d] + 5, size = ROWS * stride;
            float *x = check_floats(size, 1);
            double *want = check_doubles(x, size);
            reference(head_dims[d], head_dims[d], stride, thetas[t], want);
            const KernelRope shape = {HEADS, head_dims[d], head_dims[d], stride, thetas[t], .backward = false};
            kernel_rope(ROWS, &shape, positions, x);
            cr_assert_lt(check_distance(x, want, size), 3e-7, "head_dim %d", head_dims[d]);
            free(x);
            free(want);
        }
    }
}

// gpt_neox rotates the first quarter of a head, phi's and stablelm's configs other parts.
Test(kernel_rope, turns_only_the_leading_part_of_a_head) {
    const int parts[] = {2, 16, 20, 48};
    for (int p = 0; p < 4; p++) {
        const int64_t stride = HEADS * 64 + 3, size = ROWS * stride;
        float *x = check_floats(size, 4);
        double *want = check_doubles(x, size);
        reference(64, parts[p], stride, 10000.0, want);
        kernel_rope(ROWS, &(KernelRope){HEADS, 64, parts[p], stride, 10000.0, .backward = false}, positions, x);
        cr_assert_lt(check_distance(x, want, size), 3e-7, "%d of 64", parts[p]);
        free(x);
        free(want);
    }
}

Test(kernel_rope, backward_undoes_forward) {
    const int64_t stride = HEADS * 64, size = ROWS * stride;
    float *x = check_floats(size, 2), *before = check_floats(size, 2);
    KernelRope shape = {HEADS, 64, 64, stride, 10000.0, .backward = false};
    kernel_rope(ROWS, &shape, positions, x);
    cr_assert_gt(check_distance_f(x, before, size), 0.1);
    shape.backward = true;
    kernel_rope(ROWS, &shape, positions, x);
    cr_assert_lt(check_distance_f(x, before, size), 5e-7);
    free(x);
    free(before);
}

Test(kernel_rope, leaves_position_zero_as_it_is) {
    const int32_t zero[ROWS] = {0};
    const int64_t size = ROWS * HEADS * 16;
    float *x = check_floats(size, 3), *before = check_floats(size, 3);
    kernel_rope(ROWS, &(KernelRope){HEADS, 16, 16, HEADS * 16, 10000.0, .backward = false}, zero, x);
    cr_assert_arr_eq(x, before, sizeof(float) * (size_t)size);
    free(x);
    free(before);
}
