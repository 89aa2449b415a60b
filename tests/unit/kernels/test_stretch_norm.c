#include "kernels/kernels.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>

static const float EPS = 1e-6f;

// rows, parts, width, stride, before_stride, rstd_stride: heads of 8 and 128, a whole row, gaps in every stride
static const KernelStretches shapes[] = {
    {5, 3, 8, 40, 24, 3}, {70, 2, 128, 256, 300, 9}, {9, 1, 600, 601, 700, 2}, {3, 4, 40, 160, 160, 4}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct Norm {
    KernelStretches shape;
    double *x, *w;
    const float *dy;
} Norm;

static double value(const void *context) {
    const Norm *n = context;
    double sum = 0.0;
    for (int64_t i = 0; i < n->shape.rows * n->shape.parts; i++) {
        const int64_t at = i / n->shape.parts * n->shape.stride + i % n->shape.parts * n->shape.width;
        double squares = 0.0, dot = 0.0;
        for (int64_t col = 0; col < n->shape.width; col++) {
            squares += n->x[at + col] * n->x[at + col];
            dot += n->x[at + col] * n->w[col] * (double)n->dy[at + col];
        }
        sum += dot / sqrt(squares / (double)n->shape.width + (double)EPS);
    }
    return sum;
}

static void check_shape(const KernelStretches *shape, bool accumulate) {
    const int64_t size = shape->rows * shape->stride, used = shape->parts * shape->width;
    float *x = check_floats(size, 1), *w = check_floats(shape->width, 2), *dy = check_floats(size, 3);
    float *given = check_floats(size, 1), *dx = check_floats(size, 3), *dw = check_floats(shape->width, 5);
    float *dw_before = check_floats(shape->width, 5);
    float *before = check_zeros(shape->rows * shape->before_stride),
          *rstd = check_zeros(shape->rows * shape->rstd_stride);
    Norm n = {*shape, check_doubles(x, size), check_doubles(w, shape->width), dy};
    kernel_stretch_norm(shape, EPS, w, x, before, rstd);
    kernel_stretch_norm_backward(shape, w, before, rstd, dx, dw, accumulate);
    for (int64_t i = 0; i < size; i++) {
        const int64_t row = i / shape->stride, col = i % shape->stride;
        if (col >= used) {
            cr_assert(x[i] == given[i] && dx[i] == dy[i], "between the strides");
            continue;
        }
        cr_assert_eq(before[row * shape->before_stride + col], given[i]);
        const double root = 1.0 / (double)rstd[row * shape->rstd_stride + col / shape->width];
        cr_assert_float_eq(x[i], (double)given[i] / root * (double)w[col % shape->width], 2e-6);
        if (i % (size / 60 + 1) == 0) {
            const double want = check_slope(value, &n, n.x + i);
            cr_assert_float_eq(dx[i], want, 5e-6 * fmax(1.0, fabs(want)), "dx %g, not %g", (double)dx[i], want);
        }
    }
    for (int64_t col = 0; col < shape->width; col += shape->width / 20 + 1) {
        const double want = check_slope(value, &n, n.w + col) + (accumulate ? (double)dw_before[col] : 0.0);
        cr_assert_float_eq(dw[col], want, 5e-6 * fmax(1.0, fabs(want)), "dw %g, not %g", (double)dw[col], want);
    }
    free(x), free(w), free(dy), free(given), free(dx), free(dw), free(dw_before), free(before), free(rstd);
    free(n.x), free(n.w);
}

Test(kernel_stretch_norm, norms_in_place_and_its_backward_equals_central_differences) {
    for (int s = 0; s < SHAPES; s++) {
        check_shape(&shapes[s], false);
        check_shape(&shapes[s], true);
    }
}
