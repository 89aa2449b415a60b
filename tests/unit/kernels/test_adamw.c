#include "kernels/kernels.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>

enum { COUNT = 1037, UNDECAYED = 100, STEPS = 10 };

static const KernelAdamw options = {
    .lr = 1e-2f, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f, .step = 0};

typedef struct Wide {
    double *master, *moment1, *moment2;
} Wide;

static void reference_step(const Wide *w, const float *gradient, double scale, int step) {
    const double beta1 = options.beta1, beta2 = options.beta2, lr = options.lr;
    for (int i = 0; i < COUNT; i++) {
        const double g = (double)gradient[i] * scale;
        w->moment1[i] = beta1 * w->moment1[i] + (1 - beta1) * g;
        w->moment2[i] = beta2 * w->moment2[i] + (1 - beta2) * g * g;
        const double m = w->moment1[i] / (1 - pow(beta1, step)), v = w->moment2[i] / (1 - pow(beta2, step));
        const double decay = i < UNDECAYED ? 0.0 : (double)options.weight_decay;
        w->master[i] -= lr * decay * w->master[i] + lr * m / (sqrt(v) + (double)options.eps);
    }
}

Test(kernel_adamw, follows_the_double_reference_for_ten_steps) {
    float *master = check_floats(COUNT, 1), *moment1 = check_zeros(COUNT), *moment2 = check_zeros(COUNT);
    const Wide w = {check_doubles(master, COUNT), check_doubles(moment1, COUNT), check_doubles(moment2, COUNT)};
    for (int step = 1; step <= STEPS; step++) {
        float *gradient = check_floats(COUNT, (uint64_t)(100 + step));
        const float scale = 1.0f / (float)step;
        KernelAdamw now = options;
        now.step = step;
        kernel_adamw(COUNT, UNDECAYED, &now, &scale, gradient, master, moment1, moment2);
        reference_step(&w, gradient, (double)scale, step);
        free(gradient);
    }
    cr_assert_lt(check_distance(master, w.master, COUNT), 1e-6);
    cr_assert_lt(check_distance(moment1, w.moment1, COUNT), 1e-6);
    cr_assert_lt(check_distance(moment2, w.moment2, COUNT), 1e-6);
}

Test(kernel_adamw, an_element_without_gradient_only_decays) {
    float master[2] = {2.0f, 2.0f}, moment1[2] = {0}, moment2[2] = {0};
    const float gradient[2] = {0}, scale = 1.0f;
    KernelAdamw now = options;
    now.step = 1;
    kernel_adamw(2, 1, &now, &scale, gradient, master, moment1, moment2);
    cr_assert_eq(master[0], 2.0f);
    cr_assert_float_eq(master[1], 2.0 * (1 - 1e-2 * 0.1), 1e-6);
}
