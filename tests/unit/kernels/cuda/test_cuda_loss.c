// Cross-entropy of kernels/cuda on the processor against kernels/cpu: whole, and by the ranks' vocabulary ranges.

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

static void check_equals_the_cpu(Draw *draw, LossCase *c, int64_t first, bool accumulate) {
    const KernelLoss loss = {c->rows, c->cols, first, c->targets.at, c->cpu_max, c->cpu_sum, c->cpu_target, 0.25f, 0};
    kernel_loss_max(&loss, c->x);
    kernel_loss_sum(&loss, c->x);
    kernel_loss_gradient(&loss, c->x, &c->cpu_total, accumulate);
    held_near(draw, &c->max, c->cpu_max, 0.0, "maxima");
    held_near(draw, &c->sum, c->cpu_sum, held_limit(KERNEL_FP32), "sums");
    held_near(draw, &c->target, c->cpu_target, held_limit(KERNEL_FP32), "target logits");
    held_near(draw, &c->total, &c->cpu_total, 2e-6, "the loss");
    held_near(draw, &c->logits, c->x, held_limit(c->store), "the gradient");
}

static void check_steps(Draw *draw, KernelStore store) {
    LossCase c = loss_case(draw, store);
    const bool accumulate = draw_below(draw, 2) == 1;
    const int64_t first = draw_below(draw, 3) * 5;  // of a range with others on both sides
    const KernelLoss loss = {c.rows, c.cols, first, c.targets.at, c.max.at, c.sum.at, c.target.at, 0.25f, 0};
    for (int64_t row = 0; row < c.rows; row++) {
        ((int32_t *)c.targets.at)[row] += (int32_t)draw_below(draw, 10);
    }
    c.cpu_total = ((float *)c.total.at)[0];
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_loss_max(&at, store, &loss, c.logits.at), 0);
    cr_assert_eq(kernel_cuda_loss_sum(&at, store, &loss, c.logits.at), 0);
    cr_assert_eq(kernel_cuda_loss_gradient(&at, store, &loss, c.logits.at, c.total.at, accumulate), 0);
    place_close(&at);
    check_equals_the_cpu(draw, &c, first, accumulate);
    loss_case_free(&c);
}

Test(kernel_cuda_loss, steps_equal_the_cpu_on_any_range_and_alignment) {
    each_case(40, check_steps);
}

static void check_whole(Draw *draw, KernelStore store) {
    LossCase c = loss_case(draw, store);
    const bool accumulate = draw_below(draw, 2) == 1;
    const KernelLoss loss = {c.rows, c.cols, 0, c.targets.at, c.max.at, c.sum.at, c.target.at, 0.25f, 0};
    c.cpu_total = ((float *)c.total.at)[0];
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_loss(&at, store, &loss, c.logits.at, c.total.at, accumulate), 0);
    place_close(&at);
    check_equals_the_cpu(draw, &c, 0, accumulate);
    loss_case_free(&c);
}

Test(kernel_cuda_loss, at_once_equals_the_steps_of_the_cpu) {
    each_case(40, check_whole);
}

Test(kernel_cuda_loss, masked_columns_have_no_share) {
    Draw draw = {3, 3};
    float x[3] = {-INFINITY, 1.0f, 2.0f};
    Held logits = held_of(&draw, KERNEL_FP32, x, 3), target = held_of(&draw, KERNEL_FP32, x, 1);
    float max, sum, target_logit, total;
    ((int32_t *)target.at)[0] = 2;
    const KernelLoss loss = {1, 3, 0, target.at, &max, &sum, &target_logit, 1.0f, 0};
    KernelCuda at = place_open(&draw, 0);
    cr_assert_eq(kernel_cuda_loss(&at, KERNEL_FP32, &loss, logits.at, &total, false), 0);
    place_close(&at);
    const double share = exp(-1.0) / (1.0 + exp(-1.0));
    cr_assert_eq(((float *)logits.at)[0], 0.0f);
    cr_assert_float_eq(((float *)logits.at)[1], share, 1e-6);
    cr_assert_float_eq(total, log(1.0 + exp(-1.0)), 1e-6);
    held_free(&logits), held_free(&target);
}
