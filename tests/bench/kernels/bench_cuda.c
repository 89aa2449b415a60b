// Device buffers of the CUDA benchmark, and the check of a case against the CPU.

#include "tests/bench/kernels/bench_cuda.h"

#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/kernels/bench_cuda_parts.h"

static float value_of(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void *host_room(BenchCudaWant *want, int64_t count, size_t element_bytes) {
    return want->copies[want->count++] = calloc((size_t)count, element_bytes);
}

static float *floats_of(BenchCudaWant *want, KernelStore store, const void *at, int64_t count) {
    float *x = host_room(want, count, sizeof *x);
    void *raw = malloc((size_t)(count * kernel_store_bytes(store)));
    if (cudaMemcpy(raw, at, (size_t)(count * kernel_store_bytes(store)), cudaMemcpyDeviceToHost) != cudaSuccess) {
        x[0] = NAN;
    }
    for (int64_t i = 0; i < count; i++) {
        x[i] = store == KERNEL_BF16 ? value_of(((uint16_t *)raw)[i]) : ((float *)raw)[i];
    }
    free(raw);
    return x;
}

float *host_of(BenchCudaWant *want, const BenchCuda *bench, const void *at, int64_t count) {
    return floats_of(want, bench->store, at, count);
}

float *host_floats(BenchCudaWant *want, const float *at, int64_t count) {
    return floats_of(want, KERNEL_FP32, at, count);
}

int32_t *host_ints(BenchCudaWant *want, const int32_t *at, int64_t count) {
    int32_t *x = host_room(want, count, sizeof *x);
    if (cudaMemcpy(x, at, (size_t)count * sizeof *x, cudaMemcpyDeviceToHost) != cudaSuccess) {
        memset(x, 0xFF, (size_t)count * sizeof *x);  // invalid entries and positions: the case fails
    }
    return x;
}

float *expect(BenchCudaWant *want, int output, const void *at, KernelStore store, int64_t count) {
    want->outputs[output] = (BenchCudaOutput){at, store, count, host_room(want, count, sizeof(float))};
    return want->outputs[output].expected;
}

float *expect_from(BenchCudaWant *want, int output, const void *at, KernelStore store, int64_t count) {
    want->outputs[output] = (BenchCudaOutput){at, store, count, floats_of(want, store, at, count)};
    return want->outputs[output].expected;
}

void host_round(KernelStore store, int64_t count, float *x) {
    for (int64_t i = 0; store == KERNEL_BF16 && i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        x[i] = value_of((uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16));  // nearest, ties to even
    }
}

static int64_t workspace_bytes(const BenchCuda *b) {
    const KernelNormBackward back = {.rows = b->tokens, .cols = b->hidden};
    const KernelEmbed embed = {.rows = b->tokens, .cols = b->hidden};
    const int64_t needs[] = {kernel_cuda_norm_backward_workspace(&b->at, &back),
                             kernel_cuda_embed_backward_workspace(&embed),
                             kernel_cuda_column_sum_workspace(&b->at, b->tokens, b->ffn),
                             kernel_cuda_square_sum_workspace(&b->at), bench_route_workspace(b->tokens)};
    int64_t most = 0;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        most = needs[i] > most ? needs[i] : most;
    }
    return most;
}

int bench_cuda_open(BenchCuda *b) {
    b->size = b->tokens * (b->ffn > b->hidden ? b->ffn : b->hidden);
    b->at.workspace_bytes = workspace_bytes(b);
    const size_t stored = (size_t)(b->size * kernel_store_bytes(b->store)), floats = (size_t)b->size * sizeof(float);
    const size_t per_row = (size_t)b->tokens * sizeof(float);
    const int64_t table = b->vocabulary * (b->tokens > b->hidden ? b->tokens : b->hidden);
    const struct {
        void *place;
        size_t bytes;
    } all[] = {{&b->a, stored},
               {&b->b, stored},
               {&b->c, stored},
               {&b->d, stored},
               {&b->e, stored},
               {&b->f, stored},
               {&b->g, floats},
               {&b->m, floats},
               {&b->v, floats},
               {&b->x, floats},
               {&b->rows[0], per_row},
               {&b->rows[1], per_row},
               {&b->rows[2], per_row},
               {&b->rows[3], per_row},
               {&b->scalars, 256},
               {&b->entries, per_row},
               {&b->positions, per_row},
               {&b->at.workspace, (size_t)b->at.workspace_bytes},
               {&b->places, BENCH_CUDA_VISITS * per_row},
               {&b->logits, (size_t)(table * kernel_store_bytes(b->store))}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const cudaError_t error = cudaMalloc(all[i].place, all[i].bytes);
        if (error != cudaSuccess) {
            return (int)error;
        }
    }
    return (int)cudaStreamCreateWithFlags(&b->at.stream, cudaStreamNonBlocking);
}

void bench_cuda_close(BenchCuda *b) {
    void *const all[] = {b->a,       b->b,       b->c,       b->d,         b->e,       b->f,           b->g,
                         b->m,       b->v,       b->x,       b->logits,    b->rows[0], b->rows[1],     b->rows[2],
                         b->rows[3], b->scalars, b->entries, b->positions, b->places,  b->at.workspace};
    if (b->at.stream) {
        cudaStreamDestroy(b->at.stream);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cudaFree(all[i]);
    }
}

static int fill_rows(const BenchCuda *b) {
    int32_t *entries = malloc((size_t)b->tokens * 2 * sizeof *entries), *positions = entries + b->tokens;
    const float scalars[2] = {0.0f, 0.5f};  // [1]: the clip scale of AdamW
    uint32_t seed = 1;
    for (int64_t i = 0; i < b->tokens; i++) {
        seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' linear congruential generator
        entries[i] = (int32_t)((seed >> 4) % (uint64_t)b->vocabulary);
        positions[i] = (int32_t)(i % 8192);
    }
    const int64_t choices = b->tokens * BENCH_CUDA_VISITS;
    int32_t *places = malloc((size_t)choices * sizeof *places);
    for (int64_t i = 0; i < choices; i++) {
        places[i] = (int32_t)(i * 7919 % choices);  // a prime that divides no number of choices here
    }
    const size_t bytes = (size_t)b->tokens * sizeof *entries;
    int error = (int)cudaMemcpy(b->places, places, BENCH_CUDA_VISITS * bytes, cudaMemcpyHostToDevice);
    free(places);
    error = error ? error : (int)cudaMemcpy(b->entries, entries, bytes, cudaMemcpyHostToDevice);
    error = error ? error : (int)cudaMemcpy(b->positions, positions, bytes, cudaMemcpyHostToDevice);
    error = error ? error : (int)cudaMemcpy(b->scalars, scalars, sizeof scalars, cudaMemcpyHostToDevice);
    free(entries);
    return error;
}

int bench_cuda_fill(const BenchCuda *b) {
    void *const stored[] = {b->a, b->b, b->c, b->d, b->e, b->f, b->logits};
    float *const floats[] = {b->g, b->m, b->x, b->rows[0], b->rows[1], b->rows[2], b->rows[3]};
    int error = fill_rows(b);
    KernelNormal numbers = {.key = 5, .scale = 1.0f / 65536.0f};
    for (size_t i = 0; !error && i < sizeof stored / sizeof *stored; i++) {
        numbers.stream = i;
        error = kernel_cuda_normal(&b->at, b->store, &numbers, i < 6 ? b->size : b->tokens * b->vocabulary, stored[i]);
    }
    for (size_t i = 0; !error && i < sizeof floats / sizeof *floats; i++) {
        numbers.stream = 100 + i;
        error = kernel_cuda_normal(&b->at, KERNEL_FP32, &numbers, i < 3 ? b->size : b->tokens, floats[i]);
    }
    // Second moments are not negative.
    const KernelGated squares = {KERNEL_SILU, 1, b->size, b->size};
    error = error ? error : kernel_cuda_zero(&b->at, b->size * (int64_t)sizeof(float), b->v);
    error = error ? error : kernel_cuda_gated(&b->at, KERNEL_FP32, &squares, b->v, b->v, b->v);
    return error ? error : (int)cudaStreamSynchronize(b->at.stream);
}

static double error_of(BenchCudaWant *want, const BenchCudaOutput *output) {
    const bool integers = (int)output->store == BENCH_CUDA_INTEGERS;
    const int32_t *whole = integers ? host_ints(want, output->at, output->count) : NULL;
    const float *got = integers ? NULL : floats_of(want, output->store, output->at, output->count);
    double off = 0.0, largest = 1e-30;
    for (int64_t i = 0; i < output->count && !isnan(off); i++) {
        const double difference = fabs((integers ? whole[i] : (double)got[i]) - (double)output->expected[i]);
        off = difference > off || isnan(difference) ? difference : off;
        largest = fmax(largest, fabs((double)output->expected[i]));
    }
    return isnan(off) ? INFINITY : off / largest;
}

double bench_cuda_error(const BenchCuda *bench, const BenchCudaCase *checked, int64_t rows) {
    BenchCudaWant want = {0};
    double most = 0.0;
    if (bench_cuda_fill(bench) != 0) {
        return INFINITY;
    }
    checked->want(bench, rows, &want);
    if (checked->run(bench, rows) != 0 || cudaStreamSynchronize(bench->at.stream) != cudaSuccess) {
        most = INFINITY;
    }
    for (int i = 0; i < BENCH_CUDA_OUTPUTS; i++) {
        most = want.outputs[i].expected ? fmax(most, error_of(&want, &want.outputs[i])) : most;
    }
    for (int i = 0; i < want.count; i++) {
        free(want.copies[i]);
    }
    return most;
}

double bench_cuda_limit(KernelStore store) {
    return store == KERNEL_BF16 ? 0x1p-7 : 1e-5;  // one unit in the last of 8 bits; a few roundings of fp32
}
