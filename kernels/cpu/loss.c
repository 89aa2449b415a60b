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
    KernelLoss of;
    float *logits;  // written by the steps that turn them into capped ones or gradients
} Loss;

static void run(RangeBody *rows, const KernelLoss *loss, const float *logits) {
    const Loss work = {*loss, (float *)(uintptr_t)logits};
    parallel_rows(loss->rows, loss->cols, rows, &work);
}

static void cap_range(const void *context, int64_t begin, int64_t end) {
    const Loss *l = context;
    float *restrict x = l->logits;
    for (int64_t i = begin; i < end; i++) {
        x[i] = cap_softly(x[i], l->of.cap);
    }
}

void kernel_loss_cap(int64_t count, float cap, float *logits) {
    const Loss loss = {.of.cap = cap, .logits = logits};
    parallel_ranges(count, 16, PARALLEL_GRAIN, cap_range, &loss);
}

static void max_rows(const void *context, int64_t begin, int64_t end) {
    const Loss *work = context;
    const KernelLoss *l = &work->of;
    for (int64_t row = begin; row < end; row++) {
        const float *x = work->logits + row * l->cols;
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
        l->row_max[row] = largest;
    }
}

void kernel_loss_max(const KernelLoss *loss, const float *logits) {
    run(max_rows, loss, logits);
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
    const Loss *work = context;
    const KernelLoss *l = &work->of;
    for (int64_t row = begin; row < end; row++) {
        const float *x = work->logits + row * l->cols;
        const int64_t target = l->targets[row] - l->first;
        l->sum_exp[row] = (float)exponentials(x, l->cols, l->row_max[row]);
        l->target_logit[row] = target >= 0 && target < l->cols ? x[target] - l->row_max[row] : 0.0f;
    }
}

void kernel_loss_sum(const KernelLoss *loss, const float *logits) {
    run(sum_rows, loss, logits);
}

static void gradient_rows(const void *context, int64_t begin, int64_t end) {
    const Loss *work = context;
    const KernelLoss *l = &work->of;
    for (int64_t row = begin; row < end; row++) {
        float *restrict x = work->logits + row * l->cols;
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

static float loss_total(const KernelLoss *loss, double total) {
    for (int64_t row = 0; row < loss->rows; row++) {
        total += log((double)loss->sum_exp[row]) - (double)loss->target_logit[row];
    }
    return (float)total;
}

void kernel_loss_gradient(const KernelLoss *loss, float *logits, float *total, bool accumulate) {
    *total = loss_total(loss, accumulate ? (double)*total : 0.0);
    run(gradient_rows, loss, logits);
}

static void loss_rows(const void *context, int64_t begin, int64_t end) {
    const Loss *l = context;
    for (int64_t row = begin; row < end; row++) {
        if (l->of.cap > 0) {
            cap_range(l, row * l->of.cols, (row + 1) * l->of.cols);
        }
        max_rows(l, row, row + 1);
        sum_rows(l, row, row + 1);
        gradient_rows(l, row, row + 1);
    }
}

void kernel_loss(const KernelLoss *loss, float *logits, float *total, bool accumulate) {
    run(loss_rows, loss, logits);
    *total = loss_total(loss, accumulate ? (double)*total : 0.0);
}
