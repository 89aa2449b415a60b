// cuDNN's tier: its graphs mean attention and are bound to the right memory, and the passes around them (merge, fp32
// gradients) are right. A stand-in evaluates the graphs on the CPU (tests/support/cudnn_host).

#include <criterion/criterion.h>
#include <dlfcn.h>

#include "tests/unit/kernels/check.h"
#include "tests/unit/kernels/cuda/attention_case.h"

static const double BF16 = 1e-2, LSE = 2e-6;

static const struct Row {
    const char *name;
    KernelAttention block;
} rows[] = {
    {"causal, groups, gaps", BLOCK(13, 13, 40, 40, 4, 2, 64, 8)},
    {"all keys seen", BLOCK(9, 14, 300, 100, 2, 2, 64, 0)},
    {"causal, one key head, head_dim 24", BLOCK(17, 17, 0, 0, 3, 1, 24, 0)},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void load_stand_in(void) {
    cr_assert_not_null(dlopen(NDTUNE_CUDNN_HOST, RTLD_NOW | RTLD_GLOBAL), "%s", dlerror());
}

static void expect_close(const char *name, const char *what, const float *got, const float *want, int64_t count,
                         double tolerance) {
    const double off = check_distance_f(got, want, count);
    cr_expect_lt(off, tolerance, "%s: %s is off by %g", name, what, off);
}

Test(cudnn_attention, the_forward_graph_is_attention, .init = load_stand_in) {
    for (int i = 0; i < 2 * ROWS; i++) {
        CudaAttentionCase c = cuda_attention_case(rows[i / 2].block, 2, 301 + (uint64_t)i);
        c.call.output = i % 2 ? KERNEL_BF16 : KERNEL_FP32;
        CudaAttentionAnswer got = cuda_attention_forward_of(ATTENTION_TIER_CUDNN, &c, NULL);
        cuda_attention_case_forward(&c);
        expect_close(rows[i / 2].name, "o", got.o, c.o, c.o_size, BF16);
        expect_close(rows[i / 2].name, "lse", got.lse, c.lse, c.lse_size, LSE);
        cuda_attention_answer_free(&got);
        cuda_attention_case_free(&c);
    }
}

Test(cudnn_attention, the_backward_graph_is_its_gradient, .init = load_stand_in) {
    for (int i = 0; i < 2 * ROWS; i++) {
        CudaAttentionCase c = cuda_attention_case(rows[i / 2].block, 2, 321 + (uint64_t)i);
        c.call.gradient = i % 2 ? KERNEL_BF16 : KERNEL_FP32;
        cuda_attention_case_forward(&c);
        CudaAttentionAnswer got = cuda_attention_backward_of(ATTENTION_TIER_CUDNN, &c);
        cuda_attention_case_backward(&c);
        expect_close(rows[i / 2].name, "dq", got.dq, c.dq, c.dq_size, BF16);
        expect_close(rows[i / 2].name, "dk", got.dk, c.dk, c.dkv_size, BF16);
        expect_close(rows[i / 2].name, "dv", got.dv, c.dv, c.dkv_size, BF16);
        if (c.call.gradient == KERNEL_FP32) {  // accumulated
            CudaAttentionAnswer twice = cuda_attention_backward_again(ATTENTION_TIER_CUDNN, &c, &got);
            for (int64_t j = 0; j < c.dq_size; j++) {
                cr_assert_eq(twice.dq[j], 2.0f * got.dq[j]);
            }
            for (int64_t j = 0; j < c.dkv_size; j++) {
                cr_assert(twice.dk[j] == 2.0f * got.dk[j] && twice.dv[j] == 2.0f * got.dv[j]);
            }
            cuda_attention_answer_free(&twice);
        }
        cuda_attention_answer_free(&got);
        cuda_attention_case_free(&c);
    }
}

// Queries from 16 on against their own keys, then against those before them.
Test(cudnn_attention, a_second_block_is_merged_into_the_first, .init = load_stand_in) {
    enum { FIRST = 16, LENGTH = 12 };
    const KernelAttention all = BLOCK(LENGTH, FIRST + LENGTH, FIRST, 0, 4, 2, 64, 8);
    CudaAttentionCase whole = cuda_attention_case(all, 1, 341);
    cuda_attention_case_forward(&whole);
    CudaAttentionCase part = whole;
    part.call.output = KERNEL_FP32;
    part.call.block.keys = LENGTH;
    part.call.block.k_first = FIRST;
    part.narrow_k += FIRST * all.kv_stride, part.narrow_v += FIRST * all.kv_stride;
    CudaAttentionAnswer own = cuda_attention_forward_of(ATTENTION_TIER_CUDNN, &part, NULL);
    part.narrow_k = whole.narrow_k, part.narrow_v = whole.narrow_v;
    part.call.block.keys = FIRST;
    part.call.block.k_first = 0;
    part.call.merge = true;
    CudaAttentionAnswer both = cuda_attention_forward_of(ATTENTION_TIER_CUDNN, &part, &own);
    expect_close("merged", "o", both.o, whole.o, whole.o_size, BF16);
    expect_close("merged", "lse", both.lse, whole.lse, whole.lse_size, LSE);
    cuda_attention_answer_free(&own), cuda_attention_answer_free(&both);
    cuda_attention_case_free(&whole);
}
