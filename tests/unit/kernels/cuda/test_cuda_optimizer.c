// AdamW, sums of squares and the clip scale of kernels/cuda on the processor against kernels/cpu.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/kernels/cuda/held.h"

static const KernelAdamw OPTIONS = {
    .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f, .step = 3};

static void check_adamw(Draw *draw, KernelStore gradients) {
    const int64_t count = draw_rows(draw) * draw_cols(draw), undecayed = draw_below(draw, count + 1);
    const KernelStore state = draw_below(draw, 4) == 0 ? KERNEL_BF16 : KERNEL_FP32;
    Held g = held_draw(draw, gradients, count), x = held_draw(draw, state, count), m = held_draw(draw, state, count);
    Held v = held_draw(draw, state, count), working = held_draw(draw, KERNEL_BF16, count);
    float *gf = held_floats(&g), *xf = held_floats(&x), *mf = held_floats(&m), *vf = held_floats(&v);
    for (int64_t i = 0; i < count; i++) {
        vf[i] *= vf[i];
    }
    held_free(&v);
    v = held_of(draw, state, vf, count);
    free(vf);
    vf = held_floats(&v);
    Held scale = held_draw(draw, KERNEL_FP32, 1);
    const KernelCudaUpdate update = {gradients, state, count, undecayed, scale.at, g.at, x.at, m.at, v.at, working.at};
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_adamw(&at, &OPTIONS, &update), 0);
    place_close(&at);
    kernel_adamw(count, undecayed, &OPTIONS, scale.at, gf, xf, mf, vf);
    held_near(draw, &x, xf, held_limit(state), "master");
    held_near(draw, &m, mf, held_limit(state), "first moments");
    held_near(draw, &v, vf, held_limit(state), "second moments");
    held_near(draw, &working, xf, held_limit(KERNEL_BF16), "working copy");
    if (state == KERNEL_FP32) {
        float *master = held_floats(&x);
        Held rounded = held_of(draw, KERNEL_BF16, master, count);
        cr_assert(held_equal(&working, &rounded), "the working copy is the master, rounded");
        free(master), held_free(&rounded);
    }
    free(gf), free(xf), free(mf), free(vf);
    held_free(&g), held_free(&x), held_free(&m), held_free(&v), held_free(&working), held_free(&scale);
}

Test(kernel_cuda_adamw, equals_the_cpu_in_all_formats_and_writes_the_working_copy) {
    each_case(25, check_adamw);
}

static void check_squares(Draw *draw, KernelStore store) {
    const int64_t count = draw_below(draw, 6) == 0 ? 0 : draw_rows(draw) * draw_cols(draw);
    const int64_t light = draw_below(draw, count + 1);
    const bool accumulate = draw_below(draw, 2) == 1;
    Held x = held_draw(draw, store, count), one = held_draw(draw, KERNEL_FP32, 1), two = held_copy(&one);
    float *xf = held_floats(&x), want = ((float *)one.at)[0];
    KernelCuda at = place_open(draw, kernel_cuda_square_sum_workspace(&(KernelCuda){.processors = 3}));
    cr_assert_eq(kernel_cuda_square_sum(&at, store, count, light, 0.25, x.at, one.at, accumulate), 0);
    place_wait(&at);
    cr_assert_eq(kernel_cuda_square_sum(&at, store, count, light, 0.25, x.at, two.at, accumulate), 0);
    place_close(&at);
    kernel_square_sum(count, light, 0.25, xf, &want, accumulate);
    held_near(draw, &one, &want, 1e-6, "the sum of squares");
    cr_assert(held_equal(&one, &two), "seed %d: two orders, two results", (int)draw->seed);
    free(xf), held_free(&x), held_free(&one), held_free(&two);
}

Test(kernel_cuda_square_sum, equals_the_cpu_in_any_order_of_threads) {
    each_case(25, check_squares);
}

static void check_clip(Draw *draw, float norm_square, float clip, float scale) {
    Held in = held_of(draw, KERNEL_FP32, &norm_square, 1), out = held_draw(draw, KERNEL_FP32, 2);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_clip(&at, clip, in.at, out.at), 0);
    place_close(&at);
    cr_assert_eq(((float *)out.at)[0], scale);
    cr_assert_eq(((float *)out.at)[1], sqrtf(norm_square));
    held_free(&in), held_free(&out);
}

Test(kernel_cuda_clip, scales_what_is_longer_and_nothing_else) {
    Draw draw = {1, 1};
    check_clip(&draw, 16.0f, 1.0f, 0.25f);
    check_clip(&draw, 0.25f, 1.0f, 1.0f);
    check_clip(&draw, 0.0f, 1.0f, 1.0f);
}
