// Counts every malloc, calloc, realloc and aligned_alloc of the process while each kernel runs, by standing in for
// glibc's.

#include "kernels/latent.h"
#include "tests/unit/kernels/attention_reference.h"
#include "tests/unit/kernels/check.h"

#include <criterion/criterion.h>
#include <stdatomic.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define STANDS_IN 0
#else
#define STANDS_IN 1
#endif

static atomic_int watching, allocations;

#if STANDS_IN
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    allocations += watching;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    allocations += watching;
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
    allocations += watching;
    return __libc_realloc(old, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    allocations += watching;
    return __libc_memalign(alignment, size);
}
#endif

enum { ROWS = 256, COLS = 256, SIZE = ROWS * COLS };

typedef struct Work {
    float *a, *b, *c, *d, *row;
    int32_t tokens[ROWS];
} Work;

static void run_streaming(Work *w) {
    const float one = 1.0f;
    const KernelAdamw adamw = {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 1};
    const KernelEmbed table = {ROWS, COLS, 0, ROWS, 1.0f};
    const KernelStretches heads = {ROWS, 2, COLS / 2, COLS, COLS, 2};
    const KernelRope rope = {4, 64, 64, COLS, 10000.0, .backward = false};
    const KernelGated gated = {KERNEL_SILU, ROWS, COLS, COLS};
    kernel_gemm(false, true, ROWS, ROWS, COLS, w->a, w->b, w->c, true);
    kernel_embed(&table, w->tokens, w->a, w->c, false);
    kernel_embed_backward(&table, w->tokens, w->a, w->c, false);
    kernel_rmsnorm(ROWS, COLS, 1e-5f, w->a, w->b, w->c, w->row);
    kernel_rmsnorm_backward(ROWS, COLS, w->a, w->b, w->b, w->row, NULL, w->c, w->d, false);
    kernel_layernorm(ROWS, COLS, 1e-5f, w->a, w->b, w->b, w->c, w->row, w->row + ROWS);
    kernel_layernorm_backward(ROWS, COLS, w->a, w->b, w->b, w->row, w->row + ROWS, NULL, w->c, w->d, false);
    kernel_stretch_norm(&heads, 1e-5f, w->a, w->c, w->d, w->row);
    kernel_stretch_norm_backward(&heads, w->a, w->d, w->row, w->c, w->b, false);
    kernel_rope(ROWS, &rope, w->tokens, w->c);
    kernel_activation(KERNEL_GELU, SIZE, w->a, w->c);
    kernel_activation_backward(KERNEL_GELU_TANH, SIZE, w->a, w->b, w->c);
    kernel_gated(&gated, w->a, w->b, w->c);
    kernel_gated_backward(&gated, w->a, w->b, w->b, w->c, w->d);
    kernel_normal(&(KernelNormal){1, 2, 3, 0.5f}, SIZE, w->c);
    kernel_add_bias(ROWS, COLS, w->a, w->b, w->b, w->c);
    kernel_copy_rows(ROWS, COLS, 0, COLS, w->b, w->c);
    kernel_column_sum(ROWS, COLS, w->a, w->c, false);
    kernel_add(SIZE, w->a, w->b, w->c);
    kernel_copy_rows(ROWS, COLS, COLS, COLS, w->a, w->c);
    kernel_zero(SIZE, w->c);
    kernel_square_sum(SIZE, 10, 0.5, w->a, w->row, false);
    kernel_adamw(SIZE, 0, &adamw, &one, w->a, w->b, w->c, w->d);
    kernel_loss_cap(SIZE, 0.5f, w->a);
    const KernelLoss loss = {ROWS, COLS, 0, w->tokens, w->row, w->row + ROWS, w->row + 2 * ROWS, 1.0f, 0};
    kernel_loss_max(&loss, w->a);
    kernel_loss_sum(&loss, w->a);
    kernel_loss_gradient(&loss, w->a, w->d, false);
}

static void run_experts(Work *w) {
    enum { EXPERTS = 8, ACTIVE = 2, HALF = ROWS / 2 };
    const KernelRoute route = {.rows = HALF, .experts = EXPERTS, .active = ACTIVE, .unscaled = true};
    const KernelSpread spread = {HALF, COLS, ACTIVE, w->tokens};
    int32_t counts[EXPERTS];
    kernel_route(&route, w->a, w->row, w->tokens, counts);
    kernel_route_backward(&route, w->a, w->row, w->tokens, counts, w->b, w->c);
    kernel_count_visits(&route, HALF, w->tokens, counts, w->row);
    kernel_balance_backward(&route, HALF, 1.0f, w->row, w->a, w->c);
    kernel_join_keys(&(KernelKeys){HALF, 1, 8, 8, 8, COLS}, w->a, w->b, w->c);
    kernel_part_keys(&(KernelKeys){HALF, 1, 8, 8, 8, COLS}, w->a, w->b, w->c, w->d);
    kernel_spread(&spread, w->a, w->c);
    kernel_collect(&spread, w->row, w->c, NULL, w->d);
    kernel_collect_backward(&spread, w->row, w->d, w->c, w->b, w->row);
    const KernelGroups groups = {1, EXPERTS, counts};
    kernel_regroup(&groups, COLS, true, w->b, w->c);
    kernel_grouped_gemm(&groups, true, false, EXPERTS, EXPERTS, w->a, w->b, w->c, false);
}

static void run_attention(const AttentionCase *c, float *const out[6]) {
    kernel_attention(&c->shape, c->q, c->k, c->v, out[0], out[1], false);
    kernel_attention_delta(&c->shape, out[0], c->d_o, out[2]);
    kernel_attention_backward(&c->shape, c->q, c->k, c->v, c->d_o, out[1], out[2], out[3], c->shape.q_stride, out[4],
                              out[5], c->shape.kv_stride);
}

static int count_allocations(int threads) {
    Work w = {check_floats(SIZE, 1), check_floats(SIZE, 2), check_zeros(SIZE),
              check_zeros(SIZE),     check_zeros(3 * ROWS), {0}};
    for (int i = 0; i < ROWS; i++) {
        w.tokens[i] = i * 3 % ROWS;
    }
    const AttentionCase c = attention_case(attention_shapes[2], 1);
    float *const out[6] = {check_zeros(c.o_size), check_zeros(c.lse_size), check_zeros(c.lse_size),
                           check_zeros(c.q_size), check_zeros(c.kv_size),  check_zeros(c.kv_size)};
    kernel_set_threads(threads);
    allocations = 0;
    watching = 1;
    run_streaming(&w);
    run_experts(&w);
    run_attention(&c, out);
    watching = 0;
    return allocations;
}

Test(kernels, the_count_sees_an_allocation) {
    if (!STANDS_IN) {
        cr_skip_test("a sanitizer owns malloc");
    }
    watching = 1;
    void *volatile p = malloc(10);
    watching = 0;
    free(p);
    cr_assert_eq(allocations, 1);
}

Test(kernels, none_allocates_on_one_thread) {
    if (!STANDS_IN) {
        cr_skip_test("a sanitizer owns malloc");
    }
    cr_assert_eq(count_allocations(1), 0);
}

Test(kernels, none_allocates_on_two_threads) {
    if (!STANDS_IN) {
        cr_skip_test("a sanitizer owns malloc");
    }
    cr_assert_eq(count_allocations(2), 0);
}
