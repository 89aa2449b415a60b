// The cases of MoE layers: a token visits two of 64 experts, in places that the bench has shuffled.

#include "tests/bench/kernels/bench_cuda_parts.h"

enum { EXPERTS = 64 };

static int64_t element(const BenchCuda *b) {
    return kernel_store_bytes(b->store);
}

// ---- routing: logits a, weights g, places m, rows of experts v

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

static void expect_integers(BenchCudaWant *want, int output, const void *at, int64_t count, const int32_t *integers) {
    float *expected = expect(want, output, at, (KernelStore)BENCH_CUDA_INTEGERS, count);
    for (int64_t i = 0; i < count; i++) {
        expected[i] = (float)integers[i];
    }
}

void want_route(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const KernelRoute shape = route_shape(rows);
    const int64_t choices = rows * BENCH_CUDA_VISITS;
    int32_t *places = host_room(want, choices + EXPERTS, sizeof *places), *counts = places + choices;
    kernel_route(&shape, host_of(want, b, b->a, rows * EXPERTS), expect(want, 0, b->g, KERNEL_FP32, choices), places,
                 counts);
    expect_integers(want, 1, b->m, choices, places);
    expect_integers(want, 2, b->v, EXPERTS, counts);
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

void want_spread(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const KernelSpread shape = spread_shape(b, rows, host_ints(want, b->places, all_places(b)));
    kernel_spread(&shape, host_of(want, b, b->a, rows * b->hidden),
                  expect_from(want, 0, b->c, b->store, all_places(b) * b->hidden));
}

int64_t bytes_spread(const BenchCuda *b, int64_t rows) {
    return (1 + BENCH_CUDA_VISITS) * element(b) * rows * b->hidden;
}

int run_collect(const BenchCuda *b, int64_t rows) {
    const KernelCudaCollect collect = {
        .shape = spread_shape(b, rows, b->places), .weights = b->g, .y = b->a, .more = b->b, .x = b->c};
    return kernel_cuda_collect(&b->at, b->store, &collect);
}

void want_collect(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const KernelSpread shape = spread_shape(b, rows, host_ints(want, b->places, all_places(b)));
    kernel_collect(&shape, host_floats(want, b->g, rows * BENCH_CUDA_VISITS),
                   host_of(want, b, b->a, all_places(b) * b->hidden), host_of(want, b, b->b, rows * b->hidden),
                   expect(want, 0, b->c, b->store, rows * b->hidden));
}

int64_t bytes_collect(const BenchCuda *b, int64_t rows) {
    return (2 + BENCH_CUDA_VISITS) * element(b) * rows * b->hidden;
}

int run_collect_backward(const BenchCuda *b, int64_t rows) {
    const KernelSpread shape = spread_shape(b, rows, b->places);
    return kernel_cuda_collect_backward(&b->at, b->store, &shape, b->g, b->d, b->a, b->c, b->m);
}

void want_collect_backward(const BenchCuda *b, int64_t rows, BenchCudaWant *want) {
    const int64_t count = all_places(b) * b->hidden;
    const KernelSpread shape = spread_shape(b, rows, host_ints(want, b->places, all_places(b)));
    kernel_collect_backward(&shape, host_floats(want, b->g, rows * BENCH_CUDA_VISITS),
                            host_of(want, b, b->d, rows * b->hidden), host_of(want, b, b->a, count),
                            expect_from(want, 0, b->c, b->store, count),
                            expect(want, 1, b->m, KERNEL_FP32, rows * BENCH_CUDA_VISITS));
}

int64_t bytes_collect_backward(const BenchCuda *b, int64_t rows) {
    return (1 + 2 * BENCH_CUDA_VISITS) * element(b) * rows * b->hidden;
}
