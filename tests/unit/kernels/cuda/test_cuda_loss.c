// Cross-entropy of kernels/cuda on the processor against kernels/cpu: whole, by ranges of ranks, by chunks.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/kernels/check.h"
#include "tests/unit/kernels/cuda/held.h"

typedef struct LossCase {
    int64_t rows, cols;
    KernelStore store;
    Held logits, targets, max, sum, target, total;
    float *x;  // the logits
    float *cpu_max, *cpu_sum, *cpu_target;
    float cpu_total;
} LossCase;

static LossCase loss_case(Draw *draw, KernelStore store) {
    LossCase c = {.rows = draw_rows(draw), .cols = draw_cols(draw), .store = store};
    float *drawn = check_floats(c.rows * c.cols, (uint64_t)draw_below(draw, INT32_MAX));
    for (int64_t i = 0; i < c.rows * c.cols; i++) {
        drawn[i] *= 20.0f;
    }
    c.logits = held_of(draw, store, drawn, c.rows * c.cols);
    c.x = held_floats(&c.logits);
    c.targets = held_draw(draw, KERNEL_FP32, c.rows);
    c.max = held_draw(draw, KERNEL_FP32, c.rows), c.sum = held_draw(draw, KERNEL_FP32, c.rows);
    c.target = held_draw(draw, KERNEL_FP32, c.rows), c.total = held_draw(draw, KERNEL_FP32, 1);
    for (int64_t row = 0; row < c.rows; row++) {
        ((int32_t *)c.targets.at)[row] = (int32_t)draw_below(draw, c.cols);
    }
    c.cpu_max = check_zeros(c.rows), c.cpu_sum = check_zeros(c.rows), c.cpu_target = check_zeros(c.rows);
    free(drawn);
    return c;
}

static void loss_case_free(LossCase *c) {
    held_free(&c->logits), held_free(&c->targets), held_free(&c->max), held_free(&c->sum), held_free(&c->target);
    held_free(&c->total), free(c->x), free(c->cpu_max), free(c->cpu_sum), free(c->cpu_target);
}

static KernelCudaLoss range_of(const LossCase *c, int64_t first, int64_t cols) {
    return (KernelCudaLoss){c->rows, cols, first, c->targets.at, c->max.at, c->sum.at, c->target.at};
}

static void check_steps(Draw *draw, KernelStore store) {
    LossCase c = loss_case(draw, store);
    const bool accumulate = draw_below(draw, 2) == 1, in_one = draw_below(draw, 2) == 1;
    const int64_t first = draw_below(draw, 3) * 5;  // of a range that others continue on both sides
    KernelCudaLoss loss = range_of(&c, first, c.cols);
    for (int64_t row = 0; row < c.rows; row++) {
        ((int32_t *)c.targets.at)[row] += (int32_t)draw_below(draw, 10);
    }
    c.cpu_total = ((float *)c.total.at)[0];
    KernelCuda at = place_open(draw, 0);
    if (in_one) {
        cr_assert_eq(kernel_cuda_loss_max_sum(&at, store, &loss, c.logits.at, 0), 0);
    } else {
        cr_assert_eq(kernel_cuda_loss_max(&at, store, &loss, c.logits.at), 0);
        cr_assert_eq(kernel_cuda_loss_sum(&at, store, &loss, c.logits.at), 0);
    }
    cr_assert_eq(kernel_cuda_loss_gradient(&at, store, &loss, c.logits.at, 0.25f, c.total.at, accumulate), 0);
    place_close(&at);
    kernel_loss_max(c.rows, c.cols, c.x, c.cpu_max);
    kernel_loss_sum(c.rows, c.cols, first, c.x, c.targets.at, c.cpu_max, c.cpu_sum, c.cpu_target);
    kernel_loss_gradient(c.rows, c.cols, first, c.x, c.targets.at, c.cpu_max, c.cpu_sum, c.cpu_target, 0.25f,
                         &c.cpu_total, accumulate);
    held_near(draw, &c.max, c.cpu_max, 0.0, "maxima");
    held_near(draw, &c.sum, c.cpu_sum, held_limit(KERNEL_FP32), "sums");
    held_near(draw, &c.target, c.cpu_target, held_limit(KERNEL_FP32), "target logits");
    held_near(draw, &c.total, &c.cpu_total, 2e-6, "the loss");
    held_near(draw, &c.logits, c.x, held_limit(store), "the gradient");
    loss_case_free(&c);
}

Test(kernel_cuda_loss, steps_equal_the_cpu_on_any_range_and_alignment) {
    each_case(40, check_steps);
}

// The columns [first, first + cols) of all rows, packed.
static Held columns_of(Draw *draw, const LossCase *c, int64_t first, int64_t cols) {
    float *part = check_zeros(c->rows * cols);
    kernel_copy_rows(c->rows, cols, c->cols, cols, c->x + first, part);
    const Held held = held_of(draw, c->store, part, c->rows * cols);
    free(part);
    return held;
}

static void check_chunks(Draw *draw, KernelStore store) {
    LossCase c = loss_case(draw, store);
    const int64_t chunk = 1 + draw_below(draw, c.cols), chunks = (c.cols + chunk - 1) / chunk;
    Held *part = calloc((size_t)chunks, sizeof *part);
    KernelCuda at = place_open(draw, 0);
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t cols = c.cols - i * chunk < chunk ? c.cols - i * chunk : chunk;
        const KernelCudaLoss loss = range_of(&c, i * chunk, cols);
        part[i] = columns_of(draw, &c, i * chunk, cols);
        cr_assert_eq(kernel_cuda_loss_max_sum(&at, store, &loss, part[i].at, i * chunk), 0);
    }
    for (int64_t i = 0; i < chunks; i++) {
        const KernelCudaLoss loss = range_of(&c, i * chunk, part[i].count / c.rows);
        cr_assert_eq(kernel_cuda_loss_gradient(&at, store, &loss, part[i].at, 1.0f, i == 0 ? c.total.at : NULL, false),
                     0);
    }
    place_close(&at);
    kernel_loss_max(c.rows, c.cols, c.x, c.cpu_max);
    kernel_loss_sum(c.rows, c.cols, 0, c.x, c.targets.at, c.cpu_max, c.cpu_sum, c.cpu_target);
    kernel_loss_gradient(c.rows, c.cols, 0, c.x, c.targets.at, c.cpu_max, c.cpu_sum, c.cpu_target, 1.0f, &c.cpu_total,
                         false);
    held_near(draw, &c.sum, c.cpu_sum, held_limit(KERNEL_FP32), "sums");
    held_near(draw, &c.target, c.cpu_target, held_limit(KERNEL_FP32), "target logits");
    if (c.cols > 1) {  // the loss of one column is nothing
        held_near(draw, &c.total, &c.cpu_total, 1e-5, "the loss");
    }
    for (int64_t i = 0; i < chunks; i++) {
        Held want = columns_of(draw, &c, i * chunk, part[i].count / c.rows);
        float *wantf = check_zeros(want.count), *got = held_floats(&part[i]);
        kernel_copy_rows(c.rows, want.count / c.rows, c.cols, want.count / c.rows, c.x + i * chunk, wantf);
        for (int64_t k = 0; k < want.count; k++) {
            cr_assert_float_eq(got[k], wantf[k], held_limit(store), "seed %d", (int)draw->seed);
        }
        free(wantf), free(got), held_free(&want), held_free(&part[i]);
    }
    free(part);
    loss_case_free(&c);
}

Test(kernel_cuda_loss, chunks_of_the_vocabulary_give_the_whole) {
    each_case(12, check_chunks);
}

Test(kernel_cuda_loss, masked_columns_have_no_share) {
    Draw draw = {3, 3};
    float x[3] = {-INFINITY, 1.0f, 2.0f};
    Held logits = held_of(&draw, KERNEL_FP32, x, 3), target = held_of(&draw, KERNEL_FP32, x, 1);
    float max, sum, target_logit, total;
    ((int32_t *)target.at)[0] = 2;
    const KernelCudaLoss loss = {1, 3, 0, target.at, &max, &sum, &target_logit};
    KernelCuda at = place_open(&draw, 0);
    cr_assert_eq(kernel_cuda_loss_max_sum(&at, KERNEL_FP32, &loss, logits.at, 0), 0);
    cr_assert_eq(kernel_cuda_loss_gradient(&at, KERNEL_FP32, &loss, logits.at, 1.0f, &total, false), 0);
    place_close(&at);
    const double share = exp(-1.0) / (1.0 + exp(-1.0));
    cr_assert_eq(((float *)logits.at)[0], 0.0f);
    cr_assert_float_eq(((float *)logits.at)[1], share, 1e-6);
    cr_assert_float_eq(total, log(1.0 + exp(-1.0)), 1e-6);
    held_free(&logits), held_free(&target);
}
