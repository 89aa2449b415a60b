#include "kernels/kernels.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>

enum { ROWS = 6, COLS = 53, STRIDE = 120, SIZE = ROWS * STRIDE };

typedef struct Swiglu {
    double *gate, *up;
    const float *ds;
} Swiglu;

static double silu(double x) {
    return x / (1.0 + exp(-x));
}

static double swiglu_value(const void *context) {
    const Swiglu *s = context;
    double value = 0.0;
    for (int i = 0; i < ROWS * COLS; i++) {
        const int at = i / COLS * STRIDE + i % COLS;
        value += (double)s->ds[i] * silu(s->gate[at]) * s->up[at];
    }
    return value;
}

// Gates from -120 to 120, beyond the range of a float exponential.
static float *wide_gates(void) {
    float *gate = check_floats(SIZE, 1);
    for (int i = 0; i < SIZE; i++) {
        gate[i] *= i % 3 == 0 ? 120.0f : 4.0f;
    }
    return gate;
}

Test(kernel_swiglu, equals_the_definition_in_double_for_any_gate) {
    float *gate = wide_gates(), *up = check_floats(SIZE, 2), *s = check_zeros(ROWS * COLS);
    kernel_swiglu(ROWS, COLS, STRIDE, gate, up, s);
    for (int i = 0; i < ROWS * COLS; i++) {
        const int at = i / COLS * STRIDE + i % COLS;
        const double want = silu((double)gate[at]) * (double)up[at];
        cr_assert_float_eq(s[i], want, 5e-7 * fabs(want) + 1e-30, "silu(%g) * %g", (double)gate[at], (double)up[at]);
    }
    free(gate);
    free(up);
    free(s);
}

Test(kernel_swiglu_backward, equals_central_differences_also_in_place) {
    for (int in_place = 0; in_place < 2; in_place++) {
        float *gate = wide_gates(), *up = check_floats(SIZE, 2), *ds = check_floats(ROWS * COLS, 3);
        Swiglu s = {check_doubles(gate, SIZE), check_doubles(up, SIZE), ds};
        float *dgate = in_place ? gate : check_zeros(SIZE), *dup = in_place ? up : check_zeros(SIZE);
        kernel_swiglu_backward(ROWS, COLS, STRIDE, ds, gate, up, dgate, dup);
        for (int i = 0; i < ROWS * COLS; i++) {
            const int at = i / COLS * STRIDE + i % COLS;
            const double want_gate = check_slope(swiglu_value, &s, s.gate + at);
            const double want_up = check_slope(swiglu_value, &s, s.up + at);
            cr_assert_float_eq(dgate[at], want_gate, 1e-6 * fmax(1.0, fabs(want_gate)));
            cr_assert_float_eq(dup[at], want_up, 1e-6 * fmax(1.0, fabs(want_up)));
        }
        free(s.gate);
        free(s.up);
        free(ds);
        if (!in_place) {
            free(dgate);
            free(dup);
        }
        free(gate);
        free(up);
    }
}
