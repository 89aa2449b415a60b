// Cross-entropy over a vocabulary split between ranks: the row maximum, then the sum of exp(logit - max) along with the
// target's own logit - max, then the gradient in place and the loss log(sum) - (target - max). The caller all-reduces
// between the steps. Exponentials are summed in float over 512 columns, and those sums in double.

#include "kernels/cpu/cap.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"

#include <math.h>

enum { CHUNK = 512 };

typedef struct Loss {
    int64_t cols, first;
    const float *logits;
    const int32_t *targets;
    const float *row_max, *sum_exp;
    float gradient, cap;
    float *out, *target_logit, *dlogits;
} Loss;

static void cap_range(const void *context, int64_t begin, int64_t end) {
    const Loss *l = context;
    float *restrict x = l->dlogits;
    for (int64_t i = begin; i < end; i++) {
        x[i] = cap_softly(x[i], l->cap);
    }
}

void kernel_loss_cap(int64_t count, float cap, float *logits) {
    const Loss loss = {.cap = cap, .dlogits = logits};
    parallel_ranges(count, 16, PARALLEL_GRAIN, cap_range, &loss);
}

static void max_rows(const void *context, int64_t begin, int64_t end) {
    const Loss *l = context;
    for (int64_t row = begin; row < end; row++) {
        const float *x = l->logits + row * l->cols;
        Lanes best[2] = {(Lanes){0} - INFINITY, (Lanes){0} - INFINITY};
        int64_t col = 0;
        for (; col + 2 * LANES <= l->cols; col += 2 * LANES) {
            best[0] = lanes_max(lanes_load(x + col), best[0]);
            best[1] = lanes_max(lanes_load(x + col + LANES), best[1]);
        }
        best[0] = lanes_max(best[0], best[1]);
        float largest = -INFINITY;
        for (int lane = 0; lane < LANES; lane++) {
            largest = best[0][lane] > largest ? best[0][lane] : largest;
        }
        for (; col < l->cols; col++) {
            largest = x[col] > largest ? x[col] : largest;
        }
        l->out[row] = largest;
    }
}

void kernel_loss_max(int64_t rows, int64_t cols, const float *logits, float *row_max) {
    const Loss loss = {.cols = cols, .logits = logits, .out = row_max};
    parallel_rows(rows, cols, max_rows, &loss);
}

static double exponentials(const float *x, int64_t count, float shift) {
    double sum = 0.0;
    for (int64_t first = 0; first < count; first += CHUNK) {
        const int64_t width = count - first < CHUNK ? count - first : CHUNK;
        float part[CHUNK];
        for (int64_t col = 0; col < width; col++) {
            part[col] = exp_fast(x[first + col] - shift);
        }
        sum += (double)lanes_sum(part, width);
    }
    return sum;
}

static void sum_rows(const void *context, int64_t begin, int64_t end) {
    const Loss *l = context;
    for (int64_t row = begin; row < end; row++) {
        const float *x = l->logits + row * l->cols;
        const int64_t target = l->targets[row] - l->first;
        l->out[row] = (float)exponentials(x, l->cols, l->row_max[row]);
        l->target_logit[row] = target >= 0 && target < l->cols ? x[target] - l->row_max[row] : 0.0f;
    }
}

void kernel_loss_sum(int64_t rows, int64_t cols, int64_t first, const float *logits, const int32_t *targets,
                     const float *row_max, float *sum_exp, float *target_logit) {
    const Loss loss = {.cols = cols,
                       .first = first,
                       .logits = logits,
                       .targets = targets,
                       .row_max = row_max,
                       .out = sum_exp,
                       .target_logit = target_logit};
    parallel_rows(rows, cols, sum_rows, &loss);
}

static void gradient_rows(const void *context, int64_t begin, int64_t end) {
    const Loss *l = context;
    for (int64_t row = begin; row < end; row++) {
        float *restrict x = l->dlogits + row * l->cols;
        const float shift = l->row_max[row], factor = l->gradient / l->sum_exp[row];
        const int64_t target = l->targets[row] - l->first;
        const bool own = target >= 0 && target < l->cols;
        if (l->cap > 0) {
            const float over = 1.0f / l->cap, of_target = own ? l->gradient * cap_slope(x[target], over) : 0.0f;
            for (int64_t col = 0; col < l->cols; col++) {
                x[col] = exp_fast(x[col] - shift) * factor * cap_slope(x[col], over);
            }
            x[own ? target : 0] -= of_target;
            continue;
        }
        for (int64_t col = 0; col < l->cols; col++) {
            x[col] = exp_fast(x[col] - shift) * factor;
        }
        if (own) {
            x[target] -= l->gradient;
        }
    }
}

static float loss_total(int64_t rows, const float *sum_exp, const float *target_logit, double total) {
    for (int64_t row = 0; row < rows; row++) {
        total += log((double)sum_exp[row]) - (double)target_logit[row];
    }
    return (float)total;
}

void kernel_loss_gradient(int64_t rows, int64_t cols, int64_t first, float *logits, const int32_t *targets,
                          const float *row_max, const float *sum_exp, const float *target_logit, float gradient,
                          float *loss, bool accumulate, float cap) {
    *loss = loss_total(rows, sum_exp, target_logit, accumulate ? (double)*loss : 0.0);
    const Loss work = {.cols = cols,
                       .first = first,
                       .targets = targets,
                       .row_max = row_max,
                       .sum_exp = sum_exp,
                       .gradient = gradient,
                       .cap = cap,
                       .dlogits = logits};
    parallel_rows(rows, cols, gradient_rows, &work);
}

typedef struct WholeLoss {
    Loss max, sum, gradient;
} WholeLoss;

static void loss_rows(const void *context, int64_t begin, int64_t end) {
    const WholeLoss *steps = context;
    for (int64_t row = begin; row < end; row++) {
        if (steps->gradient.cap > 0) {
            cap_range(&steps->gradient, row * steps->gradient.cols, (row + 1) * steps->gradient.cols);
        }
        max_rows(&steps->max, row, row + 1);
        sum_rows(&steps->sum, row, row + 1);
        gradient_rows(&steps->gradient, row, row + 1);
    }
}

void kernel_loss(const KernelLoss *loss, float *logits, float *total, bool accumulate) {
    const Loss read = {
        .cols = loss->cols, .logits = logits, .targets = loss->targets, .target_logit = loss->target_logit};
    WholeLoss steps = {read, read, read};
    steps.max.out = loss->row_max;
    steps.sum.row_max = steps.gradient.row_max = loss->row_max;
    steps.sum.out = loss->sum_exp;
    steps.gradient.sum_exp = loss->sum_exp;
    steps.gradient.gradient = loss->gradient;
    steps.gradient.dlogits = logits;
    steps.gradient.cap = loss->cap;
    parallel_rows(loss->rows, loss->cols, loss_rows, &steps);
    *total = loss_total(loss->rows, loss->sum_exp, loss->target_logit, accumulate ? (double)*total : 0.0);
}
