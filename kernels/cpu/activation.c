// Activations on packed elements, forward and backward; the arithmetic is in activate.h.

#include "kernels/cpu/activate.h"
#include "kernels/kernels.h"

typedef struct Elements {
    const float *dy, *x;
    float *out;
} Elements;

__attribute__((always_inline)) static inline void values(const void *context, int64_t begin, int64_t end,
                                                         KernelActivation activation) {
    const Elements *e = context;
    const float *restrict x = e->x;
    float *restrict y = e->out;
    for (int64_t i = begin; i < end; i++) {
        y[i] = activate(activation, x[i]).value;
    }
}

EACH_ACTIVATION(values_of, values);

void kernel_activation(KernelActivation activation, int64_t count, const float *x, float *y) {
    const Elements elements = {.x = x, .out = y};
    parallel_ranges(count, 16, PARALLEL_GRAIN / 4, values_of[activation], &elements);
}

__attribute__((always_inline)) static inline void slopes(const void *context, int64_t begin, int64_t end,
                                                         KernelActivation activation) {
    const Elements *e = context;
    const float *x = e->x, *dy = e->dy;
    float *dx = e->out;
#pragma GCC ivdep  // dx may be x or dy
    for (int64_t i = begin; i < end; i++) {
        dx[i] = dy[i] * activate(activation, x[i]).slope;
    }
}

EACH_ACTIVATION(slopes_of, slopes);

void kernel_activation_backward(KernelActivation activation, int64_t count, const float *dy, const float *x,
                                float *dx) {
    const Elements elements = {.dy = dy, .x = x, .out = dx};
    parallel_ranges(count, 16, PARALLEL_GRAIN / 4, slopes_of[activation], &elements);
}
