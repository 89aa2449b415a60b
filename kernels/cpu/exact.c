// Sums over features, tokens and vocabulary as integers on a fixed grid (kernels/exact.h). Terms are computed in double
// from fp32 inputs, each independently, so only the set of terms matters. Compiled without contraction.

#include "kernels/exact.h"

#include <string.h>

#include "kernels/cpu/parallel.h"

void exact_round(int64_t count, const ExactSum *sums, float *x) {
    for (int64_t i = 0; i < count; i++) {
        x[i] = (float)exact_value(sums[i]);
    }
}

void exact_take(int64_t count, float *x, ExactSum *sums) {
    for (int64_t i = 0; i < count; i++) {
        sums[i] = exact_of((double)x[i]);
    }
    exact_round(count, sums, x);
}

void exact_accumulate(int64_t count, const ExactSum *more, ExactSum *sums, float *x) {
    for (int64_t i = 0; i < count; i++) {
        sums[i] = exact_plus(sums[i], more[i]);
    }
    exact_round(count, sums, x);
}

static void begin(int64_t count, bool accumulate, ExactSum *sums) {
    if (!accumulate) {
        memset(sums, 0, (size_t)count * sizeof *sums);
    }
}

typedef struct Gemm {
    int64_t n, k, a_row, a_step, b_col, b_step;
    const float *a, *b;
    ExactSum *sums;
    float *c;
} Gemm;

// Of the magnitudes; what is out of range or no number is infinite.
static double largest(const float *x, int64_t count, int64_t step) {
    double most = 0;
    bool lost = false;
    for (int64_t i = 0; i < count; i++) {
        const double value = fabs((double)x[i * step]);
        lost |= !(value < EXACT_LIMIT);
        most = value > most ? value : most;
    }
    return lost ? INFINITY : most;
}

enum { COLUMNS = 4 };  // whose sums a row's numbers are read for together

static bool sums_fit(const ExactSum *sums) {
    bool fit = true;
    for (int c = 0; c < COLUMNS; c++) {
        fit &= sums[c].high < EXACT_LOST_BEYOND / 2 && sums[c].high > -EXACT_LOST_BEYOND / 2;
    }
    return fit;
}

// Where no sum of some of the terms can be lost: none is looked at on the way.
static void add_products(const Gemm *g, const float *x, const float *y, ExactSum *sums) {
    ExactSum sum[COLUMNS];
    memcpy(sum, sums, sizeof sum);
    for (int64_t l = 0; l < g->k; l++) {
        const double left = (double)x[l * g->a_step];
        for (int c = 0; c < COLUMNS; c++) {
            const double term = left * (double)y[c * g->b_col + l * g->b_step];
            const int64_t high = (int64_t)(term * 0x1p20);
            sum[c].high += high;
            sum[c].low += (int64_t)((term - (double)high * 0x1p-20) * 0x1p62);
        }
    }
    memcpy(sums, sum, sizeof sum);
}

static void gemm_rows(const void *context, int64_t first, int64_t end) {
    const Gemm *g = context;
    const double b_most = largest(g->b, g->n * g->k, 1);
    for (int64_t i = first; i < end; i++) {
        const float *x = g->a + i * g->a_row;
        ExactSum *sums = g->sums + i * g->n;
        const bool terms_fit = largest(x, g->k, g->a_step) * b_most * (double)g->k < EXACT_LIMIT / 4;
        int64_t j = 0;
        while (terms_fit && j + COLUMNS <= g->n && sums_fit(sums + j)) {
            add_products(g, x, g->b + j * g->b_col, sums + j);
            j += COLUMNS;
        }
        for (; j < g->n; j++) {
            const float *y = g->b + j * g->b_col;
            ExactSum sum = sums[j];
            for (int64_t l = 0; l < g->k; l++) {
                exact_add(&sum, (double)x[l * g->a_step] * (double)y[l * g->b_step]);
            }
            sums[j] = sum;
        }
        exact_round(g->n, sums, g->c + i * g->n);
    }
}

void exact_gemm(const bool trans[2], const int64_t mnk[3], const float *a, const float *b, bool accumulate,
                ExactSum *sums, float *c) {
    const int64_t m = mnk[0], n = mnk[1], k = mnk[2];
    const Gemm gemm = {.n = n,
                       .k = k,
                       .a_row = trans[0] ? 1 : k,
                       .a_step = trans[0] ? m : 1,
                       .b_col = trans[1] ? k : 1,
                       .b_step = trans[1] ? 1 : n,
                       .a = a,
                       .b = b,
                       .sums = sums,
                       .c = c};
    begin(m * n, accumulate, sums);
    parallel_rows(m, n * k, gemm_rows, &gemm);
}

void exact_embed_backward(const KernelEmbed *shape, const int32_t *entries, const float *dx, bool accumulate,
                          ExactSum *sums, float *dtable) {
    const int64_t cols = shape->cols;
    begin(shape->range * cols, accumulate, sums);
    for (int64_t row = 0; row < shape->rows; row++) {
        const int64_t entry = entries[row] - shape->first;
        for (int64_t col = 0; entry >= 0 && entry < shape->range && col < cols; col++) {
            exact_add(&sums[entry * cols + col], (double)shape->scale * (double)dx[row * cols + col]);
        }
    }
    exact_round(shape->range * cols, sums, dtable);
}

void exact_rmsnorm_weight(const ExactNorm *norm, bool accumulate, ExactSum *sums, float *dw) {
    begin(norm->cols, accumulate, sums);
    for (int64_t row = 0; row < norm->rows; row++) {
        const float *dy = norm->dy + row * norm->cols, *x = norm->x + row * norm->cols;
        for (int64_t col = 0; col < norm->cols; col++) {
            exact_add(&sums[col], (double)dy[col] * (double)x[col] * (double)norm->rstd[row]);
        }
    }
    exact_round(norm->cols, sums, dw);
}

void exact_square_sum(int64_t count, const float *x, bool accumulate, ExactSum *sums, float *sum) {
    begin(1, accumulate, sums);
    for (int64_t i = 0; i < count; i++) {
        exact_add(sums, (double)x[i] * (double)x[i]);
    }
    exact_round(1, sums, sum);
}

// ---------------------------------------------------------------------------------------------- the loss

void exact_loss_sum(const KernelLoss *loss, const float *logits, ExactSum *sums) {
    begin(2 * loss->rows, false, sums);
    for (int64_t row = 0; row < loss->rows; row++) {
        const float *x = logits + row * loss->cols;
        const double shift = (double)loss->row_max[row];
        const int64_t target = loss->targets[row] - loss->first;
        for (int64_t col = 0; col < loss->cols; col++) {
            exact_add(&sums[row], exp((double)x[col] - shift));
        }
        if (target >= 0 && target < loss->cols) {
            exact_add(&sums[loss->rows + row], (double)x[target] - shift);
        }
    }
    exact_round(2 * loss->rows, sums, loss->sum_exp);
}

void exact_loss_gradient(const KernelLoss *loss, float *logits) {
    for (int64_t row = 0; row < loss->rows; row++) {
        float *x = logits + row * loss->cols;
        const double shift = (double)loss->row_max[row], sum = (double)loss->sum_exp[row];
        const int64_t target = loss->targets[row] - loss->first;
        for (int64_t col = 0; col < loss->cols; col++) {
            const double hit = col == target ? 1.0 : 0.0;
            x[col] = (float)((double)loss->gradient * (exp((double)x[col] - shift) / sum - hit));
        }
    }
}

void exact_loss(const KernelLoss *loss, bool accumulate, ExactSum *sums, float *total) {
    begin(1, accumulate, sums);
    for (int64_t row = 0; row < loss->rows; row++) {
        exact_add(sums, log((double)loss->sum_exp[row]) - (double)loss->target_logit[row]);
    }
    exact_round(1, sums, total);
}
