// The cases of layers of experts: a token visits two of 64, in places that the bench has shuffled.

#include "kernels/bench/bench_cuda_parts.h"

enum { EXPERTS = 64 };

static int64_t element(const BenchCuda *b) {
    return kernel_store_bytes(b->store);
}

// ---- the choice: logits a, weights g, places m, rows of experts v

static KernelRoute route_shape(int64_t rows) {
    return (KernelRoute){.rows = rows, .experts = EXPERTS, .active = BENCH_CUDA_VISITS};
}

int64_t bench_route_workspace(int64_t rows) {
    const KernelRoute shape = route_shape(rows);
    return kernel_cuda_route_workspace(&shape);
}

int run_route(const BenchCuda *b, int64_t rows) {
    const KernelRoute shape = route_shape(rows);
    return kernel_cuda_route(&b->at, b->store, &shape, b->a, NULL, b->g, (int32_t *)(void *)b->m,
                             (int32_t *)(void *)b->v);
}

static void expect_integers(BenchCudaOutput *output, const void *at, int64_t count, const int32_t *integers) {
    expect(output, at, (KernelStore)BENCH_CUDA_INTEGERS, count);
    for (int64_t i = 0; i < count; i++) {
        output->expected[i] = (float)integers[i];
    }
}

void want_route(const BenchCuda *b, int64_t rows, BenchCudaOutput *out) {
    const KernelRoute shape = route_shape(rows);
    const int64_t choices = rows * BENCH_CUDA_VISITS;
    float *logits = host_of(b, b->a, rows * EXPERTS);
    int32_t *places = calloc((size_t)(choices + EXPERTS), sizeof *places), *counts = places + choices;
    expect(&out[0], b->g, KERNEL_FP32, choices);
    kernel_route(&shape, logits, out[0].expected, places, counts);
    expect_integers(&out[1], b->m, choices, places);
    expect_integers(&out[2], b->v, EXPERTS, counts);
    free(logits), free(places);
}

int64_t bytes_route(const BenchCuda *b, int64_t rows) {
    return rows * (element(b) * EXPERTS + 4 * 4 * BENCH_CUDA_VISITS);  // places: written, read, read and written
}

// ---- rows to their places and back

static KernelSpread spread_shape(const BenchCuda *b, int64_t rows, const int32_t *places) {
    return (KernelSpread){rows, b->hidden, BENCH_CUDA_VISITS, places};
}

static int64_t all_places(const BenchCuda *b) {
    return b->tokens * BENCH_CUDA_VISITS;
}

int run_spread(const BenchCuda *b, int64_t rows) {
    const KernelSpread shape = spread_shape(b, rows, b->places);
    return kernel_cuda_spread(&b->at, b->store, &shape, b->a, b->c);
}

void want_spread(const BenchCuda *b, int64_t rows, BenchCudaOutput *out) {
    const int64_t count = all_places(b) * b->hidden;
    int32_t *places = host_ints(b->places, all_places(b));
    const KernelSpread shape = spread_shape(b, rows, places);
    float *x = host_of(b, b->a, rows * b->hidden);
    out[0] = (BenchCudaOutput){b->c, b->store, count, host_of(b, b->c, count)};
    kernel_spread(&shape, x, out[0].expected);
    free(places), free(x);
}

int64_t bytes_spread(const BenchCuda *b, int64_t rows) {
    return (1 + BENCH_CUDA_VISITS) * element(b) * rows * b->hidden;
}

int run_collect(const BenchCuda *b, int64_t rows) {
    const KernelCudaCollect collect = {
        .shape = spread_shape(b, rows, b->places), .weights = b->g, .y = b->a, .more = b->b, .x = b->c};
    return kernel_cuda_collect(&b->at, b->store, &collect);
}

void want_collect(const BenchCuda *b, int64_t rows, BenchCudaOutput *out) {
    int32_t *places = host_ints(b->places, all_places(b));
    const KernelSpread shape = spread_shape(b, rows, places);
    float *y = host_of(b, b->a, all_places(b) * b->hidden), *more = host_of(b, b->b, rows * b->hidden);
    float *weights = host_floats(b->g, rows * BENCH_CUDA_VISITS);
    expect(&out[0], b->c, b->store, rows * b->hidden);
    kernel_collect(&shape, weights, y, more, out[0].expected);
    free(places), free(y), free(more), free(weights);
}

int64_t bytes_collect(const BenchCuda *b, int64_t rows) {
    return (2 + BENCH_CUDA_VISITS) * element(b) * rows * b->hidden;
}

int run_collect_backward(const BenchCuda *b, int64_t rows) {
    const KernelSpread shape = spread_shape(b, rows, b->places);
    return kernel_cuda_collect_backward(&b->at, b->store, &shape, b->g, b->d, b->a, b->c, b->m);
}

void want_collect_backward(const BenchCuda *b, int64_t rows, BenchCudaOutput *out) {
    const int64_t count = all_places(b) * b->hidden;
    int32_t *places = host_ints(b->places, all_places(b));
    const KernelSpread shape = spread_shape(b, rows, places);
    float *dx = host_of(b, b->d, rows * b->hidden), *y = host_of(b, b->a, count);
    float *weights = host_floats(b->g, rows * BENCH_CUDA_VISITS);
    out[0] = (BenchCudaOutput){b->c, b->store, count, host_of(b, b->c, count)};
    expect(&out[1], b->m, KERNEL_FP32, rows * BENCH_CUDA_VISITS);
    kernel_collect_backward(&shape, weights, dx, y, out[0].expected, out[1].expected);
    free(places), free(dx), free(y), free(weights);
}

int64_t bytes_collect_backward(const BenchCuda *b, int64_t rows) {
    return (1 + 2 * BENCH_CUDA_VISITS) * element(b) * rows * b->hidden;
}
