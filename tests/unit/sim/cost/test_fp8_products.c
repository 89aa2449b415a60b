// Products in fp8 by their scales and sums.

#include <criterion/criterion.h>

#include "sim/cost/compute.h"
#include "tests/support/lowered.h"
#include "tests/unit/sim/cost/machines.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(fp8_products, .fini = clean);

typedef struct Product {
    Fp8Recipe recipe;
    Dtype dtype;
    bool gradient;
    const char *target;
} Product;

// Large, of a chip that multiplies fp8 as fast as bf16, at half the rate where cuBLAS of CUDA 12 sums exactly.
static double product_s(Product product) {
    ClusterProfile profile = machine_h100();
    profile.accelerator.gemm[DTYPE_FP8] = profile.accelerator.gemm[DTYPE_BF16];
    profile.accelerator.fp8_exact_share = 0.5;
    profile.accelerator.fp8_exact_share_cuda_13 = 1;
    profile.accelerator.fp8_row_share = 0.8;
    const char *target = product.target ? product.target : "megatron";
    StepProgram program = lowered(&arena, (LoweredRequest){.target = target, .mesh = "dp_shard=2", .bf16 = true});
    program.plan.fp8_recipe = product.recipe;
    const CostModel model = {.profile = &profile, .target = program.target, .chip_factor = 1};
    int32_t i = 0;
    while (i < program.task_count && program.tasks[i].kind != TASK_GEMM) {
        i++;
    }
    cr_assert_lt(i, program.task_count);
    Task task = program.tasks[i];
    task.dtype = product.dtype;
    task.trans_b = !product.gradient;
    task.m = task.n = task.k = 8192;
    return cost_task(&model, &program, &task).seconds;
}

// Their rate is 0.951 of the others' (6.812 ms for 7.161); launch and memory are the same, so it is nearly 1.051 times.
Test(fp8_products, mxfp8_multiplies_slower_than_fp8_of_one_scale) {
    cr_assert_float_eq(product_s((Product){.recipe = FP8_MX, .dtype = DTYPE_FP8}) /
                           product_s((Product){.recipe = FP8_TENSORWISE, .dtype = DTYPE_FP8}),
                       7.161 / 6.812, 0.005);
}

Test(fp8_products, products_that_stay_in_bf16_keep_their_rate) {
    cr_assert_eq(product_s((Product){.recipe = FP8_MX, .dtype = DTYPE_BF16}),
                 product_s((Product){.recipe = FP8_TENSORWISE, .dtype = DTYPE_BF16}));
}

// Launch and memory are the same: nearly 1.25 times.
Test(fp8_products, with_a_scale_per_row_run_at_the_share_of_pytorchs_kernel) {
    const double whole = product_s((Product){.recipe = FP8_TENSORWISE, .dtype = DTYPE_FP8});
    cr_expect_float_eq(product_s((Product){.recipe = FP8_ROWWISE, .dtype = DTYPE_FP8}) / whole, 1.25, 0.01);
    cr_expect_float_eq(product_s((Product){.recipe = FP8_ROWWISE_BF16, .dtype = DTYPE_FP8}) / whole, 1.25, 0.01);
    cr_expect_eq(product_s((Product){.recipe = FP8_ROWWISE, .dtype = DTYPE_BF16}),
                 product_s((Product){.recipe = FP8_TENSORWISE, .dtype = DTYPE_BF16}));
}

// Megatron's containers have CUDA 13 today.
Test(fp8_products, gradients_are_summed_as_fast_as_the_frameworks_cublas_does) {
    const Product forward = {.recipe = FP8_TENSORWISE, .dtype = DTYPE_FP8};
    Product gradient = forward;
    gradient.gradient = true;
    cr_expect_eq(product_s(gradient), product_s(forward));
    gradient.target = "megatron@0.4";
    cr_expect_gt(product_s(gradient), 1.8 * product_s(forward));
}

// GPT-OSS on GB300: of 4,096 keys every query sees 128, twice 128 heads of 64. cuDNN takes 1.87 ms back, 0.44 in bf16.
Test(fp8_products, attention_back_in_mxfp8_skips_nothing_of_a_window) {
    ClusterProfile profile;
    Error error = {0};
    cr_assert_eq(cluster_find("gb300-nvl72", &arena, &profile, &error), STATUS_OK, "%s", error.message);
    const AttentionShape shape = {.kernel = ATTENTION_CUDNN,
                                  .sequences = 2,
                                  .heads = 128,
                                  .head_dim = 64,
                                  .queries = 4096,
                                  .keys = 4096,
                                  .visible_share = 0.5,
                                  .window = 128,
                                  .diagonal = true,
                                  .backward = true,
                                  .fp8 = true,
                                  .block_scales = true};
    cr_expect_float_eq(attention_time(&profile.accelerator, DTYPE_BF16, &shape).seconds, 1.87e-3, 0.1e-3);
}
