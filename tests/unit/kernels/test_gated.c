#include "kernels/kernels.h"
#include "tests/unit/kernels/activation_reference.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>

enum { ROWS = 6, COLS = 53, STRIDE = 120, SIZE = ROWS * STRIDE };

typedef struct Gated {
    double (*act)(double);
    double *gate, *up;
    const float *ds;
} Gated;

static double gated_value(const void *context) {
    const Gated *s = context;
    double value = 0.0;
    for (int i = 0; i < ROWS * COLS; i++) {
        const int at = i / COLS * STRIDE + i % COLS;
        value += (double)s->ds[i] * s->act(s->gate[at]) * s->up[at];
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

static KernelGated shape_of(int kind) {
    return (KernelGated){(KernelActivation)kind, ROWS, COLS, STRIDE};
}

Test(kernel_gated, equals_the_definition_in_double_for_any_gate) {
    for (int kind = 0; kind < ACTIVATIONS; kind++) {
        float *gate = wide_gates(), *up = check_floats(SIZE, 2), *s = check_zeros(ROWS * COLS);
        const KernelGated shape = shape_of(kind);
        kernel_gated(&shape, gate, up, s);
        for (int i = 0; i < ROWS * COLS; i++) {
            const int at = i / COLS * STRIDE + i % COLS;
            const double want = reference_activations[kind]((double)gate[at]) * (double)up[at];
            cr_assert_float_eq(s[i], want, 5e-7 * fabs(want) + 2e-7, "%d: act(%g) * %g", kind, (double)gate[at],
                               (double)up[at]);
        }
        free(gate);
        free(up);
        free(s);
    }
}

static void check_backward(int kind, bool in_place) {
    float *gate = wide_gates(), *up = check_floats(SIZE, 2), *ds = check_floats(ROWS * COLS, 3);
    Gated s = {reference_activations[kind], check_doubles(gate, SIZE), check_doubles(up, SIZE), ds};
    float *dgate = in_place ? gate : check_zeros(SIZE), *dup = in_place ? up : check_zeros(SIZE);
    const KernelGated shape = shape_of(kind);
    kernel_gated_backward(&shape, ds, gate, up, dgate, dup);
    for (int i = 0; i < ROWS * COLS; i++) {
        const int at = i / COLS * STRIDE + i % COLS;
        const double want_gate = check_slope(gated_value, &s, s.gate + at);
        const double want_up = check_slope(gated_value, &s, s.up + at);
        cr_assert_float_eq(dgate[at], want_gate, 1e-6 * fmax(1.0, fabs(want_gate)), "%d at %g: %g, not %g", kind,
                           s.gate[at], (double)dgate[at], want_gate);
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

Test(kernel_gated_backward, equals_central_differences_also_in_place) {
    for (int kind = 0; kind < ACTIVATIONS; kind++) {
        check_backward(kind, false);
        check_backward(kind, true);
    }
}

// ---------------------------------------------------------------------------------------------- clamped

// transformers' GptOssExperts: alpha 1.702, limit 7.
static double clamped(double gate, double up) {
    gate = fmin(gate, 7);
    return gate / (1 + exp(-1.702 * gate)) * (fmax(fmin(up, 7), -7) + 1);
}

static double clamped_value(const void *context) {
    const Gated *s = context;
    double value = 0.0;
    for (int i = 0; i < ROWS * COLS; i++) {
        const int at = i / COLS * STRIDE + i % COLS;
        value += (double)s->ds[i] * clamped(s->gate[at], s->up[at]);
    }
    return value;
}

static float *wide_ups(void) {
    float *up = check_floats(SIZE, 2);
    for (int i = 0; i < SIZE; i++) {
        up[i] *= i % 5 == 0 ? 30.0f : 1.0f;
    }
    return up;
}

Test(kernel_clamped, equals_the_definition_in_double_for_any_gate) {
    float *gate = wide_gates(), *up = wide_ups(), *s = check_zeros(ROWS * COLS);
    const KernelGated shape = shape_of(KERNEL_CLAMPED);
    kernel_gated(&shape, gate, up, s);
    for (int i = 0; i < ROWS * COLS; i++) {
        const int at = i / COLS * STRIDE + i % COLS;
        const double want = clamped((double)gate[at], (double)up[at]);
        cr_assert_float_eq(s[i], want, 1e-6 * fabs(want) + 2e-7, "%g, %g", (double)gate[at], (double)up[at]);
    }
    free(gate);
    free(up);
    free(s);
}

Test(kernel_clamped, backward_equals_central_differences_and_stops_at_the_limits) {
    float *gate = wide_gates(), *up = wide_ups(), *ds = check_floats(ROWS * COLS, 3);
    Gated s = {NULL, check_doubles(gate, SIZE), check_doubles(up, SIZE), ds};
    float *dgate = check_zeros(SIZE), *dup = check_zeros(SIZE);
    const KernelGated shape = shape_of(KERNEL_CLAMPED);
    int beyond = 0;
    kernel_gated_backward(&shape, ds, gate, up, dgate, dup);
    for (int i = 0; i < ROWS * COLS; i++) {
        const int at = i / COLS * STRIDE + i % COLS;
        const double want_gate = check_slope(clamped_value, &s, s.gate + at);
        const double want_up = check_slope(clamped_value, &s, s.up + at);
        cr_assert_float_eq(dgate[at], want_gate, 3e-6 * fmax(1.0, fabs(want_gate)), "at %g", s.gate[at]);
        cr_assert_float_eq(dup[at], want_up, 3e-6 * fmax(1.0, fabs(want_up)), "at %g", s.up[at]);
        beyond += s.gate[at] > 7 && fabs(s.up[at]) > 7;
        cr_expect(s.gate[at] <= 7 || dgate[at] == 0.0f);
    }
    cr_expect_gt(beyond, 0);
    free(s.gate);
    free(s.up);
    free(gate);
    free(up);
    free(ds);
    free(dgate);
    free(dup);
}
