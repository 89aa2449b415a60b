// AdamW (Loshchilov and Hutter 2019, algorithm 2, with weight decay multiplied by the learning rate as in PyTorch's
// AdamW): one pass over gradient, weight and both moments. Bias corrections are computed once, in double.

#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"

#include <math.h>

typedef struct Update {
    int64_t undecayed;
    float scale, beta1, beta2, eps;
    float step_size, root_correction;  // lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t)
    float keep;                        // 1 - lr * weight_decay
    const float *gradient;
    float *master, *moment1, *moment2;
} Update;

static void update_range(const Update *u, int64_t begin, int64_t end, float keep) {
    const float *restrict gradient = u->gradient;
    float *restrict master = u->master, *restrict moment1 = u->moment1, *restrict moment2 = u->moment2;
    const float scale = u->scale, beta1 = u->beta1, beta2 = u->beta2, eps = u->eps;
    const float step_size = u->step_size, root_correction = u->root_correction;
    for (int64_t i = begin; i < end; i++) {
        const float g = gradient[i] * scale;
        const float m = beta1 * moment1[i] + (1.0f - beta1) * g;
        const float v = beta2 * moment2[i] + (1.0f - beta2) * g * g;
        moment1[i] = m;
        moment2[i] = v;
        master[i] = master[i] * keep - step_size * m / (sqrtf(v) * root_correction + eps);
    }
}

static void update_part(const void *context, int64_t begin, int64_t end) {
    const Update *u = context;
    const int64_t border = u->undecayed < begin ? begin : u->undecayed > end ? end : u->undecayed;
    update_range(u, begin, border, 1.0f);
    update_range(u, border, end, u->keep);
}

void kernel_adamw(int64_t count, int64_t undecayed, const KernelAdamw *options, const float *scale,
                  const float *gradient, float *master, float *moment1, float *moment2) {
    const double correction1 = 1.0 - pow((double)options->beta1, (double)options->step);
    const double correction2 = 1.0 - pow((double)options->beta2, (double)options->step);
    const Update update = {.undecayed = undecayed,
                           .scale = *scale,
                           .beta1 = options->beta1,
                           .beta2 = options->beta2,
                           .eps = options->eps,
                           .step_size = (float)((double)options->lr / correction1),
                           .root_correction = (float)(1.0 / sqrt(correction2)),
                           .keep = (float)(1.0 - (double)options->lr * (double)options->weight_decay),
                           .gradient = gradient,
                           .master = master,
                           .moment1 = moment1,
                           .moment2 = moment2};
    parallel_ranges(count, 16, PARALLEL_GRAIN, update_part, &update);
}
