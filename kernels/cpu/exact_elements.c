// Elementwise kernels whose rows or ranges each mesh splits among ranks differently. Compiled without contraction: an
// element's result depends on its operands alone.

#include "kernels/cpu/activate.h"
#include "kernels/exact.h"

void exact_gated(const KernelGated *shape, const float *gate, const float *up, float *s) {
    for (int64_t row = 0; row < shape->rows; row++) {
        for (int64_t col = 0; col < shape->cols; col++) {
            const int64_t at = row * shape->stride + col;
            s[row * shape->cols + col] = activate(shape->activation, gate[at]).value * up[at];
        }
    }
}

void exact_gated_backward(const KernelGated *shape, const float *ds, const float *gate, const float *up, float *dgate,
                          float *dup) {
    for (int64_t row = 0; row < shape->rows; row++) {
        for (int64_t col = 0; col < shape->cols; col++) {
            const int64_t at = row * shape->stride + col;
            const float d = ds[row * shape->cols + col], u = up[at];
            const Activated gated = activate(shape->activation, gate[at]);
            dgate[at] = d * u * gated.slope;
            dup[at] = d * gated.value;
        }
    }
}

void exact_adamw(int64_t count, int64_t undecayed, const KernelAdamw *options, const float *scale,
                 const float *gradient, float *master, float *moment1, float *moment2) {
    const float beta1 = options->beta1, beta2 = options->beta2, lr = options->lr;
    const double correction1 = 1.0 - pow((double)beta1, (double)options->step);
    const double correction2 = 1.0 - pow((double)beta2, (double)options->step);
    const double decayed = 1.0 - (double)lr * (double)options->weight_decay;
    for (int64_t i = 0; i < count; i++) {
        const float g = gradient[i] * *scale;
        const double m = moment1[i] = beta1 * moment1[i] + (1.0f - beta1) * g;
        const double v = moment2[i] = beta2 * moment2[i] + (1.0f - beta2) * g * g;
        const double kept = (double)master[i] * (i < undecayed ? 1.0 : decayed);
        master[i] = (float)(kept - (double)lr * (m / correction1) / (sqrt(v / correction2) + (double)options->eps));
    }
}
