#include "kernels/kernels.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>

enum { ROWS = 7, COLS = 1013, SIZE = ROWS * COLS };

typedef struct Loss {
    double *logits;
    const int32_t *targets;
    double cap;
} Loss;

static double loss_value(const void *context) {
    const Loss *l = context;
    double loss = 0.0;
    for (int row = 0; row < ROWS; row++) {
        double x[COLS];
        for (int col = 0; col < COLS; col++) {
            const double logit = l->logits[row * COLS + col];
            x[col] = l->cap > 0 ? l->cap * tanh(logit / l->cap) : logit;
        }
        double highest = -INFINITY, sum = 0.0;
        for (int col = 0; col < COLS; col++) {
            highest = fmax(highest, x[col]);
        }
        for (int col = 0; col < COLS; col++) {
            sum += exp(x[col] - highest);
        }
        loss += highest + log(sum) - x[l->targets[row]];
    }
    return loss;
}

static const int32_t targets[ROWS] = {0, 5, COLS - 1, 512, 17, 17, 900};

static float *logits_fill(void) {
    float *x = check_floats(SIZE, 1);
    for (int i = 0; i < SIZE; i++) {
        x[i] = x[i] * 9.0f + (float)(i / COLS * 40);  // rows of very different magnitude
    }
    return x;
}

// All three steps on one rank; logits become the gradient.
static float run_capped(float *logits, float gradient, float before, bool accumulate, float cap) {
    float row_max[ROWS], sum[ROWS], target[ROWS], loss = before;
    if (cap > 0) {
        kernel_loss_cap(SIZE, cap, logits);
    }
    const KernelLoss steps = {ROWS, COLS, 0, targets, row_max, sum, target, gradient, cap};
    kernel_loss_max(&steps, logits);
    kernel_loss_sum(&steps, logits);
    kernel_loss_gradient(&steps, logits, &loss, accumulate);
    return loss;
}

static float run(float *logits, float gradient, float before, bool accumulate) {
    return run_capped(logits, gradient, before, accumulate, 0);
}

Test(kernel_loss, is_the_cross_entropy_in_double) {
    float *x = logits_fill();
    const Loss l = {check_doubles(x, SIZE), targets, 0};
    const double want = loss_value(&l);
    cr_assert_float_eq(run(x, 1.0f, 3.0f, false), want, 5e-7 * want);
    free(x);
    x = logits_fill();
    cr_assert_float_eq(run(x, 1.0f, 3.0f, true), want + 3.0, 5e-7 * want);
    free(x);
    free(l.logits);
}

Test(kernel_loss_gradient, equals_central_differences_times_the_factor) {
    float *x = logits_fill();
    const Loss l = {check_doubles(x, SIZE), targets, 0};
    run(x, 0.25f, 0.0f, false);
    for (int i = 0; i < SIZE; i++) {
        if (i % 61 == 0 || i % COLS == targets[i / COLS]) {
            const double want = 0.25 * check_slope(loss_value, &l, l.logits + i);
            cr_assert_float_eq(x[i], want, 3e-7, "row %d column %d: %g, not %g", i / COLS, i % COLS, (double)x[i],
                               want);
        }
    }
    free(x);
    free(l.logits);
}

Test(kernel_loss_gradient, equals_central_differences_of_capped_logits) {
    float *x = check_floats(SIZE, 1);
    for (int i = 0; i < SIZE; i++) {
        x[i] *= 9.0f;
    }
    const Loss l = {check_doubles(x, SIZE), targets, 5};
    const double want_loss = loss_value(&l), got = run_capped(x, 0.25f, 0.0f, false, 5);
    cr_assert_float_eq(got, want_loss, 5e-7 * want_loss);
    for (int i = 0; i < SIZE; i++) {
        if (i % 61 == 0 || i % COLS == targets[i / COLS]) {
            const double want = 0.25 * check_slope(loss_value, &l, l.logits + i);
            cr_assert_float_eq(x[i], want, 3e-7, "row %d column %d: %g, not %g", i / COLS, i % COLS, (double)x[i],
                               want);
        }
    }
    free(x);
    free(l.logits);
}

Test(kernel_loss_gradient, rows_sum_to_zero) {
    float *x = logits_fill();
    run(x, 1.0f, 0.0f, false);
    for (int row = 0; row < ROWS; row++) {
        double sum = 0.0;
        for (int col = 0; col < COLS; col++) {
            sum += (double)x[row * COLS + col];
        }
        cr_assert_float_eq(sum, 0.0, 1e-6);
    }
    free(x);
}

Test(kernel_loss, a_column_of_minus_infinity_takes_no_part) {
    float *x = logits_fill(), *y = logits_fill();
    for (int row = 0; row < ROWS; row++) {
        x[row * COLS + 100] = -INFINITY;
        y[row * COLS + 100] = -1e6f;
    }
    cr_assert_eq(run(x, 1.0f, 0.0f, false), run(y, 1.0f, 0.0f, false));
    cr_assert_eq(x[100], 0.0f);
    free(x);
    free(y);
}

Test(kernel_loss, at_once_gives_the_bits_of_the_steps) {
    float *steps = logits_fill(), *once = logits_fill(), row_max[ROWS], sum[ROWS], target[ROWS], loss = 3.0f;
    const float want = run(steps, 0.25f, 3.0f, true);
    const KernelLoss rows = {ROWS, COLS, 0, targets, row_max, sum, target, 0.25f, 0};
    kernel_loss(&rows, once, &loss, true);
    cr_assert_eq(loss, want);
    cr_assert_arr_eq(once, steps, sizeof(float) * SIZE);
    const KernelLoss capped = {ROWS, COLS, 0, targets, row_max, sum, target, 0.25f, 0.01f};
    const float of_capped = run_capped(steps, 0.25f, 3.0f, true, 0.01f);
    loss = 3.0f;
    kernel_loss(&capped, once, &loss, true);
    cr_assert_eq(loss, of_capped);
    cr_assert_arr_eq(once, steps, sizeof(float) * SIZE);
    free(steps), free(once);
}
