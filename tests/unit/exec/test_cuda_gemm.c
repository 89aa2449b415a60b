// Plans of matrix products: their shapes as text, the choice among candidates, and a plan's life over the stand-in of
// cuBLASLt (tests/support/cuda_device), which multiplies with three loops and offers one algorithm that never runs.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gemm.h"
#include "sim/base/bf16.h"
#include "tests/support/cuda_device/cublaslt_host.h"

static const GemmShape shape = {.m = 6,
                                .n = 4,
                                .k = 8,
                                .trans_b = true,
                                .input = GEMM_BF16,
                                .output = GEMM_FP32,
                                .accumulate = true,
                                .alignment = 16,
                                .sms = 116};

Test(cuda_gemm, a_shape_comes_back_from_its_text) {
    char text[GEMM_SHAPE_TEXT_BYTES];
    GemmShape back;
    cr_assert_str_eq(gemm_shape_text(&shape, text), "6x4x8 nt bf16>fp32 add plain align 16 sms 116");
    cr_assert(gemm_shape_parse(text, &back) && gemm_shape_equal(&shape, &back));
    const GemmShape large = {INT64_MAX, INT64_MAX, INT64_MAX, true, true, GEMM_BF16, GEMM_BF16, false, true, 256, 999};
    cr_assert(gemm_shape_parse(gemm_shape_text(&large, text), &back) && gemm_shape_equal(&large, &back));
}

Test(cuda_gemm, text_that_is_no_shape_is_refused) {
    static const char *const wrong[] = {"", "6x4x8", "6x4x8 nt bf16>fp32 add plain align 16 sms 116 more",
                                        "6x4x8 nt int8>fp32 add plain align 16 sms 116",
                                        "6x4x8 nq bf16>fp32 add plain align 16 sms 116"};
    GemmShape back;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect(!gemm_shape_parse(wrong[i], &back), "%s", wrong[i]);
    }
}

Test(cuda_gemm, every_part_of_a_shape_tells_plans_apart) {
    GemmShape others[11];
    for (int i = 0; i < 11; i++) {
        others[i] = shape;
    }
    others[0].m++, others[1].n++, others[2].k++, others[3].trans_a = true, others[4].trans_b = false;
    others[5].input = GEMM_FP32, others[6].output = GEMM_BF16, others[7].accumulate = false, others[8].bias = true;
    others[9].alignment = 8, others[10].sms = 0;
    GemmChoice kept = {.shape = shape};
    for (int i = 0; i < 11; i++) {
        cr_expect(gemm_choice_find(&kept, 1, &others[i]) == NULL, "%d", i);
    }
    cr_expect(gemm_choice_find(&kept, 1, &shape) == &kept);
}

Test(cuda_gemm, alignment_is_the_largest_power_of_two_that_divides_up_to_256) {
    cr_expect_eq(gemm_alignment(0), 256);
    cr_expect_eq(gemm_alignment(4096), 256);
    cr_expect_eq(gemm_alignment(4096 + 64), 64);
    cr_expect_eq(gemm_alignment(4096 + 2), 2);
    cr_expect_eq(gemm_alignment(7), 1);
}

Test(cuda_gemm, the_fastest_candidate_has_the_least_median_and_ties_go_to_the_first) {
    // Medians 3, 2 and 2: one lucky time does not win, and the library's order decides between equals.
    const double seconds[3][3] = {{0.1, 3, 4}, {2, 1, 9}, {2, 2, 2}};
    cr_assert_eq(gemm_fastest(seconds[0], 3, 3), 1);
}

// ---------------------------------------------------------------------------------------------- a plan's life

typedef struct Bench {
    GemmLibrary library;
    GemmWorkshop shop;
    _Alignas(16) uint16_t a[6 * 8];  // as the shape says
    _Alignas(16) uint16_t b[4 * 8];
    _Alignas(16) float c[6 * 4];
} Bench;

static Bench *bench_begin(void) {
    Bench *bench = aligned_alloc(256, (sizeof *bench + 255) / 256 * 256);
    char why[GEMM_WHY_BYTES];
    memset(bench, 0, sizeof *bench);
    cr_assert(gemm_library_open(&bench->library, why));
    bench->shop.library = &bench->library;
    cr_assert(bench->library.create(&bench->shop.handle) == CUBLAS_STATUS_SUCCESS);
    cr_assert(cudaMalloc(&bench->shop.workspace, GEMM_WORKSPACE_BYTES) == cudaSuccess);
    cr_assert(cudaStreamCreateWithFlags(&bench->shop.stream, cudaStreamNonBlocking) == cudaSuccess);
    cr_assert(cudaEventCreate(&bench->shop.begin) == cudaSuccess && cudaEventCreate(&bench->shop.end) == cudaSuccess);
    for (int i = 0; i < 48; i++) {
        bench->a[i] = bf16_of((float)(i % 5) - 2);
    }
    for (int i = 0; i < 32; i++) {
        bench->b[i] = bf16_of((float)(i % 3) - 1);
    }
    return bench;
}

static void bench_end(Bench *bench, GemmPlan *plan) {
    gemm_plan_end(&bench->shop, plan);
    cudaEventDestroy(bench->shop.begin);
    cudaEventDestroy(bench->shop.end);
    cudaStreamDestroy(bench->shop.stream);
    cudaFree(bench->shop.workspace);
    bench->library.destroy(bench->shop.handle);
    free(bench);
}

Test(cuda_gemm, a_timed_plan_multiplies_as_rows_and_adds_to_c) {
    Bench *bench = bench_begin();
    GemmPlan plan;
    char why[GEMM_WHY_BYTES];
    const GemmData data = {bench->a, bench->b, bench->c, NULL, 0};
    cr_assert(gemm_plan_begin(&bench->shop, &shape, &plan, why), "%s", why);
    cr_assert(gemm_plan_time(&bench->shop, &data, &plan, why), "%s", why);
    cr_expect_gt(plan.choice.seconds, 0);
    for (int i = 0; i < 24; i++) {
        bench->c[i] = 100;
    }
    cr_assert(gemm_run(&bench->shop, &plan, &data, bench->shop.stream) == NULL);
    cr_assert(cudaStreamSynchronize(bench->shop.stream) == cudaSuccess);
    for (int row = 0; row < 6; row++) {
        for (int col = 0; col < 4; col++) {
            float want = 100;
            for (int i = 0; i < 8; i++) {
                want += bf16_value(bench->a[row * 8 + i]) * bf16_value(bench->b[col * 8 + i]);
            }
            cr_expect_eq(bench->c[row * 4 + col], want, "(%d, %d): %g, not %g", row, col,
                         (double)bench->c[row * 4 + col], (double)want);
        }
    }
    bench_end(bench, &plan);
}

// The first algorithm offered never runs.
Test(cuda_gemm, an_untimed_shop_takes_the_first_that_runs) {
    Bench *bench = bench_begin();
    GemmPlan plan;
    char why[GEMM_WHY_BYTES];
    const GemmData data = {bench->a, bench->b, bench->c, NULL, 0};
    const int64_t before = cublaslt_host_counts().products;
    bench->shop.untimed = true;
    cr_assert(gemm_plan_begin(&bench->shop, &shape, &plan, why), "%s", why);
    cr_assert(gemm_plan_time(&bench->shop, &data, &plan, why), "%s", why);
    cr_expect_eq(cublaslt_host_counts().products, before + 1);
    cr_expect_eq(plan.choice.seconds, 0);
    cr_expect(gemm_run(&bench->shop, &plan, &data, bench->shop.stream) == NULL);
    cr_expect(cudaStreamSynchronize(bench->shop.stream) == cudaSuccess);
    bench_end(bench, &plan);
}

Test(cuda_gemm, a_kept_choice_serves_without_another_search) {
    Bench *bench = bench_begin();
    GemmPlan first, second;
    char why[GEMM_WHY_BYTES];
    const GemmData data = {bench->a, bench->b, bench->c, NULL, 0};
    cr_assert(gemm_plan_begin(&bench->shop, &shape, &first, why) &&
              gemm_plan_begin(&bench->shop, &shape, &second, why));
    cr_assert(gemm_plan_time(&bench->shop, &data, &first, why));
    const int searches = cublaslt_host_counts().searches;
    cr_assert(gemm_plan_take(&bench->shop, &first.choice, &second));
    cr_expect_eq(cublaslt_host_counts().searches, searches);
    cr_expect(memcmp(first.choice.algorithm, second.choice.algorithm, sizeof first.choice.algorithm) == 0);
    gemm_plan_end(&bench->shop, &second);
    bench_end(bench, &first);
}

Test(cuda_gemm, a_choice_of_another_library_is_not_taken) {
    Bench *bench = bench_begin();
    GemmPlan plan;
    char why[GEMM_WHY_BYTES];
    GemmChoice foreign = {.shape = shape, .algorithm = {12345}};
    cr_assert(gemm_plan_begin(&bench->shop, &shape, &plan, why));
    cr_expect(!gemm_plan_take(&bench->shop, &foreign, &plan));
    bench_end(bench, &plan);
}

// A dense product may have the shape of a group's mean rows: both share one plan.
Test(cuda_gemm, a_plan_that_ran_with_other_rows_is_again_the_one_it_was_made_for) {
    Bench *bench = bench_begin();
    GemmPlan plan;
    char why[GEMM_WHY_BYTES];
    const GemmData data = {bench->a, bench->b, bench->c, NULL, 0};
    float whole[24];
    cr_assert(gemm_plan_begin(&bench->shop, &shape, &plan, why) && gemm_plan_time(&bench->shop, &data, &plan, why));
    memset(bench->c, 0, sizeof bench->c);
    cr_assert(gemm_run(&bench->shop, &plan, &data, bench->shop.stream) == NULL);
    cr_assert(cudaStreamSynchronize(bench->shop.stream) == cudaSuccess);
    memcpy(whole, bench->c, sizeof whole);
    cr_assert(gemm_run_rows(&bench->shop, &plan, &data, 2, bench->shop.stream) == NULL);
    cr_assert(cudaStreamSynchronize(bench->shop.stream) == cudaSuccess);
    memset(bench->c, 0, sizeof bench->c);
    cr_assert(gemm_run(&bench->shop, &plan, &data, bench->shop.stream) == NULL);
    cr_assert(cudaStreamSynchronize(bench->shop.stream) == cudaSuccess);
    cr_expect(memcmp(whole, bench->c, sizeof whole) == 0);
    bench_end(bench, &plan);
}
