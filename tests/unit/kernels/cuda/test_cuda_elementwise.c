// Sums, copies, casts, zero fills, columns and normals of kernels/cuda on the processor against kernels/cpu.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/kernels/check.h"
#include "tests/unit/kernels/cuda/held.h"

static KernelStore store_draw(Draw *draw) {
    return draw_below(draw, 2) == 1 ? KERNEL_BF16 : KERNEL_FP32;
}

static void check_sums(Draw *draw, KernelStore store) {
    const int64_t rows = draw_rows(draw), cols = draw_cols(draw), count = rows * cols;
    Held a = held_draw(draw, store, count), b = held_draw(draw, store, count), bias = held_draw(draw, store, cols);
    float *af = held_floats(&a), *bf = held_floats(&b), *biasf = held_floats(&bias), *cf = check_zeros(count);
    Held c = held_copy(&a), in_place = held_copy(&a), added = held_copy(&a);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_add(&at, store, count, in_place.at, b.at, in_place.at), 0);
    cr_assert_eq(kernel_cuda_add_bias(&at, store, rows, cols, a.at, b.at, bias.at, c.at), 0);
    cr_assert_eq(kernel_cuda_accumulate(&at, store, store, count, b.at, added.at), 0);
    place_close(&at);
    kernel_add(count, af, bf, cf);
    held_near(draw, &in_place, cf, held_limit(store), "the sum");
    cr_assert(held_equal(&in_place, &added));
    kernel_add_bias(rows, cols, af, bf, biasf, cf);
    held_near(draw, &c, cf, held_limit(store), "the sum with a bias");
    free(af), free(bf), free(biasf), free(cf);
    held_free(&a), held_free(&b), held_free(&bias), held_free(&c), held_free(&in_place), held_free(&added);
}

Test(kernel_cuda_elementwise, sums_equal_the_cpu_and_may_be_in_place) {
    each_case(30, check_sums);
}

Test(kernel_cuda_elementwise, more_rows_than_a_grid_has_are_walked) {
    enum { ROWS = 65535 + 700, COLS = 8 };
    Draw draw = {5, 5};
    Held bias = held_draw(&draw, KERNEL_BF16, COLS), a = held_draw(&draw, KERNEL_BF16, (int64_t)ROWS * COLS);
    float *af = held_floats(&a), *biasf = held_floats(&bias);
    KernelCuda at = place_open(&draw, 0);
    at.processors = 1000;  // as large a grid as possible
    cr_assert_eq(kernel_cuda_add_bias(&at, KERNEL_BF16, ROWS, COLS, a.at, a.at, bias.at, a.at), 0);
    place_close(&at);
    kernel_add_bias(ROWS, COLS, af, af, biasf, af);
    held_near(&draw, &a, af, held_limit(KERNEL_BF16), "the sum");
    free(af), free(biasf), held_free(&bias), held_free(&a);
}

static void check_copies(Draw *draw, KernelStore from) {
    const KernelStore to = store_draw(draw);
    KernelCudaCopy copy = {.from = from, .to = to, .rows = draw_rows(draw), .cols = draw_cols(draw)};
    copy.src_stride = copy.cols + draw_below(draw, 3) * 8, copy.dst_stride = copy.cols + draw_below(draw, 3) * 8;
    Held src = held_draw(draw, from, copy.rows * copy.src_stride);
    Held dst = held_draw(draw, to, copy.rows * copy.dst_stride), sum = held_draw(draw, to, src.count);
    Held zeroed = held_copy(&dst);
    float *srcf = held_floats(&src), *want = held_floats(&dst), *sumf = held_floats(&sum);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_copy_rows(&at, &copy, src.at, dst.at), 0);
    cr_assert_eq(kernel_cuda_accumulate(&at, from, to, src.count, src.at, sum.at), 0);
    cr_assert_eq(kernel_cuda_zero(&at, zeroed.count * kernel_store_bytes(to), zeroed.at), 0);
    place_close(&at);
    kernel_copy_rows(copy.rows, copy.cols, copy.src_stride, copy.dst_stride, srcf, want);
    kernel_add(src.count, sumf, srcf, sumf);
    Held rounded = held_of(draw, to, want, dst.count);
    cr_assert(held_equal(&dst, &rounded), "seed %d: a copy is exact but for one rounding", (int)draw->seed);
    held_near(draw, &sum, sumf, held_limit(to), "the sum");
    memset(want, 0, sizeof *want * (size_t)dst.count);
    held_near(draw, &zeroed, want, 0.0, "zero");
    free(srcf), free(want), free(sumf);
    held_free(&src), held_free(&dst), held_free(&sum), held_free(&zeroed), held_free(&rounded);
}

Test(kernel_cuda_elementwise, copies_between_formats_and_strides_touch_their_elements_only) {
    each_case(30, check_copies);
}

static void check_columns(Draw *draw, KernelStore store) {
    const int64_t rows = draw_rows(draw), cols = draw_cols(draw);
    const KernelStore sums = store == KERNEL_FP32 ? KERNEL_FP32 : store_draw(draw);
    const bool accumulate = draw_below(draw, 2) == 1;
    Held x = held_draw(draw, store, rows * cols), one = held_draw(draw, sums, cols), two = held_copy(&one);
    float *xf = held_floats(&x), *want = held_floats(&one);
    const KernelCuda device = {.processors = 2};
    KernelCuda at = place_open(draw, kernel_cuda_column_sum_workspace(&device, rows, cols));
    at.processors = device.processors;
    cr_assert_eq(kernel_cuda_column_sum(&at, store, sums, rows, cols, x.at, one.at, accumulate), 0);
    place_wait(&at);
    cr_assert_eq(kernel_cuda_column_sum(&at, store, sums, rows, cols, x.at, two.at, accumulate), 0);
    place_close(&at);
    kernel_column_sum(rows, cols, xf, want, accumulate);
    held_near(draw, &one, want, held_limit(sums), "column sums");
    cr_assert(held_equal(&one, &two), "seed %d: two orders, two results", (int)draw->seed);
    free(xf), free(want), held_free(&x), held_free(&one), held_free(&two);
}

Test(kernel_cuda_column_sum, equals_the_cpu_in_any_order_of_threads) {
    each_case(25, check_columns);
}

static void check_normal(Draw *draw, KernelStore store) {
    const KernelNormal numbers = {.key = (uint64_t)draw_below(draw, INT64_MAX),
                                  .stream = (uint64_t)draw_below(draw, INT64_MAX),
                                  .first = (uint64_t)draw_below(draw, INT64_MAX / 4),
                                  .scale = 0.02f / 65536.0f};
    const int64_t count = draw_cols(draw);
    float *want = check_zeros(count);
    Held x = held_draw(draw, store, count);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_normal(&at, store, &numbers, count, x.at), 0);
    place_close(&at);
    kernel_normal(&numbers, count, want);
    Held same = held_of(draw, store, want, count);
    cr_assert(held_equal(&x, &same), "seed %d", (int)draw->seed);
    free(want), held_free(&x), held_free(&same);
}

Test(kernel_cuda_normal, gives_the_bits_of_the_cpu) {
    each_case(20, check_normal);
}
