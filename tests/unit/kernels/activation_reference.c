#include "tests/unit/kernels/activation_reference.h"

#include <math.h>

static double silu(double x) {
    return x / (1.0 + exp(-x));
}

static double gelu(double x) {
    return 0.5 * x * erfc(-x / sqrt(2.0));
}

static double gelu_tanh(double x) {
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

double (*const reference_activations[ACTIVATIONS])(double) = {
    [KERNEL_SILU] = silu, [KERNEL_GELU] = gelu, [KERNEL_GELU_TANH] = gelu_tanh};
