// The GPU's attention tiers under the stand-in against the CPU's attention, backward. o and lse come from the CPU in
// fp32, so that only the backward pass differs; our own kernel rounds probabilities and score gradients to bf16.

#include "tests/support/cuda_host/cuda_host.h"
#include "tests/unit/kernels/check.h"
#include "tests/unit/kernels/cuda/attention_case.h"

#include <criterion/criterion.h>
#include <string.h>

static const double CORES = 1e-2, SCALAR = 2e-5;

typedef struct Row {
    const char *name;
    KernelAttention block;
    int64_t sequences;
    KernelStore gradient;
    bool deterministic;
} Row;

static const Row rows[] = {
    {"causal, groups of two", BLOCK(150, 150, 0, 0, 2, 1, 64, 0), 1, KERNEL_FP32, false},
    {"one query, one key", BLOCK(1, 1, 0, 0, 1, 1, 64, 0), 1, KERNEL_BF16, false},
    {"all keys seen, gaps, two sequences", BLOCK(37, 75, 300, 100, 2, 1, 64, 8), 2, KERNEL_FP32, true},
    {"head_dim 128, odd lengths", BLOCK(70, 140, 70, 0, 2, 2, 128, 0), 1, KERNEL_BF16, false},
    {"keys begin among the queries", BLOCK(150, 90, 40, 101, 1, 1, 64, 0), 1, KERNEL_FP32, true},
    {"wholly in the future", BLOCK(20, 140, 0, 64, 1, 1, 128, 0), 1, KERNEL_BF16, true},
};
enum { ROWS = sizeof rows / sizeof *rows };

static CudaAttentionCase case_of(const Row *row, uint64_t seed) {
    CudaAttentionCase c = cuda_attention_case(row->block, row->sequences, seed);
    c.call.gradient = row->gradient;
    c.call.deterministic = row->deterministic;
    cuda_attention_case_forward(&c);
    return c;
}

static void expect_backward(AttentionTier tier, const Row *row, CudaAttentionCase *c, double tolerance) {
    CudaAttentionAnswer got = cuda_attention_backward_of(tier, c);
    cuda_attention_case_backward(c);
    const double dq = check_distance_f(got.dq, c->dq, c->dq_size), dk = check_distance_f(got.dk, c->dk, c->dkv_size);
    const double dv = check_distance_f(got.dv, c->dv, c->dkv_size);
    // A query that sees one key has no score gradient: a relative error is undefined.
    const bool flat = row->block.keys == 1;
    cr_expect(flat || dq < tolerance, "%s, %s: dq is off by %g", attention_tier_name(tier), row->name, dq);
    cr_expect(flat || dk < tolerance, "%s, %s: dk is off by %g", attention_tier_name(tier), row->name, dk);
    cr_expect_lt(dv, tolerance, "%s, %s: dv is off by %g", attention_tier_name(tier), row->name, dv);
    cuda_attention_answer_free(&got);
}

Test(cuda_attention_backward, our_own_kernel_agrees_with_the_cpu_in_every_block) {
    for (int i = 0; i < ROWS; i++) {
        CudaAttentionCase c = case_of(&rows[i], 131 + (uint64_t)i);
        expect_backward(ATTENTION_TIER_OWN, &rows[i], &c, CORES);
        cuda_attention_case_free(&c);
    }
}

Test(cuda_attention_backward, our_own_kernel_agrees_where_warpgroups_multiply) {
    cuda_host_groups(true);
    for (int i = 0; i < ROWS; i++) {
        CudaAttentionCase c = case_of(&rows[i], 141 + (uint64_t)i);
        expect_backward(ATTENTION_TIER_OWN, &rows[i], &c, CORES);
        cuda_attention_case_free(&c);
    }
    Row window = {"a window", BLOCK(200, 300, 100, 0, 1, 1, 64, 0), 1, KERNEL_FP32, false};
    window.block.window = 70;
    CudaAttentionCase c = case_of(&window, 149);
    expect_backward(ATTENTION_TIER_OWN, &window, &c, CORES);
    cuda_attention_case_free(&c);
}

Test(cuda_attention_backward, the_scalar_kernel_agrees_with_the_cpu_in_every_block) {
    Row small[] = {
        {"causal, groups of two", BLOCK(27, 27, 0, 0, 2, 1, 64, 0), 1, KERNEL_FP32, true},
        {"all keys seen, gaps, two sequences", BLOCK(9, 15, 300, 100, 2, 1, 24, 8), 2, KERNEL_BF16, true},
        {"keys begin among the queries", BLOCK(30, 18, 8, 21, 1, 1, 128, 0), 1, KERNEL_FP32, false},
        {"wholly in the future", BLOCK(5, 7, 0, 64, 1, 1, 256, 0), 1, KERNEL_BF16, false},
        {"ALiBi", BLOCK(20, 24, 4, 0, 3, 1, 40, 0), 1, KERNEL_FP32, false},
    };
    small[4].block.alibi_heads = 12, small[4].block.alibi_first = 5;
    for (int i = 0; i < 5; i++) {
        CudaAttentionCase c = case_of(&small[i], 151 + (uint64_t)i);
        c.call.input = i % 2 ? KERNEL_BF16 : KERNEL_FP32;
        expect_backward(ATTENTION_TIER_SCALAR, &small[i], &c, small[i].gradient == KERNEL_BF16 ? CORES : SCALAR);
        cuda_attention_case_free(&c);
    }
}

// In deterministic mode every query tile takes its turn, whether it sees the keys or not.
Test(cuda_attention_backward, a_window_lets_nothing_through_from_before_it) {
    static const Row windows[] = {
        {"several tiles", BLOCK(300, 300, 0, 0, 1, 1, 64, 0), 1, KERNEL_FP32, false},
        {"several tiles in line", BLOCK(300, 300, 0, 0, 1, 1, 64, 0), 1, KERNEL_FP32, true},
        {"queries begin among the keys", BLOCK(66, 190, 77, 0, 2, 1, 128, 0), 1, KERNEL_BF16, false},
        {"some see none any more", BLOCK(70, 75, 150, 100, 1, 1, 64, 0), 1, KERNEL_BF16, true},
    };
    static const int64_t widths[] = {70, 70, 64, 40};
    for (int i = 0; i < 4; i++) {
        Row row = windows[i];
        row.block.window = widths[i];
        CudaAttentionCase c = case_of(&row, 161 + (uint64_t)i);
        expect_backward(ATTENTION_TIER_OWN, &row, &c, CORES);
        cuda_attention_case_free(&c);
    }
    Row small = {"scalar", BLOCK(30, 34, 8, 4, 2, 1, 24, 0), 1, KERNEL_FP32, false};
    small.block.window = 9;
    CudaAttentionCase c = case_of(&small, 171);
    c.call.input = KERNEL_FP32;
    expect_backward(ATTENTION_TIER_SCALAR, &small, &c, SCALAR);
    cuda_attention_case_free(&c);
}

Test(cuda_attention_backward, fp32_gradients_are_added_to_what_is_there) {
    for (AttentionTier tier = ATTENTION_TIER_SCALAR; tier <= ATTENTION_TIER_OWN; tier++) {
        const Row row = {"added", BLOCK(40, 48, 8, 0, 1, 1, 64, 0), 1, KERNEL_FP32, true};
        CudaAttentionCase c = case_of(&row, 181);
        CudaAttentionAnswer once = cuda_attention_backward_of(tier, &c);
        CudaAttentionAnswer twice = cuda_attention_backward_again(tier, &c, &once);
        for (int64_t i = 0; i < c.dq_size; i++) {
            cr_assert_eq(twice.dq[i], 2.0f * once.dq[i]);
        }
        for (int64_t i = 0; i < c.dkv_size; i++) {
            cr_assert(twice.dk[i] == 2.0f * once.dk[i] && twice.dv[i] == 2.0f * once.dv[i]);
        }
        cuda_attention_answer_free(&once), cuda_attention_answer_free(&twice);
        cuda_attention_case_free(&c);
    }
}

// Whether a query gradient, a sum over four blocks' parts, has the same bits under five orders of threads and blocks.
static bool is_repeatable(bool deterministic) {
    const Row row = {"order", BLOCK(33, 400, 367, 0, 2, 1, 64, 0), 1, KERNEL_FP32, deterministic};
    CudaAttentionCase c = case_of(&row, 191);
    cuda_host_seed(1);
    CudaAttentionAnswer first = cuda_attention_backward_of(ATTENTION_TIER_OWN, &c);
    bool same = true;
    for (uint64_t seed = 2; seed <= 5; seed++) {
        cuda_host_seed(seed);
        CudaAttentionAnswer next = cuda_attention_backward_of(ATTENTION_TIER_OWN, &c);
        same = same && memcmp(first.dq, next.dq, (size_t)c.dq_size * sizeof(float)) == 0;
        cr_assert_arr_eq(first.dk, next.dk, (size_t)c.dkv_size * sizeof(float), "dk and dv have one order always");
        cr_assert_arr_eq(first.dv, next.dv, (size_t)c.dkv_size * sizeof(float));
        cuda_attention_answer_free(&next);
    }
    cuda_attention_answer_free(&first);
    cuda_attention_case_free(&c);
    return same;
}

Test(cuda_attention_backward, deterministic_gradients_have_the_same_bits_in_every_order_of_blocks) {
    cr_expect(is_repeatable(true));
    cr_expect_not(is_repeatable(false), "the orders are too alike for this test to see anything");
}

// The ring: each block of keys adds its part, given the final o and lse.
Test(cuda_attention_backward, the_blocks_of_a_ring_add_up_to_the_whole) {
    enum { CUT = 64, KEYS = 136 };
    const Row row = {"ring", BLOCK(72, KEYS, 64, 0, 2, 1, 64, 0), 1, KERNEL_FP32, false};
    CudaAttentionCase c = case_of(&row, 201);
    CudaAttentionAnswer whole = cuda_attention_backward_of(ATTENTION_TIER_OWN, &c), parts[2];
    for (int i = 0; i < 2; i++) {
        CudaAttentionCase part = c;
        part.call.block.k_first = i * CUT;
        part.call.block.keys = i ? KEYS - CUT : CUT;
        part.narrow_k += i * CUT * c.call.block.kv_stride;
        part.narrow_v += i * CUT * c.call.block.kv_stride;
        parts[i] = cuda_attention_backward_of(ATTENTION_TIER_OWN, &part);
    }
    float *sum = check_zeros(c.dq_size);
    for (int64_t i = 0; i < c.dq_size; i++) {
        sum[i] = parts[0].dq[i] + parts[1].dq[i];
    }
    const double dq = check_distance_f(sum, whole.dq, c.dq_size);
    cr_expect_lt(dq, 1e-5, "dq is off by %g", dq);
    const int64_t cut = CUT * c.call.block.kv_stride;
    cr_expect_lt(check_distance_f(parts[0].dk, whole.dk, cut), 1e-5);
    cr_expect_lt(check_distance_f(parts[1].dk, whole.dk + cut, c.dkv_size - cut), 1e-5);
    free(sum);
    cuda_attention_answer_free(&whole), cuda_attention_answer_free(&parts[0]), cuda_attention_answer_free(&parts[1]);
    cuda_attention_case_free(&c);
}
