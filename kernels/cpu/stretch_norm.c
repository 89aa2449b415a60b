// RMS norm of segments of a row, in place: queries and keys per head (qwen3) or whole (olmo2). The formulas are those
// of norm.c, with each segment as a row.

#include "kernels/cpu/columns.h"
#include "kernels/cpu/lanes.h"
#include "kernels/kernels.h"

#include <math.h>

typedef struct Stretches {
    KernelStretches shape;
    float eps;
    const float *w, *before_in, *rstd_in;
    float *x, *before, *rstd, *dw;
    bool accumulate;
} Stretches;

static void norm_rows(const void *context, int64_t begin, int64_t end) {
    const Stretches *s = context;
    const int64_t width = s->shape.width;
    for (int64_t row = begin; row < end; row++) {
        for (int part = 0; part < s->shape.parts; part++) {
            float *restrict x = s->x + row * s->shape.stride + part * width;
            float *restrict before = s->before + row * s->shape.before_stride + part * width;
            const float *restrict w = s->w;
            const float rstd = 1.0f / sqrtf(lanes_dot(x, x, width) / (float)width + s->eps);
            for (int64_t col = 0; col < width; col++) {
                before[col] = x[col];
                x[col] = x[col] * rstd * w[col];
            }
            s->rstd[row * s->shape.rstd_stride + part] = rstd;
        }
    }
}

void kernel_stretch_norm(const KernelStretches *shape, float eps, const float *w, float *x, float *before,
                         float *rstd) {
    const Stretches stretches = {.shape = *shape, .eps = eps, .w = w, .x = x, .before = before, .rstd = rstd};
    parallel_rows(shape->rows, shape->parts * shape->width, norm_rows, &stretches);
}

static void backward_rows(const void *context, int64_t begin, int64_t end) {
    const Stretches *s = context;
    const int64_t width = s->shape.width;
    for (int64_t row = begin; row < end; row++) {
        for (int part = 0; part < s->shape.parts; part++) {
            float *restrict dx = s->x + row * s->shape.stride + part * width;
            const float *restrict x = s->before_in + row * s->shape.before_stride + part * width;
            const float *restrict w = s->w;
            const float rstd = s->rstd_in[row * s->shape.rstd_stride + part];
            const float pull = lanes_dot_of_three(dx, w, x, 0.0f, width) / (float)width * rstd * rstd * rstd;
            for (int64_t col = 0; col < width; col++) {
                dx[col] = dx[col] * w[col] * rstd - x[col] * pull;
            }
        }
    }
}

static void weight_columns(const void *context, int64_t begin, int64_t end) {
    const Stretches *s = context;
    for (int64_t first = begin; first < end; first += COLUMNS) {
        const int64_t width = end - first < COLUMNS ? end - first : COLUMNS;
        ColumnSums sums = {0};
        for (int64_t row = 0; row < s->shape.rows; row++) {
            for (int part = 0; part < s->shape.parts; part++) {
                const int64_t at = part * s->shape.width + first;
                const float *restrict dy = s->x + row * s->shape.stride + at;
                const float *restrict x = s->before_in + row * s->shape.before_stride + at;
                const float rstd = s->rstd_in[row * s->shape.rstd_stride + part];
                for (int64_t col = 0; col < width; col++) {
                    sums.part[col] += dy[col] * (x[col] * rstd);
                }
            }
            column_sums_fold(&sums, row, s->shape.rows, width);
        }
        column_sums_store(&sums, width, s->accumulate, s->dw + first);
    }
}

void kernel_stretch_norm_backward(const KernelStretches *shape, const float *w, const float *before, const float *rstd,
                                  float *dx, float *dw, bool accumulate) {
    const Stretches stretches = {
        .shape = *shape, .w = w, .before_in = before, .rstd_in = rstd, .x = dx, .dw = dw, .accumulate = accumulate};
    if (dw) {
        parallel_columns(shape->rows * shape->parts, shape->width, weight_columns,
                         &stretches);  // reads dy, which is overwritten next
    }
    parallel_rows(shape->rows, shape->parts * shape->width, backward_rows, &stretches);
}
