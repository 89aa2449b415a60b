#include "kernels/kernels.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>

enum { ROWS = 70, COLS = 37, FIRST = 5, RANGE = 11 };

static const KernelEmbed shape = {ROWS, COLS, FIRST, RANGE, 1.0f};

static void tokens_fill(int32_t *tokens) {
    for (int i = 0; i < ROWS; i++) {
        tokens[i] = (i * 7) % 20;  // some below the range, some above, most repeated
    }
}

Test(kernel_embed, copies_rows_of_the_range_and_zeroes_the_others) {
    int32_t tokens[ROWS];
    tokens_fill(tokens);
    float *table = check_floats(RANGE * COLS, 1), *x = check_floats(ROWS * COLS, 2);
    kernel_embed(&shape, tokens, table, x, false);
    for (int row = 0; row < ROWS; row++) {
        const int entry = tokens[row] - FIRST;
        for (int col = 0; col < COLS; col++) {
            const float want = entry >= 0 && entry < RANGE ? table[entry * COLS + col] : 0.0f;
            cr_assert_eq(x[row * COLS + col], want);
        }
    }
    free(table);
    free(x);
}

Test(kernel_embed, scales_and_adds_to_what_is_there) {
    int32_t tokens[ROWS];
    tokens_fill(tokens);
    KernelEmbed scaled = shape;
    scaled.scale = 8.0f;
    float *table = check_floats(RANGE * COLS, 1), *x = check_floats(ROWS * COLS, 2),
          *before = check_floats(ROWS * COLS, 2);
    kernel_embed(&scaled, tokens, table, x, true);
    for (int row = 0; row < ROWS; row++) {
        const int entry = tokens[row] - FIRST;
        for (int col = 0; col < COLS; col++) {
            const float add = entry >= 0 && entry < RANGE ? 8.0f * table[entry * COLS + col] : 0.0f;
            cr_assert_eq(x[row * COLS + col], before[row * COLS + col] + add);
        }
    }
    free(table);
    free(x);
    free(before);
}

Test(kernel_embed_backward, adds_every_row_of_a_token_in_token_order) {
    int32_t tokens[ROWS];
    tokens_fill(tokens);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        KernelEmbed scaled = shape;
        scaled.scale = accumulate ? 1.0f : 0.25f;  // a power of two: exact
        float *dx = check_floats(ROWS * COLS, 3), *got = check_floats(RANGE * COLS, 4),
              *want = check_floats(RANGE * COLS, 4);
        for (int i = 0; i < RANGE * COLS && !accumulate; i++) {
            want[i] = 0.0f;
        }
        for (int row = 0; row < ROWS; row++) {
            const int entry = tokens[row] - FIRST;
            for (int col = 0; col < COLS && entry >= 0 && entry < RANGE; col++) {
                want[entry * COLS + col] += scaled.scale * dx[row * COLS + col];
            }
        }
        kernel_embed_backward(&scaled, tokens, dx, got, accumulate);
        cr_assert_arr_eq(got, want, sizeof(float) * RANGE * COLS);
        free(dx);
        free(got);
        free(want);
    }
}
