// RMS normalisation (Zhang and Sennrich 2019). With g = dy * w and r = 1/rms: dx = r g - x r^3 mean(g x), dw = sum over
// rows of dy x r. The sum over rows is cut by columns, each thread adding all rows of its columns in order (two levels
// of partial sums, so that rounding grows with the square root of the rows).

#include "kernels/cpu/tier.h"

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"

#include <math.h>

typedef struct Norm {
    int64_t rows, cols;
    float eps;
    const float *dy, *x, *w, *rstd_in, *residual;
    float *out, *rstd_out, *dw;
    bool accumulate;
} Norm;

static void norm_rows(const void *context, int64_t begin, int64_t end) {
    const Norm *n = context;
    for (int64_t row = begin; row < end; row++) {
        const float *restrict x = n->x + row * n->cols;
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
    const Norm norm = {.rows = rows, .cols = cols, .eps = eps, .x = x, .w = w, .out = y, .rstd_out = rstd};
    parallel_rows(rows, cols, norm_rows, &norm);
}

static float dot_of_three(const float *a, const float *b, const float *c, int64_t count) {
    Lanes sum[4] = {{0}};
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        for (int part = 0; part < 2; part++) {
            const int64_t at = i + part * LANES;
            sum[part] += lanes_load(a + at) * lanes_load(b + at) * lanes_load(c + at);
        }
    }
    float rest = 0.0f;
    for (; i < count; i++) {
        rest += a[i] * b[i] * c[i];
    }
    return lanes_total(sum) + rest;
}

static void norm_backward_rows(const void *context, int64_t begin, int64_t end) {
    const Norm *n = context;
    for (int64_t row = begin; row < end; row++) {
        const float *dy = n->dy + row * n->cols;
        const float *x = n->x + row * n->cols;
        const float *w = n->w;
        float *dx = n->out + row * n->cols;
        const float rstd = n->rstd_in[row];
        const float pull = dot_of_three(dy, w, x, n->cols) / (float)n->cols * rstd * rstd * rstd;
        if (n->residual) {
            const float *residual = n->residual + row * n->cols;
#pragma GCC ivdep  // dx may be residual itself
            for (int64_t col = 0; col < n->cols; col++) {
                dx[col] = residual[col] + (dy[col] * w[col] * rstd - x[col] * pull);
            }
        } else {
#pragma GCC ivdep
            for (int64_t col = 0; col < n->cols; col++) {
                dx[col] = dy[col] * w[col] * rstd - x[col] * pull;
            }
        }
    }
}

enum { DW_COLS = 256, DW_ROWS = 64 };  // columns of one partial sum (1 KB), rows before it is folded into the total

static void norm_weight_columns(const void *context, int64_t begin, int64_t end) {
    const Norm *n = context;
    for (int64_t first = begin; first < end; first += DW_COLS) {
        const int64_t width = end - first < DW_COLS ? end - first : DW_COLS;
        float total[DW_COLS] = {0};
        for (int64_t row0 = 0; row0 < n->rows; row0 += DW_ROWS) {
            const int64_t row1 = row0 + DW_ROWS < n->rows ? row0 + DW_ROWS : n->rows;
            float part[DW_COLS] = {0};
            for (int64_t row = row0; row < row1; row++) {
                const float *restrict dy = n->dy + row * n->cols + first;
                const float *restrict x = n->x + row * n->cols + first;
                const float rstd = n->rstd_in[row];
                for (int64_t col = 0; col < width; col++) {
                    part[col] += dy[col] * (x[col] * rstd);
                }
            }
            for (int64_t col = 0; col < width; col++) {
                total[col] += part[col];
            }
        }
        for (int64_t col = 0; col < width; col++) {
            n->dw[first + col] = total[col] + (n->accumulate ? n->dw[first + col] : 0.0f);
        }
    }
}

void kernel_rmsnorm_backward(int64_t rows, int64_t cols, const float *dy, const float *x, const float *w,
                             const float *rstd, const float *residual, float *dx, float *dw, bool accumulate) {
    const Norm norm = {.rows = rows,
                       .cols = cols,
                       .dy = dy,
                       .x = x,
                       .w = w,
                       .rstd_in = rstd,
                       .residual = residual,
                       .out = dx,
                       .dw = dw,
                       .accumulate = accumulate};
    parallel_ranges(cols, 16, PARALLEL_GRAIN / (rows > 0 ? rows : 1) + 16, norm_weight_columns, &norm);
    parallel_rows(rows, cols, norm_backward_rows, &norm);
}
