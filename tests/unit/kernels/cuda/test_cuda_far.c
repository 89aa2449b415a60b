// Rows more than 2^31 elements apart, as those of a long batch of logits are from its first: kernels must compute the
// same as for the same rows close together. Memory in between is never touched, so that it costs nothing.

#define _GNU_SOURCE  // MAP_NORESERVE

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/cuda/attention.h"
#include "tests/unit/kernels/cuda/held.h"

enum { ROWS = 3, NEAR = 192, WIDTH = 64, BF16_BYTES = 2 };
static const int64_t FAR = ((int64_t)1 << 31) + 64;

// The same rows of bf16 numbers in two places.
typedef struct Pair {
    uint16_t *close, *far;
} Pair;

static Pair pair_open(uint16_t first) {
    const size_t bytes = (size_t)(ROWS * FAR * BF16_BYTES);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    Pair pair = {calloc(ROWS * NEAR, BF16_BYTES), mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0)};
    if (pair.far == MAP_FAILED) {
        cr_skip_test("no room for addresses");
    }
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < NEAR; i++) {  // 0.5 to 2, all of them different
            pair.close[row * NEAR + i] = pair.far[row * FAR + i] = (uint16_t)(first + (row * NEAR + i) % 256);
        }
    }
    return pair;
}

static void pair_close(Pair *pair, const char *what) {
    for (int row = 0; row < ROWS; row++) {
        cr_expect_arr_eq(&pair->far[row * FAR], &pair->close[row * NEAR], NEAR * BF16_BYTES, "%s, row %d", what, row);
    }
    munmap(pair->far, (size_t)(ROWS * FAR * BF16_BYTES));
    free(pair->close);
}

typedef void Work(const KernelCuda *at, uint16_t *x, uint16_t *y, int64_t stride);

static void check(Work *work, const char *what) {
    Draw draw = {.seed = 1};
    Pair x = pair_open(0x3F00), y = pair_open(0x3F40);
    KernelCuda at = place_open(&draw, 0);
    work(&at, x.close, y.close, NEAR);
    work(&at, x.far, y.far, FAR);
    place_close(&at);
    pair_close(&x, what);
    pair_close(&y, what);
}

static void copy(const KernelCuda *at, uint16_t *x, uint16_t *y, int64_t stride) {
    const KernelCudaCopy rows = {KERNEL_BF16, KERNEL_BF16, ROWS, NEAR, stride, stride};
    cr_assert_eq(kernel_cuda_copy_rows(at, &rows, x, y), 0);
}

static void turn(const KernelCuda *at, uint16_t *x, uint16_t *y, int64_t stride) {
    static const int32_t position[ROWS] = {1, 7, 100};
    const KernelRope shape = {.heads = 2, .head_dim = WIDTH, .turning = WIDTH, .stride = stride, .theta = 1e4};
    (void)y;
    cr_assert_eq(kernel_cuda_rope(at, KERNEL_BF16, ROWS, &shape, position, x), 0);
}

static void gate(const KernelCuda *at, uint16_t *x, uint16_t *y, int64_t stride) {
    const KernelGated shape = {.rows = ROWS, .cols = WIDTH, .stride = stride};
    uint16_t ds[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) {
        ds[i] = (uint16_t)(0x3E80 + i);
    }
    cr_assert_eq(kernel_cuda_gated_backward(at, KERNEL_BF16, &shape, ds, x, x + WIDTH, y, y + WIDTH), 0);
    place_wait(at);
}

static void norm(const KernelCuda *at, uint16_t *x, uint16_t *y, int64_t stride) {
    const KernelStretches shape = {
        .rows = ROWS, .parts = 2, .width = WIDTH, .stride = stride, .before_stride = stride, .rstd_stride = 2};
    float rstd[ROWS * 2];
    uint16_t w[WIDTH];
    memcpy(w, x, sizeof w);
    cr_assert_eq(kernel_cuda_stretch_norm(at, KERNEL_BF16, &shape, 1e-5f, w, x, y, rstd), 0);
    place_wait(at);
}

// q, k and v adjacent in a row of x; the result in y.
static void attend(const KernelCuda *at, uint16_t *x, uint16_t *y, int64_t stride, AttentionTier tier) {
    const AttentionMeans means = {.arch = 90, .shared_bytes = 227 * 1024};
    const CudaAttention call = {.block = {.queries = ROWS,
                                          .keys = ROWS,
                                          .heads = 1,
                                          .kv_heads = 1,
                                          .head_dim = WIDTH,
                                          .q_stride = stride,
                                          .kv_stride = stride,
                                          .o_stride = stride,
                                          .lse_stride = ROWS},
                                .sequences = 1,
                                .input = KERNEL_BF16,
                                .output = KERNEL_BF16};
    float lse[ROWS];
    AttentionPlan plan;
    char why[ATTENTION_WHY_BYTES];
    cr_assert(cuda_attention_plan(tier, &call, &means, NULL, &plan, why), "%s", why);
    const AttentionData data = {.q = x, .k = x + WIDTH, .v = x + 2 * WIDTH, .o = y, .lse = lse};
    cr_assert_eq(cuda_attention(&plan, NULL, &data, at->stream), 0);
    place_wait(at);
}

static void attend_own(const KernelCuda *at, uint16_t *x, uint16_t *y, int64_t stride) {
    attend(at, x, y, stride, ATTENTION_TIER_OWN);
}

static void attend_scalar(const KernelCuda *at, uint16_t *x, uint16_t *y, int64_t stride) {
    attend(at, x, y, stride, ATTENTION_TIER_SCALAR);
}

Test(cuda_far, rows_beyond_two_to_the_31_elements_are_reached) {
    check(copy, "copy");
    check(turn, "rope");
    check(gate, "gate");
    check(norm, "norm");
    check(attend_own, "attention, own");
    check(attend_scalar, "attention, scalar");
}
