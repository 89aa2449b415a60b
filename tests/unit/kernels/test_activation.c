#include "kernels/kernels.h"
#include "tests/unit/kernels/activation_reference.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>

enum { POINTS = 20011 };

// A dense grid where the functions are curved, and values far out on both sides.
static float *grid(void) {
    float *x = malloc(sizeof *x * POINTS);
    for (int i = 0; i < POINTS; i++) {
        x[i] = (float)(i - POINTS / 2) * 1e-3f;
    }
    const float far[] = {-1e30f, -3e4f, -90.0f, -12.0f, 12.0f, 90.0f, 3e4f, 1e12f};
    for (int i = 0; i < 8; i++) {
        x[i * 31] = far[i];
    }
    return x;
}

Test(kernel_activation, equals_the_definition_in_double) {
    for (int kind = 0; kind < ACTIVATIONS; kind++) {
        float *x = grid(), *y = check_zeros(POINTS);
        kernel_activation((KernelActivation)kind, POINTS, x, y);
        for (int i = 0; i < POINTS; i++) {
            const double want = reference_activations[kind]((double)x[i]);
            cr_assert_float_eq(y[i], want, 3e-7 * fabs(want) + 2e-7, "%d: act(%g) is %g, not %g", kind, (double)x[i],
                               (double)y[i], want);
        }
        free(x);
        free(y);
    }
}

static double slope_at(int kind, double x) {
    const double step = 1e-5 * fmax(1.0, fabs(x));
    return (reference_activations[kind](x + step) - reference_activations[kind](x - step)) / (2.0 * step);
}

Test(kernel_activation_backward, equals_central_differences_also_in_place) {
    for (int kind = 0; kind < ACTIVATIONS; kind++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            float *x = grid(), *kept = grid(), *dy = check_floats(POINTS, 3), *dx = in_place ? x : check_zeros(POINTS);
            kernel_activation_backward((KernelActivation)kind, POINTS, dy, x, dx);
            for (int i = 0; i < POINTS; i++) {
                const double want = (double)dy[i] * slope_at(kind, (double)kept[i]);
                cr_assert_float_eq(dx[i], want, 2e-6, "%d: slope at %g gives %g, not %g", kind, (double)kept[i],
                                   (double)dx[i], want);
            }
            if (!in_place) {
                free(dx);
            }
            free(x);
            free(kept);
            free(dy);
        }
    }
}
