// The GPU's attention tiers under the stand-in against the CPU's attention, forward. Inputs are bf16 numbers, so that
// both see the same; the tolerances are the error of rounding the probabilities to bf16 (2^-9 of each, of values below
// 1), and the result's own rounding if it is bf16.

#include "tests/support/cuda_host/cuda_host.h"
#include "tests/unit/kernels/check.h"
#include "tests/unit/kernels/cuda/attention_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static const double CORES = 5e-3, CORES_BF16 = 9e-3, SCALAR = 5e-6, LSE = 2e-6;

typedef struct Row {
    const char *name;
    KernelAttention block;
    int64_t sequences;
} Row;

static const Row rows[] = {
    {"a causal block, several tiles", BLOCK(200, 200, 0, 0, 1, 1, 64, 0), 1},
    {"one query, one key", BLOCK(1, 1, 0, 0, 1, 1, 64, 0), 1},
    {"all keys seen, odd lengths", BLOCK(37, 75, 300, 100, 2, 1, 64, 8), 1},
    {"head_dim 128, groups of three, two sequences, gaps", BLOCK(70, 70, 0, 0, 3, 1, 128, 16), 2},
    {"keys begin among the queries: some see none", BLOCK(150, 90, 40, 101, 1, 1, 64, 0), 1},
    {"queries begin among the keys", BLOCK(66, 190, 77, 0, 2, 2, 128, 0), 1},
    {"wholly in the future", BLOCK(20, 20, 0, 64, 2, 1, 64, 0), 1},
    {"positions beyond 2^32", BLOCK(65, 130, 5000000064, 5000000000, 1, 1, 64, 0), 1},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void expect_forward(AttentionTier tier, const Row *row, CudaAttentionCase *c, double tolerance) {
    CudaAttentionAnswer got = cuda_attention_forward_of(tier, c, NULL);
    cuda_attention_case_forward(c);
    const double o = check_distance_f(got.o, c->o, c->o_size), lse = check_distance_f(got.lse, c->lse, c->lse_size);
    cr_expect_lt(o, tolerance, "%s, %s: o is off by %g", attention_tier_name(tier), row->name, o);
    cr_expect_lt(lse, LSE, "%s, %s: lse is off by %g", attention_tier_name(tier), row->name, lse);
    cuda_attention_answer_free(&got);
}

Test(cuda_attention, our_own_kernel_agrees_with_the_cpu_in_every_block) {
    const uint64_t before = cuda_host_blocks();
    for (int i = 0; i < ROWS; i++) {
        CudaAttentionCase c = cuda_attention_case(rows[i].block, rows[i].sequences, 31 + (uint64_t)i);
        c.call.output = i % 2 ? KERNEL_BF16 : KERNEL_FP32;
        expect_forward(ATTENTION_TIER_OWN, &rows[i], &c, i % 2 ? CORES_BF16 : CORES);
        cuda_attention_case_free(&c);
    }
    cr_assert_gt(cuda_host_blocks(), before);
}

Test(cuda_attention, our_own_kernel_agrees_where_warpgroups_multiply) {
    cuda_host_groups(true);
    for (int i = 0; i < ROWS; i++) {
        CudaAttentionCase c = cuda_attention_case(rows[i].block, rows[i].sequences, 41 + (uint64_t)i);
        expect_forward(ATTENTION_TIER_OWN, &rows[i], &c, CORES);
        cuda_attention_case_free(&c);
    }
    KernelAttention window = BLOCK(200, 300, 100, 0, 1, 1, 64, 0);
    window.window = 70;
    CudaAttentionCase c = cuda_attention_case(window, 1, 49);
    expect_forward(ATTENTION_TIER_OWN, &(Row){"a window", window, 1}, &c, CORES);
    cuda_attention_case_free(&c);
}

Test(cuda_attention, the_scalar_kernel_agrees_with_the_cpu_in_every_block_in_fp32_and_bf16) {
    static const Row small[] = {
        {"causal, groups, two sequences, gaps", BLOCK(21, 21, 0, 0, 3, 1, 128, 16), 2},
        {"all keys seen", BLOCK(9, 30, 300, 100, 2, 1, 64, 8), 1},
        {"keys begin among the queries", BLOCK(30, 20, 8, 21, 1, 1, 64, 0), 1},
        {"wholly in the future", BLOCK(5, 5, 0, 64, 2, 1, 64, 0), 1},
        {"positions beyond 2^32", BLOCK(10, 25, 5000000016, 5000000000, 1, 1, 64, 0), 1},
    };
    for (int i = 0; i < 5; i++) {
        CudaAttentionCase c = cuda_attention_case(small[i].block, small[i].sequences, 51 + (uint64_t)i);
        c.call.input = i % 2 ? KERNEL_BF16 : KERNEL_FP32;
        c.call.output = i % 3 ? KERNEL_FP32 : KERNEL_BF16;
        expect_forward(ATTENTION_TIER_SCALAR, &small[i], &c, i % 3 ? SCALAR : CORES_BF16);
        cuda_attention_case_free(&c);
    }
}

Test(cuda_attention, the_scalar_kernel_serves_every_head_dim_and_alibi) {
    const int head_dims[] = {8, 24, 96, 256};
    for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; i++) {
        KernelAttention block = BLOCK(20, 24, 4, 0, 3, 1, head_dims[i], 0);
        block.alibi_heads = i % 2 ? 12 : 0;  // not a power of two
        block.alibi_first = i % 2 ? 5 : 0;
        CudaAttentionCase c = cuda_attention_case(block, 1, 71 + i);
        c.call.input = KERNEL_FP32;
        expect_forward(ATTENTION_TIER_SCALAR, &(Row){"any head_dim", block, 1}, &c, SCALAR);
        cuda_attention_case_free(&c);
    }
}

// Windows that begin in the middle of a tile and at its edge, of one key, and before all keys of the block.
Test(cuda_attention, a_window_hides_the_keys_before_it) {
    static const Row windows[] = {
        {"several tiles", BLOCK(200, 200, 0, 0, 1, 1, 64, 0), 1},
        {"queries begin among the keys", BLOCK(66, 190, 77, 0, 2, 1, 128, 8), 1},
        {"each sees itself", BLOCK(40, 40, 0, 0, 1, 1, 64, 0), 2},
        {"some see none any more", BLOCK(70, 75, 150, 100, 1, 1, 64, 0), 1},
    };
    static const int64_t widths[] = {70, 64, 1, 40};
    for (int i = 0; i < 4; i++) {
        KernelAttention block = windows[i].block;
        block.window = widths[i];
        CudaAttentionCase c = cuda_attention_case(block, windows[i].sequences, 101 + (uint64_t)i);
        expect_forward(ATTENTION_TIER_OWN, &windows[i], &c, CORES);
        cuda_attention_case_free(&c);
        block.queries = block.queries / 4, block.keys = block.keys / 4, block.window = (block.window + 3) / 4;
        block.q_first = block.q_first / 4, block.k_first = block.k_first / 4, block.lse_stride = block.queries;
        CudaAttentionCase small = cuda_attention_case(block, windows[i].sequences, 111 + (uint64_t)i);
        small.call.input = KERNEL_FP32;
        expect_forward(ATTENTION_TIER_SCALAR, &windows[i], &small, SCALAR);
        cuda_attention_case_free(&small);
    }
}

// Keys of one sequence in blocks of these starts, in ring order, against queries from q_first on: a zigzag rank's
// second half, say, sees its own keys, then a block before them, one in the future, and one that its last queries see.
static void expect_merge(AttentionTier tier, int head_dim, double tolerance) {
    const int64_t starts[] = {128, 0, 256, 168}, keys[] = {40, 128, 64, 88};
    enum { ALL_KEYS = 320, QUERIES = 72, FIRST = 128 };
    const KernelAttention all = BLOCK(QUERIES, ALL_KEYS, FIRST, 0, 2, 1, head_dim, 0);
    CudaAttentionCase whole = cuda_attention_case(all, 1, 91);
    cuda_attention_case_forward(&whole);
    CudaAttentionAnswer sum = {0};
    for (int i = 0; i < 4; i++) {
        CudaAttentionCase part = whole;
        part.call.block.k_first = starts[i];
        part.call.block.keys = keys[i];
        part.narrow_k += starts[i] * all.kv_stride;
        part.narrow_v += starts[i] * all.kv_stride;
        part.call.merge = i > 0;
        CudaAttentionAnswer next = cuda_attention_forward_of(tier, &part, i > 0 ? &sum : NULL);
        if (starts[i] >= FIRST + QUERIES) {
            cr_expect_arr_eq(next.o, sum.o, (size_t)whole.o_size * sizeof(float), "what sees nothing changes nothing");
            cr_expect_arr_eq(next.lse, sum.lse, (size_t)whole.lse_size * sizeof(float));
        }
        cuda_attention_answer_free(&sum);
        sum = next;
    }
    const double o = check_distance_f(sum.o, whole.o, whole.o_size);
    const double lse = check_distance_f(sum.lse, whole.lse, whole.lse_size);
    cr_expect_lt(o, tolerance, "%s: o is off by %g", attention_tier_name(tier), o);
    cr_expect_lt(lse, LSE, "%s: lse is off by %g", attention_tier_name(tier), lse);
    cuda_attention_answer_free(&sum);
    cuda_attention_case_free(&whole);
}

Test(cuda_attention, merged_blocks_of_a_ring_equal_the_whole) {
    expect_merge(ATTENTION_TIER_OWN, 64, CORES);
    expect_merge(ATTENTION_TIER_OWN, 128, CORES);
    expect_merge(ATTENTION_TIER_SCALAR, 24, SCALAR);
}

Test(cuda_attention, queries_that_saw_nothing_yet_take_the_first_block_that_they_see) {
    for (AttentionTier tier = ATTENTION_TIER_SCALAR; tier <= ATTENTION_TIER_OWN; tier++) {
        CudaAttentionCase c = cuda_attention_case((KernelAttention)BLOCK(40, 40, 0, 0, 1, 1, 64, 0), 1, 95);
        CudaAttentionAnswer nothing = {.o = calloc((size_t)c.o_size, 4), .lse = malloc((size_t)c.lse_size * 4)};
        for (int64_t i = 0; i < c.lse_size; i++) {
            nothing.lse[i] = -INFINITY;
        }
        CudaAttentionAnswer plain = cuda_attention_forward_of(tier, &c, NULL);
        c.call.merge = true;
        CudaAttentionAnswer merged = cuda_attention_forward_of(tier, &c, &nothing);
        cr_expect_arr_eq(merged.o, plain.o, (size_t)c.o_size * sizeof(float), "%s", attention_tier_name(tier));
        cr_expect_arr_eq(merged.lse, plain.lse, (size_t)c.lse_size * sizeof(float));
        cuda_attention_answer_free(&nothing), cuda_attention_answer_free(&plain), cuda_attention_answer_free(&merged);
        cuda_attention_case_free(&c);
    }
}
