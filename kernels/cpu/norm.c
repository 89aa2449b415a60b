// RMS norm (Zhang and Sennrich 2019) and layer norm (Ba et al. 2016). With x^ = (x - mean) r, r = 1 / rms or
// 1 / deviation, and g = dy * w:
//   RMS    dx = r g - x r^3 mean(g x)
//   layer  dx = r (g - mean(g) - x^ mean(g x^))
// and dw = sum over rows of dy x^. The variance is computed from x - mean in a second pass, without cancellation.

#include "kernels/cpu/columns.h"
#include "kernels/cpu/lanes.h"
#include "kernels/kernels.h"

#include <math.h>

static int64_t stride_of(int64_t x_stride, int64_t cols) {
    return x_stride > 0 ? x_stride : cols;
}

static void rms_row(const KernelNorm *n, int64_t row, const float *restrict x) {
    const float *restrict w = n->w;
    float *restrict y = (float *)n->y + row * n->cols;
    const float rstd = 1.0f / sqrtf(lanes_dot(x, x, n->cols) / (float)n->cols + n->eps);
    for (int64_t col = 0; col < n->cols; col++) {
        y[col] = x[col] * rstd * w[col];
    }
    n->rstd[row] = rstd;
}

static void layer_row(const KernelNorm *n, int64_t row, const float *restrict x) {
    const float *restrict w = n->w;
    float *restrict y = (float *)n->y + row * n->cols;
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
    n->mean[row] = mean;
    n->rstd[row] = rstd;
}

static void norm_rows(const void *context, int64_t begin, int64_t end) {
    const KernelNorm *n = context;
    const int64_t cols = n->cols, stride = stride_of(n->x_stride, cols);
    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)n->x + row * stride;
        if (n->add) {  // normalised while it is in cache
            const float *more = (const float *)n->add + row * cols;
            float *sum = (float *)n->added + row * cols;
#pragma GCC ivdep  // sum may be x or more itself
            for (int64_t col = 0; col < cols; col++) {
                sum[col] = x[col] + more[col];
            }
            x = sum;
        }
        (n->mean ? layer_row : rms_row)(n, row, x);
    }
}

void kernel_norm(const KernelNorm *norm) {
    parallel_rows(norm->rows, norm->cols, norm_rows, norm);
}

// dx = (residual) + r g - (x - mean) pull - drop.
static void pass_back(const KernelNormBackward *n, int64_t row, float mean, float pull, float drop) {
    const int64_t stride = stride_of(n->x_stride, n->cols);
    const float *dy = (const float *)n->dy + row * n->cols, *x = (const float *)n->x + row * stride, *w = n->w;
    float *dx = (float *)n->dx + row * stride;
    const float rstd = n->rstd[row];
    if (n->residual) {
        const float *residual = (const float *)n->residual + row * n->cols;
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
    const KernelNormBackward *n = context;
    const float cols = (float)n->cols;
    for (int64_t row = begin; row < end; row++) {
        const float *dy = (const float *)n->dy + row * n->cols;
        const float *x = (const float *)n->x + row * stride_of(n->x_stride, n->cols);
        const float rstd = n->rstd[row];
        const float mean = n->mean ? n->mean[row] : 0.0f;
        const float along = lanes_dot_of_three(dy, n->w, x, mean, n->cols) / cols;  // mean(g (x - mean))
        const float level = n->mean ? lanes_dot(dy, n->w, n->cols) / cols : 0.0f;   // mean(g)
        pass_back(n, row, mean, along * rstd * rstd * rstd, level * rstd);
    }
}

static void weight_columns(const void *context, int64_t begin, int64_t end) {
    const KernelNormBackward *n = context;
    for (int64_t first = begin; first < end; first += COLUMNS) {
        const int64_t width = end - first < COLUMNS ? end - first : COLUMNS;
        ColumnSums sums = {0};
        for (int64_t row = 0; row < n->rows; row++) {
            const float *restrict dy = (const float *)n->dy + row * n->cols + first;
            const float *restrict x = (const float *)n->x + row * stride_of(n->x_stride, n->cols) + first;
            const float rstd = n->rstd[row], mean = n->mean ? n->mean[row] : 0.0f;
            for (int64_t col = 0; col < width; col++) {
                sums.part[col] += dy[col] * ((x[col] - mean) * rstd);
            }
            column_sums_fold(&sums, row, n->rows, width);
        }
        column_sums_store(&sums, width, n->accumulate, (float *)n->dw + first);
    }
}

void kernel_norm_backward(const KernelNormBackward *norm) {
    if (norm->dw) {
        parallel_columns(norm->rows, norm->cols, weight_columns, norm);
    }
    parallel_rows(norm->rows, norm->cols, backward_rows, norm);
}
