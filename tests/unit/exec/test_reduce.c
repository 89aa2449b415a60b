// Rows combined in order, in fp32, in bf16 and as integers.

#include <criterion/criterion.h>
#include <string.h>

#include "exec/transport/reduce.h"
#include "sim/base/bf16.h"

enum { COUNT = 2500 };  // more than two blocks, and a remainder

Test(reduce, fp32_rows_are_summed_in_their_order) {
    static float rows[3][COUNT], out[COUNT];
    const void *const all[] = {rows[0], rows[1], rows[2]};
    for (int i = 0; i < COUNT; i++) {
        rows[0][i] = 16777216.0f;  // 2^24: adding 1 is lost, adding 2 is not
        rows[1][i] = 1.0f;
        rows[2][i] = (float)(i % 7);
    }
    reduce_rows(all, 3, sizeof out, (Reduction){REDUCE_SUM, DTYPE_FP32}, out);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(out[i], rows[0][i] + rows[1][i] + rows[2][i]);
    }
}

Test(reduce, bf16_rows_are_summed_in_fp32_and_rounded_once) {
    static uint16_t rows[3][COUNT], out[COUNT];
    const void *const all[] = {rows[0], rows[1], rows[2]};
    for (int i = 0; i < COUNT; i++) {
        rows[0][i] = bf16_of(256.0f);  // bf16 counts in twos from here on: 256 + 1 rounds down at every step
        rows[1][i] = bf16_of(1.0f);
        rows[2][i] = bf16_of((float)(1 + i % 2 * 2));
    }
    reduce_rows(all, 3, sizeof out, (Reduction){REDUCE_SUM, DTYPE_BF16}, out);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(bf16_value(out[i]), i % 2 == 0 ? 258.0f : 260.0f);
    }
}

Test(reduce, the_largest_of_bf16_rows_is_exact) {
    static uint16_t rows[2][COUNT], out[COUNT];
    const void *const all[] = {rows[0], rows[1]};
    for (int i = 0; i < COUNT; i++) {
        rows[0][i] = bf16_of((float)(i % 5));
        rows[1][i] = bf16_of((float)(i % 3));
    }
    reduce_rows(all, 2, sizeof out, (Reduction){REDUCE_MAX, DTYPE_BF16}, out);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(bf16_value(out[i]), (float)(i % 5 > i % 3 ? i % 5 : i % 3));
    }
}

Test(reduce, integers_keep_every_bit) {
    static int64_t rows[3][COUNT], out[COUNT];
    const void *const all[] = {rows[0], rows[1], rows[2]};
    for (int i = 0; i < COUNT; i++) {
        rows[0][i] = INT64_C(1) << 61;
        rows[1][i] = i;
        rows[2][i] = -(INT64_C(1) << 60) - 1;
    }
    reduce_rows(all, 3, sizeof out, (Reduction){REDUCE_SUM_INT64, DTYPE_FP32}, out);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(out[i], (INT64_C(1) << 60) + i - 1);
    }
}
