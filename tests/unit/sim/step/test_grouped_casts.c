// torchao's grouped products in mxfp8: both operands are cast for each product, and bf16 is what is saved.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

static const LoweredRequest mx = {
    .model = "qwen3-30b-a3b", .target = "torchtitan@0.3", .mesh = "dp_shard=8,ep=4", .fp8 = true, .fp8_recipe = FP8_MX};

// 64 tokens visit 8 experts each; 32 of 128 experts are here.
enum { ROWS = 64 * 8, EXPERTS = 32, HIDDEN = 2048, FFN = 768 };

Test(grouped_casts, each_product_casts_both_operands) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, mx);
    const int64_t in = (int64_t)ROWS * FFN, out = (int64_t)ROWS * HIDDEN, weights = (int64_t)EXPERTS * HIDDEN * FFN;
    cr_expect_eq(first_named(&program, "experts down")->cast_bytes, 3 * (in + weights));
    cr_expect_eq(first_named(&program, "experts down dgrad")->cast_bytes, 3 * (out + weights));
    cr_expect_eq(first_named(&program, "experts down wgrad")->cast_bytes, 3 * (out + in));
    arena_free(&arena);
}

Test(grouped_casts, rows_are_saved_in_bf16_and_weights_have_no_copy) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, mx);
    cr_expect_eq(first_named(&program, "experts gate up")->dtype, DTYPE_FP8);
    cr_expect_eq(first_named(&program, "router")->dtype, DTYPE_BF16);
    cr_expect_eq(buffer_named(&program, "experts_in")->dtype, DTYPE_BF16);
    cr_expect_null(buffer_named(&program, "expert fp8 weights"));
    arena_free(&arena);
}

Test(grouped_casts, experts_of_one_rank_and_other_recipes_are_refused) {
    Arena arena = {0};
    LoweredRequest request = mx;
    request.mesh = "dp_shard=8";
    const char *alone = lowered_refusal(&request, &arena);
    cr_assert_not_null(alone);
    cr_expect_not_null(strstr(alone, "needs them on several ranks"), "%s", alone);
    request = mx;
    request.fp8_recipe = FP8_ROWWISE;
    const char *rows = lowered_refusal(&request, &arena);
    cr_assert_not_null(rows);
    cr_expect_not_null(strstr(rows, "torchao's products in mxfp8"), "%s", rows);
    arena_free(&arena);
}
