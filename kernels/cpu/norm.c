// RMS norm (Zhang and Sennrich 2019) and layer norm (Ba et al. 2016). With x^ = (x - mean) r, r = 1 / rms or
// 1 / deviation, and g = dy * w:
//   RMS    dx = r g - x r^3 mean(g x)
//   layer  dx = r (g - mean(g) - x^ mean(g x^))
// and dw = sum over rows of dy x^. The variance is that of x - mean, in a second pass, so nothing cancels.

#include "kernels/cpu/tier.h"

#include "kernels/cpu/columns.h"
#include "kernels/cpu/lanes.h"
#include "kernels/kernels.h"
#include "kernels/latent.h"

#include <math.h>

typedef struct Norm {
    int64_t rows, cols, x_stride;  // of x and of its gradient; the others are packed
    float eps;
    const float *dy, *x, *w, *bias, *mean_in, *rstd_in, *residual;  // mean_in NULL: RMS
    float *out, *mean_out, *rstd_out, *dw;
    bool accumulate;
} Norm;

static void rms_rows(const void *context, int64_t begin, int64_t end) {
    const Norm *n = context;
    for (int64_t row = begin; row < end; row++) {
        const float *restrict x = n->x + row * n->x_stride;
        const float *restrict w = n->w;
        float *restrict y = n->out + row * n->cols;
        const float rstd = 1.0f / sqrtf(lanes_dot(x, x, n->cols) / (float)n->cols + n->eps);
        for (int64_t col = 0; col < n->cols; col++) {
            y[col] = x[col] * rstd * w[col];
        }
        n->rstd_out[row] = rstd;
    }
}

void kernel_rmsnorm(int64_t rows, int64_t cols, float eps, const float *x, const float *w, float *y, float *rstd) {
    const Norm norm = {
        .rows = rows, .cols = cols, .x_stride = cols, .eps = eps, .x = x, .w = w, .out = y, .rstd_out = rstd};
    parallel_rows(rows, cols, rms_rows, &norm);
}

static void layer_rows(const void *context, int64_t begin, int64_t end) {
    const Norm *n = context;
    for (int64_t row = begin; row < end; row++) {
        const float *restrict x = n->x + row * n->cols;
        const float *restrict w = n->w;
        float *restrict y = n->out + row * n->cols;
        const float mean = lanes_sum(x, n->cols) / (float)n->cols;
        for (int64_t col = 0; col < n->cols; col++) {
            y[col] = x[col] - mean;
        }
        const float rstd = 1.0f / sqrtf(lanes_dot(y, y, n->cols) / (float)n->cols + n->eps);
        if (n->bias) {
            const float *restrict bias = n->bias;
            for (int64_t col = 0; col < n->cols; col++) {
                y[col] = y[col] * rstd * w[col] + bias[col];
            }
        } else {
            for (int64_t col = 0; col < n->cols; col++) {
                y[col] = y[col] * rstd * w[col];
            }
        }
        n->mean_out[row] = mean;
        n->rstd_out[row] = rstd;
    }
}

void kernel_layernorm(int64_t rows, int64_t cols, float eps, const float *x, const float *w, const float *bias,
                      float *y, float *mean, float *rstd) {
    const Norm norm = {.rows = rows,
                       .cols = cols,
                       .eps = eps,
                       .x = x,
                       .w = w,
                       .bias = bias,
                       .out = y,
                       .mean_out = mean,
                       .rstd_out = rstd};
    parallel_rows(rows, cols, layer_rows, &norm);
}

typedef struct AddNorm {
    const float *x, *more;
    float *sum;
    Norm norm;  // of the sum
} AddNorm;

static void add_norm_rows(const void *context, int64_t begin, int64_t end) {
    const AddNorm *n = context;
    const int64_t cols = n->norm.cols;
    for (int64_t row = begin; row < end; row++) {
        const float *restrict x = n->x + row * cols, *restrict more = n->more + row * cols;
        float *restrict sum = n->sum + row * cols;
        for (int64_t col = 0; col < cols; col++) {
            sum[col] = x[col] + more[col];
        }
        (n->norm.mean_out ? layer_rows : rms_rows)(&n->norm, row, row + 1);
    }
}

void kernel_add_norm(const KernelAddNorm *norm) {
    const AddNorm fused = {.x = norm->x,
                           .more = norm->more,
                           .sum = norm->sum,
                           .norm = {.rows = norm->rows,
                                    .cols = norm->cols,
                                    .x_stride = norm->cols,
                                    .eps = norm->eps,
                                    .x = norm->sum,
                                    .w = norm->w,
                                    .bias = norm->bias,
                                    .out = norm->y,
                                    .mean_out = norm->mean,
                                    .rstd_out = norm->rstd}};
    parallel_rows(norm->rows, norm->cols, add_norm_rows, &fused);
}

// dx = (residual) + r g - (x - mean) pull - drop.
static void pass_back(const Norm *n, int64_t row, float mean, float pull, float drop) {
    const float *dy = n->dy + row * n->cols, *x = n->x + row * n->x_stride, *w = n->w;
    float *dx = n->out + row * n->x_stride;
    const float rstd = n->rstd_in[row];
    if (n->residual) {
        const float *residual = n->residual + row * n->cols;
#pragma GCC ivdep  // dx may be residual itself
        for (int64_t col = 0; col < n->cols; col++) {
            dx[col] = residual[col] + (dy[col] * w[col] * rstd - (x[col] - mean) * pull - drop);
        }
    } else {
#pragma GCC ivdep
        for (int64_t col = 0; col < n->cols; col++) {
            dx[col] = dy[col] * w[col] * rstd - (x[col] - mean) * pull - drop;
        }
    }
}

static void backward_rows(const void *context, int64_t begin, int64_t end) {
    const Norm *n = context;
    const float cols = (float)n->cols;
    for (int64_t row = begin; row < end; row++) {
        const float *dy = n->dy + row * n->cols, *x = n->x + row * n->x_stride;
        const float rstd = n->rstd_in[row];
        const float mean = n->mean_in ? n->mean_in[row] : 0.0f;
        const float along = lanes_dot_of_three(dy, n->w, x, mean, n->cols) / cols;    // mean(g (x - mean))
        const float level = n->mean_in ? lanes_dot(dy, n->w, n->cols) / cols : 0.0f;  // mean(g)
        pass_back(n, row, mean, along * rstd * rstd * rstd, level * rstd);
    }
}

static void weight_columns(const void *context, int64_t begin, int64_t end) {
    const Norm *n = context;
    for (int64_t first = begin; first < end; first += COLUMNS) {
        const int64_t width = end - first < COLUMNS ? end - first : COLUMNS;
        ColumnSums sums = {0};
        for (int64_t row = 0; row < n->rows; row++) {
            const float *restrict dy = n->dy + row * n->cols + first;
            const float *restrict x = n->x + row * n->x_stride + first;
            const float rstd = n->rstd_in[row], mean = n->mean_in ? n->mean_in[row] : 0.0f;
            for (int64_t col = 0; col < width; col++) {
                sums.part[col] += dy[col] * ((x[col] - mean) * rstd);
            }
            column_sums_fold(&sums, row, n->rows, width);
        }
        column_sums_store(&sums, width, n->accumulate, n->dw + first);
    }
}

static void norm_backward(const Norm *norm) {
    if (norm->dw) {
        parallel_columns(norm->rows, norm->cols, weight_columns, norm);
    }
    parallel_rows(norm->rows, norm->cols, backward_rows, norm);
}

void kernel_rmsnorm_backward(int64_t rows, int64_t cols, const float *dy, const float *x, const float *w,
                             const float *rstd, const float *residual, float *dx, float *dw, bool accumulate) {
    kernel_layernorm_backward(rows, cols, dy, x, w, NULL, rstd, residual, dx, dw, accumulate);
}

void kernel_layernorm_backward(int64_t rows, int64_t cols, const float *dy, const float *x, const float *w,
                               const float *mean, const float *rstd, const float *residual, float *dx, float *dw,
                               bool accumulate) {
    const Norm norm = {.rows = rows,
                       .cols = cols,
                       .x_stride = cols,
                       .dy = dy,
                       .x = x,
                       .w = w,
                       .mean_in = mean,
                       .rstd_in = rstd,
                       .residual = residual,
                       .out = dx,
                       .dw = dw,
                       .accumulate = accumulate};
    norm_backward(&norm);
}

void kernel_latent_norm(const KernelLatentNorm *norm, float eps, float *y, float *rstd) {
    const Norm work = {.rows = norm->rows,
                       .cols = norm->cols,
                       .x_stride = norm->x_stride,
                       .eps = eps,
                       .x = norm->x,
                       .w = norm->w,
                       .out = y,
                       .rstd_out = rstd};
    parallel_rows(norm->rows, norm->cols, rms_rows, &work);
}

void kernel_latent_norm_backward(const KernelLatentNorm *norm, const float *dy, const float *rstd, float *dx, float *dw,
                                 bool accumulate) {
    const Norm work = {.rows = norm->rows,
                       .cols = norm->cols,
                       .x_stride = norm->x_stride,
                       .dy = dy,
                       .x = norm->x,
                       .w = norm->w,
                       .rstd_in = rstd,
                       .out = dx,
                       .dw = dw,
                       .accumulate = accumulate};
    norm_backward(&work);
}
