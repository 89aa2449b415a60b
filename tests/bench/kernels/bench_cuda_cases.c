// The cases: how each kernel of kernels/cuda is called, what kernels/cpu computes from the same numbers, and the bytes
// that must be moved.

#include <string.h>

#include "tests/bench/kernels/bench_cuda_parts.h"

static const KernelAdamw ADAMW = {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 2};
static const float EPS = 1e-5f, CLIP_SCALE = 0.5f;

static int64_t element(const BenchCuda *b) {
    return kernel_store_bytes(b->store);
}

// ---- norms: x a, w b, dy d, residual e

static int run_rmsnorm(const BenchCuda *b, int64_t rows) {
    const KernelNorm norm = {
        .rows = rows, .cols = b->hidden, .eps = EPS, .x = b->a, .w = b->b, .y = b->c, .rstd = b->rows[0]};
    return kernel_cuda_norm(&b->at, b->store, &norm);
}

static void want_rmsnorm(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const int64_t count = rows * b->hidden;
    kernel_rmsnorm(rows, b->hidden, EPS, host_of(want, b, b->a, count), host_of(want, b, b->b, b->hidden),
                   expect(want, 0, b->c, b->store, count), expect(want, 1, b->rows[0], KERNEL_FP32, rows));
}

static int64_t bytes_rmsnorm(const BenchCuda *b, int64_t rows) {
    return 2 * element(b) * rows * b->hidden;
}

static int run_add_rmsnorm(const BenchCuda *b, int64_t rows) {
    const KernelNorm norm = {.rows = rows,
                             .cols = b->hidden,
                             .eps = EPS,
                             .x = b->a,
                             .add = b->d,
                             .added = b->e,
                             .w = b->b,
                             .y = b->c,
                             .rstd = b->rows[0]};
    return kernel_cuda_norm(&b->at, b->store, &norm);
}

static void want_add_rmsnorm(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const int64_t count = rows * b->hidden;
    float *sum = expect(want, 0, b->e, b->store, count);
    kernel_add(count, host_of(want, b, b->a, count), host_of(want, b, b->d, count), sum);
    host_round(b->store, count, sum);
    kernel_rmsnorm(rows, b->hidden, EPS, sum, host_of(want, b, b->b, b->hidden), expect(want, 1, b->c, b->store, count),
                   expect(want, 2, b->rows[0], KERNEL_FP32, rows));
}

static int64_t bytes_add_rmsnorm(const BenchCuda *b, int64_t rows) {
    return 4 * element(b) * rows * b->hidden;
}

// rstd in rows[0] and mean in rows[1] are arbitrary numbers here.
static int norm_backward(const BenchCuda *b, int64_t rows, const float *mean) {
    const KernelNormBackward back = {.rows = rows,
                                     .cols = b->hidden,
                                     .dy = b->d,
                                     .x = b->a,
                                     .w = b->b,
                                     .mean = mean,
                                     .rstd = b->rows[0],
                                     .residual = b->e,
                                     .dx = b->c,
                                     .dw = b->m};
    return kernel_cuda_norm_backward(&b->at, b->store, KERNEL_FP32, &back);
}

static void want_norm_backward(const BenchCuda *b, int64_t rows, const float *mean, BenchCudaWant *want) {
    const int64_t count = rows * b->hidden;
    kernel_layernorm_backward(rows, b->hidden, host_of(want, b, b->d, count), host_of(want, b, b->a, count),
                              host_of(want, b, b->b, b->hidden), mean ? host_floats(want, mean, rows) : NULL,
                              host_floats(want, b->rows[0], rows), host_of(want, b, b->e, count),
                              expect(want, 0, b->c, b->store, count), expect(want, 1, b->m, KERNEL_FP32, b->hidden),
                              false);
}

static int run_rmsnorm_backward(const BenchCuda *b, int64_t rows) {
    return norm_backward(b, rows, NULL);
}

static void want_rmsnorm_backward(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    want_norm_backward(b, rows, NULL, want);
}

static int run_layernorm_backward(const BenchCuda *b, int64_t rows) {
    return norm_backward(b, rows, b->rows[1]);
}

static void want_layernorm_backward(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    want_norm_backward(b, rows, b->rows[1], want);
}

// ---- rows

static KernelRope rope_shape(const BenchCuda *b) {
    return (KernelRope){(int)(b->hidden / b->head_dim), b->head_dim, b->head_dim, b->hidden, 5e5, .backward = false};
}

static int run_rope(const BenchCuda *b, int64_t rows) {
    const KernelRope shape = rope_shape(b);
    return kernel_cuda_rope(&b->at, b->store, rows, &shape, b->positions, b->c);
}

static void want_rope(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const KernelRope shape = rope_shape(b);
    kernel_rope(rows, &shape, host_ints(want, b->positions, rows),
                expect_from(want, 0, b->c, b->store, rows * b->hidden));
}

static KernelGated gated_shape(const BenchCuda *b, int64_t rows) {
    return (KernelGated){KERNEL_SILU, rows, b->ffn, b->ffn};
}

static int run_swiglu(const BenchCuda *b, int64_t rows) {
    const KernelGated shape = gated_shape(b, rows);
    return kernel_cuda_gated(&b->at, b->store, &shape, b->a, b->b, b->c);
}

static void want_swiglu(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const KernelGated shape = gated_shape(b, rows);
    const int64_t count = rows * b->ffn;
    kernel_gated(&shape, host_of(want, b, b->a, count), host_of(want, b, b->b, count),
                 expect(want, 0, b->c, b->store, count));
}

static int64_t bytes_three(const BenchCuda *b, int64_t rows) {
    return 3 * element(b) * rows * b->ffn;
}

static int run_swiglu_backward(const BenchCuda *b, int64_t rows) {
    const KernelGated shape = gated_shape(b, rows);
    return kernel_cuda_gated_backward(&b->at, b->store, &shape, b->d, b->a, b->b, b->e, b->f);
}

static void want_swiglu_backward(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const KernelGated shape = gated_shape(b, rows);
    const int64_t count = rows * b->ffn;
    kernel_gated_backward(&shape, host_of(want, b, b->d, count), host_of(want, b, b->a, count),
                          host_of(want, b, b->b, count), expect(want, 0, b->e, b->store, count),
                          expect(want, 1, b->f, b->store, count));
}

static int64_t bytes_five(const BenchCuda *b, int64_t rows) {
    return 5 * element(b) * rows * b->ffn;
}

static int run_gelu(const BenchCuda *b, int64_t rows) {
    return kernel_cuda_activation(&b->at, b->store, KERNEL_GELU_TANH, rows * b->ffn, b->a, b->c);
}

static void want_gelu(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const int64_t count = rows * b->ffn;
    kernel_activation(KERNEL_GELU_TANH, count, host_of(want, b, b->a, count), expect(want, 0, b->c, b->store, count));
}

static int64_t bytes_two(const BenchCuda *b, int64_t rows) {
    return 2 * element(b) * rows * b->ffn;
}

// ---- embedding: the table uses the logits buffer

static KernelEmbed embed_shape(const BenchCuda *b, int64_t rows) {
    return (KernelEmbed){rows, b->hidden, 0, b->vocabulary, 1.0f};
}

static int run_embed_backward(const BenchCuda *b, int64_t rows) {
    const KernelEmbed shape = embed_shape(b, rows);
    return kernel_cuda_embed_backward(&b->at, b->store, b->store, &shape, b->entries, b->a, b->logits, false);
}

static void want_embed_backward(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const KernelEmbed shape = embed_shape(b, rows);
    kernel_embed_backward(&shape, host_ints(want, b->entries, rows), host_of(want, b, b->a, rows * b->hidden),
                          expect(want, 0, b->logits, b->store, b->vocabulary * b->hidden), false);
}

static int64_t bytes_embed_backward(const BenchCuda *b, int64_t rows) {
    return element(b) * b->hidden * (rows + b->vocabulary);
}

// ---- loss

static KernelLoss loss_shape(const BenchCuda *b, int64_t rows) {
    return (KernelLoss){rows, b->vocabulary, 0, b->entries, b->rows[0], b->rows[1], b->rows[2], 1.0f, 0};
}

static int run_loss(const BenchCuda *b, int64_t rows) {
    const KernelLoss loss = loss_shape(b, rows);
    return kernel_cuda_loss(&b->at, b->store, &loss, b->logits, b->scalars, false);
}

static void want_loss(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    float *three = host_room(want, 3 * rows, sizeof *three);
    const KernelLoss loss = {
        rows, b->vocabulary, 0, host_ints(want, b->entries, rows), three, three + rows, three + 2 * rows, 1.0f, 0};
    kernel_loss(&loss, expect_from(want, 0, b->logits, b->store, rows * b->vocabulary),
                expect(want, 1, b->scalars, KERNEL_FP32, 1), false);
}

static int64_t bytes_loss(const BenchCuda *b, int64_t rows) {
    return 2 * element(b) * rows * b->vocabulary;  // read for the sums, written for the gradient; reread from cache
}

// ---- flat buffers

static int run_add(const BenchCuda *b, int64_t rows) {
    return kernel_cuda_add(&b->at, b->store, rows * b->ffn, b->a, b->b, b->c);
}

static void want_add(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const int64_t count = rows * b->ffn;
    kernel_add(count, host_of(want, b, b->a, count), host_of(want, b, b->b, count),
               expect(want, 0, b->c, b->store, count));
}

static int run_widen(const BenchCuda *b, int64_t rows) {
    const KernelCudaCopy copy = {b->store, KERNEL_FP32, 1, rows * b->ffn, rows * b->ffn, rows * b->ffn};
    return kernel_cuda_copy_rows(&b->at, &copy, b->a, b->m);
}

static void want_widen(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const int64_t count = rows * b->ffn;
    memcpy(expect(want, 0, b->m, KERNEL_FP32, count), host_of(want, b, b->a, count), (size_t)count * sizeof(float));
}

static int64_t bytes_widen(const BenchCuda *b, int64_t rows) {
    return (element(b) + 4) * rows * b->ffn;
}

static int run_column_sum(const BenchCuda *b, int64_t rows) {
    return kernel_cuda_column_sum(&b->at, b->store, KERNEL_FP32, rows, b->ffn, b->a, b->m, false);
}

static void want_column_sum(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    kernel_column_sum(rows, b->ffn, host_of(want, b, b->a, rows * b->ffn), expect(want, 0, b->m, KERNEL_FP32, b->ffn),
                      false);
}

static int64_t bytes_one(const BenchCuda *b, int64_t rows) {
    return element(b) * rows * b->ffn;
}

static int run_square_sum(const BenchCuda *b, int64_t rows) {
    return kernel_cuda_square_sum(&b->at, b->store, rows * b->ffn, b->ffn, 0.5, b->a, b->scalars, false);
}

static void want_square_sum(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const int64_t count = rows * b->ffn;
    kernel_square_sum(count, b->ffn, 0.5, host_of(want, b, b->a, count), expect(want, 0, b->scalars, KERNEL_FP32, 1),
                      false);
}

static int run_adamw(const BenchCuda *b, int64_t rows) {
    const KernelCudaUpdate update = {.gradients = b->store,
                                     .state = KERNEL_FP32,
                                     .count = rows * b->ffn,
                                     .undecayed = b->hidden,
                                     .scale = b->scalars + 1,
                                     .gradient = b->a,
                                     .master = b->x,
                                     .moment1 = b->m,
                                     .moment2 = b->v,
                                     .working = b->store == KERNEL_BF16 ? b->c : NULL};
    return kernel_cuda_adamw(&b->at, &ADAMW, &update);
}

static void want_adamw(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const int64_t count = rows * b->ffn;
    kernel_adamw(count, b->hidden, &ADAMW, &CLIP_SCALE, host_of(want, b, b->a, count),
                 expect_from(want, 0, b->x, KERNEL_FP32, count), expect_from(want, 1, b->m, KERNEL_FP32, count),
                 expect_from(want, 2, b->v, KERNEL_FP32, count));
}

static int64_t bytes_adamw(const BenchCuda *b, int64_t rows) {
    return (element(b) + 6 * 4 + (b->store == KERNEL_BF16 ? 2 : 0)) * rows * b->ffn;
}

static int run_normal(const BenchCuda *b, int64_t rows) {
    const KernelNormal numbers = {7, 3, 11, 1.0f / 65536.0f};
    return kernel_cuda_normal(&b->at, b->store, &numbers, rows * b->ffn, b->c);
}

static void want_normal(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const KernelNormal numbers = {7, 3, 11, 1.0f / 65536.0f};
    float *expected = expect(want, 0, b->c, b->store, rows * b->ffn);
    kernel_normal(&numbers, rows * b->ffn, expected);
    host_round(b->store, rows * b->ffn, expected);
}

const BenchCudaCase bench_cuda_cases[] = {
    {"rmsnorm", run_rmsnorm, want_rmsnorm, bytes_rmsnorm},
    {"add and rmsnorm", run_add_rmsnorm, want_add_rmsnorm, bytes_add_rmsnorm},
    {"rmsnorm backward", run_rmsnorm_backward, want_rmsnorm_backward, bytes_add_rmsnorm},
    {"layernorm backward", run_layernorm_backward, want_layernorm_backward, bytes_add_rmsnorm},
    {"rope", run_rope, want_rope, bytes_rmsnorm},
    {"swiglu", run_swiglu, want_swiglu, bytes_three},
    {"swiglu backward", run_swiglu_backward, want_swiglu_backward, bytes_five},
    {"gelu, tanh", run_gelu, want_gelu, bytes_two},
    {"embedding backward", run_embed_backward, want_embed_backward, bytes_embed_backward},
    {"loss", run_loss, want_loss, bytes_loss},
    {"add", run_add, want_add, bytes_three},
    {"copy to fp32", run_widen, want_widen, bytes_widen},
    {"column sum", run_column_sum, want_column_sum, bytes_one},
    {"square sum", run_square_sum, want_square_sum, bytes_one},
    {"adamw", run_adamw, want_adamw, bytes_adamw},
    {"choice of experts", run_route, want_route, bytes_route},
    {"rows to experts", run_spread, want_spread, bytes_spread},
    {"sum of experts", run_collect, want_collect, bytes_collect},
    {"sum of experts backward", run_collect_backward, want_collect_backward, bytes_collect_backward},
    {"normal numbers", run_normal, want_normal, bytes_one},
};
const int bench_cuda_case_count = sizeof bench_cuda_cases / sizeof *bench_cuda_cases;
