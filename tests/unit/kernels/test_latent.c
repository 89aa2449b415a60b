#include "kernels/kernels.h"
#include "kernels/latent.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 37, HEADS = 3, STILL = 8, TURNING = 4, VALUE = 16, RANK = 19, WIDE = RANK + TURNING };
enum { KEY = STILL + TURNING, UP = STILL + VALUE };

static const KernelKeys keys = {ROWS, HEADS, STILL, TURNING, VALUE, WIDE};

Test(kernel_latent, keys_of_every_head_are_its_own_part_and_the_shared_one) {
    float *up = check_floats(ROWS * HEADS * UP, 1), *wide = check_floats(ROWS * WIDE, 2);
    float *k = check_zeros(ROWS * HEADS * KEY);
    kernel_join_keys(&keys, up, wide + RANK, k);
    for (int i = 0; i < ROWS * HEADS; i++) {
        cr_assert_arr_eq(k + i * KEY, up + i * UP, STILL * sizeof *k);
        cr_assert_arr_eq(k + i * KEY + STILL, wide + i / HEADS * WIDE + RANK, TURNING * sizeof *k);
    }
    free(up), free(wide), free(k);
}

Test(kernel_latent, gradients_of_keys_and_values_go_where_these_came_from) {
    float *dk = check_floats(ROWS * HEADS * KEY, 1), *dv = check_floats(ROWS * HEADS * VALUE, 2);
    float *dup = check_zeros(ROWS * HEADS * UP), *wide = check_floats(ROWS * WIDE, 3),
          *was = check_floats(ROWS * WIDE, 3);
    kernel_part_keys(&keys, dk, dv, dup, wide + RANK);
    for (int i = 0; i < ROWS * HEADS; i++) {
        cr_assert_arr_eq(dup + i * UP, dk + i * KEY, STILL * sizeof *dk);
        cr_assert_arr_eq(dup + i * UP + STILL, dv + i * VALUE, VALUE * sizeof *dv);
    }
    for (int row = 0; row < ROWS; row++) {
        cr_assert_arr_eq(wide + row * WIDE, was + row * WIDE, RANK * sizeof *wide);
        for (int i = 0; i < TURNING; i++) {
            const float *of = dk + row * HEADS * KEY + STILL + i;
            cr_assert_eq(wide[row * WIDE + RANK + i], of[0] + of[KEY] + of[2 * KEY]);
        }
    }
    free(dk), free(dv), free(dup), free(wide), free(was);
}

Test(kernel_latent, a_norm_of_leading_columns_is_that_of_packed_rows_and_touches_no_others) {
    float *x = check_floats(ROWS * WIDE, 1), *w = check_floats(RANK, 2), *dy = check_floats(ROWS * RANK, 3);
    float *wide = check_floats(ROWS * WIDE, 4), *was = check_floats(ROWS * WIDE, 4), packed[ROWS * RANK];
    float y[2][ROWS * RANK], rstd[2][ROWS], dw[2][RANK] = {{0}}, dx[ROWS * RANK];
    const KernelNorm norm = {
        .rows = ROWS, .cols = RANK, .eps = 1e-6F, .x = x, .w = w, .y = y[0], .rstd = rstd[0], .x_stride = WIDE};
    const KernelNormBackward back = {.rows = ROWS,
                                     .cols = RANK,
                                     .dy = dy,
                                     .x = x,
                                     .w = w,
                                     .rstd = rstd[0],
                                     .dx = wide,
                                     .dw = dw[0],
                                     .accumulate = true,
                                     .x_stride = WIDE};
    kernel_copy_rows(ROWS, RANK, WIDE, RANK, x, packed);
    kernel_norm(&norm);
    kernel_rmsnorm(ROWS, RANK, 1e-6F, packed, w, y[1], rstd[1]);
    cr_expect_arr_eq(y[0], y[1], sizeof y[0]);
    cr_expect_arr_eq(rstd[0], rstd[1], sizeof rstd[0]);
    kernel_norm_backward(&back);
    kernel_rmsnorm_backward(ROWS, RANK, dy, packed, w, rstd[1], NULL, dx, dw[1], true);
    cr_expect_arr_eq(dw[0], dw[1], sizeof dw[0]);
    for (int row = 0; row < ROWS; row++) {
        cr_assert_arr_eq(wide + row * WIDE, dx + row * RANK, RANK * sizeof *dx);
        cr_assert_arr_eq(wide + row * WIDE + RANK, was + row * WIDE + RANK, TURNING * sizeof *dx);
    }
    free(x), free(w), free(dy), free(wide), free(was);
}

// Values of 16 elements after keys of 24, in rows and heads with gaps between them; the reference has wider values
// padded with zeros.
Test(kernel_latent, values_of_another_width_attend_as_if_zeros_made_them_as_wide_as_keys) {
    enum { TOKENS = 83, DIM = 24, NARROW = 16, APART = 40, Q = HEADS * DIM, O = HEADS * NARROW };
    const KernelAttention wide = {.queries = TOKENS,
                                  .keys = TOKENS,
                                  .heads = HEADS,
                                  .kv_heads = HEADS,
                                  .head_dim = DIM,
                                  .q_stride = Q,
                                  .kv_stride = Q,
                                  .o_stride = Q,
                                  .lse_stride = TOKENS};
    KernelAttention narrow = wide;
    narrow.values = (KernelValues){NARROW, HEADS * APART, APART, O};
    narrow.o_stride = O;
    float *q = check_floats(TOKENS * Q, 1), *k = check_floats(TOKENS * Q, 2),
          *v = check_floats(TOKENS * HEADS * APART, 3);
    float *d_o = check_floats(TOKENS * O, 4), *padded = check_zeros(TOKENS * Q), *d_wide = check_zeros(TOKENS * Q);
    float *out[2][6];
    for (int i = 0; i < TOKENS * HEADS; i++) {
        memcpy(padded + i * DIM, v + i * APART, NARROW * sizeof *v);
        memcpy(d_wide + i * DIM, d_o + i * NARROW, NARROW * sizeof *v);
    }
    for (int n = 0; n < 2; n++) {
        const KernelAttention *shape = n ? &narrow : &wide;
        const float *values = n ? v : padded, *gradient = n ? d_o : d_wide;
        for (int i = 0; i < 6; i++) {
            out[n][i] = check_zeros(TOKENS * Q);
        }
        kernel_attention(shape, q, k, values, out[n][0], out[n][1], false);
        kernel_attention_delta(shape, out[n][0], gradient, out[n][2]);
        kernel_attention_backward(shape, q, k, values, gradient, out[n][1], out[n][2], out[n][3], Q, out[n][4],
                                  out[n][5], Q);
    }
    for (int i = 0; i < TOKENS * HEADS; i++) {
        for (int j = 0; j < NARROW; j++) {
            cr_assert_float_eq(out[1][0][i * NARROW + j], out[0][0][i * DIM + j], 1e-6);
            cr_assert_float_eq(out[1][5][i * NARROW + j], out[0][5][i * DIM + j], 1e-5);
        }
        for (int j = 0; j < DIM; j++) {
            cr_assert_float_eq(out[1][3][i * DIM + j], out[0][3][i * DIM + j], 1e-5);
            cr_assert_float_eq(out[1][4][i * DIM + j], out[0][4][i * DIM + j], 1e-5);
        }
    }
    for (int i = 0; i < 12; i++) {
        free(out[i / 6][i % 6]);
    }
    free(q), free(k), free(v), free(d_o), free(padded), free(d_wide);
}
