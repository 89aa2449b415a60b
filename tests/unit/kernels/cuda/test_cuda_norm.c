// Norms of kernels/cuda on the processor against kernels/cpu, with random shapes.

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/unit/kernels/check.h"
#include "tests/unit/kernels/cuda/held.h"

static const float EPS = 1e-5f;

typedef struct NormCase {
    int64_t rows, cols;
    bool layer, bias;
    Held x, w, b;
    float *x_floats, *w_floats, *b_floats;
    float *y, *mean, *rstd;  // of the CPU
} NormCase;

static NormCase norm_case(Draw *draw, KernelStore store) {
    NormCase c = {.rows = draw_rows(draw), .cols = draw_cols(draw), .layer = draw_below(draw, 2) == 1};
    c.bias = c.layer && draw_below(draw, 2) == 1;
    c.x = held_draw(draw, store, c.rows * c.cols);
    c.w = held_draw(draw, store, c.cols);
    c.b = held_draw(draw, store, c.cols);
    c.x_floats = held_floats(&c.x), c.w_floats = held_floats(&c.w), c.b_floats = held_floats(&c.b);
    c.y = check_zeros(c.rows * c.cols), c.mean = check_zeros(c.rows), c.rstd = check_zeros(c.rows);
    return c;
}

static void norm_case_run(NormCase *c) {
    if (c->layer) {
        kernel_layernorm(c->rows, c->cols, EPS, c->x_floats, c->w_floats, c->bias ? c->b_floats : NULL, c->y, c->mean,
                         c->rstd);
    } else {
        kernel_rmsnorm(c->rows, c->cols, EPS, c->x_floats, c->w_floats, c->y, c->rstd);
    }
}

static void norm_case_free(NormCase *c) {
    held_free(&c->x), held_free(&c->w), held_free(&c->b);
    free(c->x_floats), free(c->w_floats), free(c->b_floats), free(c->y), free(c->mean), free(c->rstd);
}

// With fewer than four columns the deviation may be rounding error alone.
static double loose(const NormCase *c, KernelStore store) {
    return c->layer && c->cols < 4 ? 0.1 : held_limit(store);
}

static void check_forward(Draw *draw, KernelStore store) {
    NormCase c = norm_case(draw, store);
    const bool adds = draw_below(draw, 2) == 1;
    Held more = held_draw(draw, store, c.x.count), y = held_copy(&c.x), added = held_copy(&c.x);
    Held mean = held_draw(draw, KERNEL_FP32, c.rows), rstd = held_draw(draw, KERNEL_FP32, c.rows);
    if (adds) {
        float *more_floats = held_floats(&more);
        kernel_add(c.x.count, c.x_floats, more_floats, c.x_floats);
        Held sum = held_of(draw, store, c.x_floats, c.x.count);  // rounds
        free(c.x_floats), free(more_floats);
        c.x_floats = held_floats(&sum);
        held_free(&sum);
    }
    norm_case_run(&c);
    KernelCuda at = place_open(draw, 0);
    const KernelNorm norm = {.rows = c.rows,
                             .cols = c.cols,
                             .eps = EPS,
                             .x = c.x.at,
                             .add = adds ? more.at : NULL,
                             .w = c.w.at,
                             .bias = c.bias ? c.b.at : NULL,
                             .added = adds ? added.at : NULL,
                             .y = y.at,
                             .mean = c.layer ? mean.at : NULL,
                             .rstd = rstd.at};
    cr_assert_eq(kernel_cuda_norm(&at, store, &norm), 0);
    place_close(&at);
    held_near(draw, &y, c.y, loose(&c, store), "y");
    held_near(draw, &rstd, c.rstd, loose(&c, KERNEL_FP32), "rstd");
    held_near(draw, &added, c.x_floats, 0.0, "the sum");
    if (c.layer) {
        held_near(draw, &mean, c.mean, 1e-4, "mean");
    }
    held_free(&more), held_free(&y), held_free(&added), held_free(&mean), held_free(&rstd);
    norm_case_free(&c);
}

Test(kernel_cuda_norm, equals_the_cpu_with_and_without_an_addition_in_front) {
    each_case(40, check_forward);
}

typedef struct BackRun {
    Held dx, dw;
} BackRun;

static BackRun run_backward(Draw *draw, const NormCase *c, const Held *dy, const Held *residual, const Held *dw,
                            bool accumulate) {
    Held mean = held_of(draw, KERNEL_FP32, c->mean, c->rows), rstd = held_of(draw, KERNEL_FP32, c->rstd, c->rows);
    BackRun run = {residual ? held_copy(residual) : held_copy(dy), held_copy(dw)};
    KernelNormBackward back = {.rows = c->rows,
                               .cols = c->cols,
                               .dy = dy->at,
                               .x = c->x.at,
                               .w = c->w.at,
                               .mean = c->layer ? mean.at : NULL,
                               .rstd = rstd.at,
                               .residual = residual ? run.dx.at : NULL,  // in place
                               .dx = run.dx.at,
                               .dw = run.dw.at,
                               .accumulate = accumulate};
    const KernelCuda device = {.processors = 2};
    KernelCuda at = place_open(draw, kernel_cuda_norm_backward_workspace(&device, &back));
    at.processors = device.processors;
    cr_assert_eq(kernel_cuda_norm_backward(&at, dy->store, dw->store, &back), 0);
    place_close(&at);
    held_free(&mean), held_free(&rstd);
    return run;
}

static void check_backward(Draw *draw, KernelStore store) {
    NormCase c = norm_case(draw, store);
    const bool has_residual = draw_below(draw, 2) == 1, accumulate = draw_below(draw, 2) == 1;
    const KernelStore sums = store == KERNEL_FP32 || draw_below(draw, 2) == 1 ? KERNEL_FP32 : KERNEL_BF16;
    Held dy = held_draw(draw, store, c.x.count), residual = held_draw(draw, store, c.x.count);
    Held dw = held_draw(draw, sums, c.cols);
    float *dy_floats = held_floats(&dy), *dx = held_floats(&residual), *dw_floats = held_floats(&dw);
    norm_case_run(&c);
    kernel_layernorm_backward(c.rows, c.cols, dy_floats, c.x_floats, c.w_floats, c.layer ? c.mean : NULL, c.rstd,
                              has_residual ? dx : NULL, dx, dw_floats, accumulate);
    BackRun one = run_backward(draw, &c, &dy, has_residual ? &residual : NULL, &dw, accumulate);
    BackRun two = run_backward(draw, &c, &dy, has_residual ? &residual : NULL, &dw, accumulate);
    if (c.cols >= 4) {  // with fewer the gradient cancels
        held_near(draw, &one.dx, dx, 2 * held_limit(store), "dx");
        held_near(draw, &one.dw, dw_floats, 2 * held_limit(sums), "dw");
    }
    cr_assert(held_equal(&one.dx, &two.dx) && held_equal(&one.dw, &two.dw), "seed %d: two orders, two results",
              (int)draw->seed);
    held_free(&one.dx), held_free(&one.dw), held_free(&two.dx), held_free(&two.dw);
    held_free(&dy), held_free(&residual), held_free(&dw);
    free(dy_floats), free(dx), free(dw_floats);
    norm_case_free(&c);
}

Test(kernel_cuda_norm_backward, equals_the_cpu_and_does_not_depend_on_the_order_of_threads) {
    each_case(30, check_backward);
}

Test(kernel_cuda_norm_backward, a_workspace_that_is_too_small_or_a_row_too_long_is_refused) {
    const KernelCuda none = {.processors = 2};
    KernelNormBackward back = {.rows = 4, .cols = 64};
    cr_assert_neq(kernel_cuda_norm_backward(&none, KERNEL_FP32, KERNEL_FP32, &back), 0);
    back.cols = KERNEL_CUDA_NORM_COLS + 1;
    const KernelCuda large = {.processors = 2, .workspace_bytes = INT64_MAX};
    cr_assert_neq(kernel_cuda_norm_backward(&large, KERNEL_FP32, KERNEL_FP32, &back), 0);
}

static KernelStretches stretches_draw(Draw *draw) {
    static const int64_t widths[] = {8, 20, 64, 128, 512};
    KernelStretches s = {.rows = draw_rows(draw), .parts = 1 + (int)draw_below(draw, 5)};
    s.width = draw_one(draw, widths, 5);
    s.stride = s.parts * s.width + draw_below(draw, 3) * 8;
    s.before_stride = s.parts * s.width + draw_below(draw, 2) * s.width;
    s.rstd_stride = s.parts + draw_below(draw, 2);
    return s;
}

static void check_stretches(Draw *draw, KernelStore store) {
    const KernelStretches s = stretches_draw(draw);
    Held x = held_draw(draw, store, s.rows * s.stride), before = held_draw(draw, store, s.rows * s.before_stride);
    Held rstd = held_draw(draw, KERNEL_FP32, s.rows * s.rstd_stride), w = held_draw(draw, store, s.width);
    Held dw = held_draw(draw, KERNEL_FP32, s.width);
    float *xf = held_floats(&x), *bf = held_floats(&before), *rf = held_floats(&rstd), *wf = held_floats(&w);
    float *dwf = held_floats(&dw);
    kernel_stretch_norm(&s, EPS, wf, xf, bf, rf);
    KernelCuda at = place_open(draw, kernel_cuda_stretch_norm_backward_workspace(&(KernelCuda){.processors = 3}, &s));
    at.processors = 3;
    cr_assert_eq(kernel_cuda_stretch_norm(&at, store, &s, EPS, w.at, x.at, before.at, rstd.at), 0);
    place_wait(&at);
    held_near(draw, &x, xf, held_limit(store), "x");
    held_near(draw, &before, bf, 0.0, "before");
    held_near(draw, &rstd, rf, held_limit(KERNEL_FP32), "rstd");
    Held dx = held_draw(draw, store, x.count);
    float *dxf = held_floats(&dx);
    kernel_stretch_norm_backward(&s, wf, bf, rf, dxf, dwf, true);
    Held dx2 = held_copy(&dx), dw2 = held_copy(&dw);
    cr_assert_eq(
        kernel_cuda_stretch_norm_backward(&at, store, KERNEL_FP32, &s, w.at, before.at, rstd.at, dx.at, dw.at, true),
        0);
    place_wait(&at);
    held_near(draw, &dx, dxf, held_limit(store), "dx");
    held_near(draw, &dw, dwf, 2 * held_limit(KERNEL_FP32), "dw");
    cr_assert_eq(
        kernel_cuda_stretch_norm_backward(&at, store, KERNEL_FP32, &s, w.at, before.at, rstd.at, dx2.at, dw2.at, true),
        0);
    place_close(&at);
    cr_assert(held_equal(&dx, &dx2) && held_equal(&dw, &dw2), "seed %d: two orders, two results", (int)draw->seed);
    held_free(&x), held_free(&before), held_free(&rstd), held_free(&w), held_free(&dw), held_free(&dx);
    held_free(&dx2), held_free(&dw2);
    free(xf), free(bf), free(rf), free(wf), free(dwf), free(dxf);
}

Test(kernel_cuda_stretch_norm, forward_and_backward_equal_the_cpu_in_any_order_of_threads) {
    each_case(30, check_stretches);
}
