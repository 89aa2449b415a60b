// Rotary embedding, activations, gates and embeddings of kernels/cuda on the processor against kernels/cpu.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/kernels/check.h"
#include "tests/unit/kernels/cuda/held.h"

static int32_t *on_device(const int32_t *x, int64_t count, Held *held) {
    Draw none = {0};
    *held = held_draw(&none, KERNEL_FP32, count);  // four bytes each
    return memcpy(held->at, x, sizeof *x * (size_t)count);
}

static void check_rope(Draw *draw, KernelStore store) {
    static const int64_t widths[] = {2, 10, 16, 64, 128};
    const int head_dim = (int)draw_one(draw, widths, 5);
    const KernelRope shape = {.heads = 1 + (int)draw_below(draw, 5),
                              .head_dim = head_dim,
                              .turning =
                                  draw_below(draw, 2) == 1 ? head_dim : 2 * (1 + (int)draw_below(draw, head_dim / 2)),
                              .stride = 5 * head_dim + draw_below(draw, 3) * 8,
                              .theta = draw_below(draw, 2) == 1 ? 1e4 : 5e5,
                              .backward = draw_below(draw, 2) == 1,
                              .factor = (double)draw_below(draw, 3) * 4,
                              .low = 1,
                              .high = 4,
                              .original = (double)draw_below(draw, 2) * 8192};
    const int64_t rows = draw_rows(draw);
    int32_t position[70];
    for (int64_t row = 0; row < rows; row++) {
        position[row] = (int32_t)draw_below(draw, 131072);
    }
    Held x = held_draw(draw, store, rows * shape.stride), places;
    float *want = held_floats(&x);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_rope(&at, store, rows, &shape, on_device(position, rows, &places), x.at), 0);
    place_close(&at);
    kernel_rope(rows, &shape, position, want);
    held_near(draw, &x, want, held_limit(store), "x");
    free(want), held_free(&x), held_free(&places);
}

Test(kernel_cuda_rope, turns_as_the_cpu_does) {
    each_case(30, check_rope);
}

static void check_activation(Draw *draw, KernelStore store) {
    const KernelActivation activation = (KernelActivation)draw_below(draw, 3);
    const int64_t count = draw_rows(draw) * draw_cols(draw);
    Held x = held_draw(draw, store, count), dy = held_draw(draw, store, count), y = held_copy(&x);
    float *xf = held_floats(&x), *dyf = held_floats(&dy), *want = check_zeros(count);
    for (int64_t i = 0; i < count; i++) {
        xf[i] *= 8.0f;
    }
    held_free(&x);
    x = held_of(draw, store, xf, count);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_activation(&at, store, activation, count, x.at, y.at), 0);
    place_wait(&at);
    kernel_activation(activation, count, xf, want);
    held_near(draw, &y, want, held_limit(store), "act(x)");
    cr_assert_eq(kernel_cuda_activation_backward(&at, store, activation, count, dy.at, x.at, dy.at), 0);
    place_close(&at);
    kernel_activation_backward(activation, count, dyf, xf, want);
    held_near(draw, &dy, want, held_limit(store), "dx");
    free(xf), free(dyf), free(want), held_free(&x), held_free(&dy), held_free(&y);
}

Test(kernel_cuda_activation, values_and_slopes_equal_the_cpu) {
    each_case(25, check_activation);
}

// Inputs are as drawn, times `factor`.
static void check_gates(Draw *draw, KernelStore store, KernelActivation activation, float factor) {
    KernelGated shape = {activation, draw_rows(draw), draw_cols(draw), 0};
    shape.stride = draw_below(draw, 2) == 1 ? 2 * shape.cols : shape.cols;
    const int64_t wide = shape.rows * shape.stride, narrow = shape.rows * shape.cols;
    float *gatef = check_floats(wide, draw->seed), *upf = check_floats(wide, draw->seed + 1),
          *want = check_zeros(narrow);
    for (int64_t i = 0; i < wide; i++) {
        gatef[i] *= factor, upf[i] *= factor;
    }
    Held gate = held_of(draw, store, gatef, wide), up = held_of(draw, store, upf, wide);
    Held s = held_draw(draw, store, narrow), ds = held_draw(draw, store, narrow);
    free(gatef), free(upf);
    gatef = held_floats(&gate), upf = held_floats(&up);
    float *dsf = held_floats(&ds);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_gated(&at, store, &shape, gate.at, up.at, s.at), 0);
    place_wait(&at);
    kernel_gated(&shape, gatef, upf, want);
    held_near(draw, &s, want, held_limit(store), "s");
    cr_assert_eq(kernel_cuda_gated_backward(&at, store, &shape, ds.at, gate.at, up.at, gate.at, up.at), 0);
    place_close(&at);
    kernel_gated_backward(&shape, dsf, gatef, upf, gatef, upf);
    held_near(draw, &gate, gatef, held_limit(store), "dgate");
    held_near(draw, &up, upf, held_limit(store), "dup");
    free(gatef), free(upf), free(want), free(dsf);
    held_free(&gate), held_free(&up), held_free(&s), held_free(&ds);
}

static void check_gated(Draw *draw, KernelStore store) {
    check_gates(draw, store, (KernelActivation)draw_below(draw, 3), 1);
}

Test(kernel_cuda_gated, forward_and_backward_in_place_equal_the_cpu) {
    each_case(25, check_gated);
}

static void check_clamped(Draw *draw, KernelStore store) {
    check_gates(draw, store, KERNEL_CLAMPED, 12);  // beyond +-7
}

Test(kernel_cuda_gated, clamped_gates_equal_the_cpu_forward_and_backward) {
    each_case(10, check_clamped);
}

typedef struct EmbedCase {
    KernelEmbed shape;
    int32_t *entries;
    bool accumulate;
} EmbedCase;

static EmbedCase embed_case(Draw *draw) {
    EmbedCase c = {.shape = {.rows = draw_rows(draw) * (1 + draw_below(draw, 16)), .cols = draw_cols(draw)}};
    c.shape.range = 1 + draw_below(draw, 40);
    c.shape.first = draw_below(draw, 3) * 10;
    c.shape.scale = draw_below(draw, 2) == 1 ? 1.0f : 1.5f;
    c.accumulate = draw_below(draw, 2) == 1;
    c.entries = malloc(sizeof *c.entries * (size_t)c.shape.rows);
    const int64_t spread = 1 + draw_below(draw, 60);  // from all equal to many outside
    for (int64_t row = 0; row < c.shape.rows; row++) {
        c.entries[row] = (int32_t)draw_below(draw, spread);
    }
    return c;
}

static void check_embed(Draw *draw, KernelStore store) {
    EmbedCase c = embed_case(draw);
    Held table = held_draw(draw, store, c.shape.range * c.shape.cols), entries;
    Held x = held_draw(draw, store, c.shape.rows * c.shape.cols);
    float *tablef = held_floats(&table), *want = held_floats(&x);
    KernelCuda at = place_open(draw, 0);
    cr_assert_eq(kernel_cuda_embed(&at, store, &c.shape, on_device(c.entries, c.shape.rows, &entries), table.at, x.at,
                                   c.accumulate),
                 0);
    place_close(&at);
    kernel_embed(&c.shape, c.entries, tablef, want, c.accumulate);
    held_near(draw, &x, want, held_limit(store), "x");
    free(tablef), free(want), free(c.entries), held_free(&table), held_free(&entries), held_free(&x);
}

Test(kernel_cuda_embed, rows_equal_the_cpu) {
    each_case(20, check_embed);
}

static void check_embed_backward(Draw *draw, KernelStore store) {
    EmbedCase c = embed_case(draw);
    const KernelStore sums = store == KERNEL_FP32 || draw_below(draw, 2) == 1 ? KERNEL_FP32 : KERNEL_BF16;
    Held dx = held_draw(draw, store, c.shape.rows * c.shape.cols), entries;
    Held one = held_draw(draw, sums, c.shape.range * c.shape.cols), two = held_copy(&one);
    float *dxf = held_floats(&dx), *want = held_floats(&one);
    KernelCuda at = place_open(draw, kernel_cuda_embed_backward_workspace(&c.shape));
    on_device(c.entries, c.shape.rows, &entries);
    cr_assert_eq(kernel_cuda_embed_backward(&at, store, sums, &c.shape, entries.at, dx.at, one.at, c.accumulate), 0);
    place_wait(&at);
    cr_assert_eq(kernel_cuda_embed_backward(&at, store, sums, &c.shape, entries.at, dx.at, two.at, c.accumulate), 0);
    place_close(&at);
    kernel_embed_backward(&c.shape, c.entries, dxf, want, c.accumulate);
    held_near(draw, &one, want, held_limit(sums), "the table's gradient");
    cr_assert(held_equal(&one, &two), "seed %d: two orders, two results", (int)draw->seed);
    free(dxf), free(want), free(c.entries), held_free(&dx), held_free(&entries), held_free(&one), held_free(&two);
}

Test(kernel_cuda_embed_backward, adds_the_rows_of_an_entry_in_order_and_without_atomics) {
    each_case(20, check_embed_backward);
}
