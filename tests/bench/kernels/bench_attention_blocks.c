// Blocks of a ring on the GPU, cuDNN's tier next to our own: the causal one of a chunk with itself, and the one of a
// chunk with earlier keys, merged into what the first left; forward, then backward with gradients accumulated in fp32.
// Chunks are laid out as a rank's two are: both chunks' token rows, and log-sum-exps of a head, adjacent. Prints a
// Markdown table with each result's largest error, relative to the largest number.
//   bench_attention_blocks
// Exit status: 1 when one is wrong, 3 without a GPU.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/kernels/bench_attention.h"

// One chunk: only the causal block, its log-sum-exps in `local` places per head.
typedef struct Row {
    int chunks;
    int64_t chunk, local, sequences;
    int heads, kv_heads, head_dim;
} Row;

static const Row rows[] = {
    {1, 64, 64, 3, 8, 8, 64},    {1, 64, 128, 3, 8, 8, 64},   {2, 64, 128, 3, 8, 8, 64},   {2, 12, 24, 24, 32, 4, 64},
    {1, 100, 100, 2, 8, 2, 128}, {1, 100, 200, 2, 8, 2, 128}, {2, 100, 200, 2, 8, 2, 128}, {2, 256, 512, 2, 4, 1, 128},
};

enum { RESULTS = 5 };
static const char *const result_names[RESULTS] = {"o", "lse", "dq", "dk", "dv"};

// Device buffers of a row: both chunks of every sequence.
typedef struct Buffers {
    CudaAttention call;
    int chunks;
    int64_t q_size, kv_size, lse_size;
    void *q, *k, *v, *d_o, *o_narrow;
    float *delta;
    float *result[RESULTS];
    void *workspace;
} Buffers;

static bool take(void *place, int64_t bytes) {
    void *memory = NULL;
    const bool taken = cudaMalloc(&memory, (size_t)bytes) == cudaSuccess &&
                       cudaMemset(memory, 0xFF, (size_t)bytes) == cudaSuccess;  // NaN, to expose unwritten values
    memcpy(place, &memory, sizeof memory);
    return taken;
}

static bool take_numbers(void *place, int64_t count, uint64_t seed) {
    uint16_t *numbers = malloc((size_t)count * sizeof *numbers);
    void *memory = NULL;
    if (numbers) {
        bench_attention_fill(numbers, count, seed);
    }
    const bool taken = numbers && take(&memory, 2 * count) &&
                       cudaMemcpy(memory, numbers, (size_t)count * 2, cudaMemcpyHostToDevice) == cudaSuccess;
    memcpy(place, &memory, sizeof memory);
    free(numbers);
    return taken;
}

static bool buffers_open(Buffers *b, const Row *row) {
    const BenchAttentionShape shape = {row->chunk,    row->local,    row->sequences, row->heads,
                                       row->kv_heads, row->head_dim, KERNEL_FP32};
    *b = (Buffers){.call = bench_attention_call(&shape), .chunks = row->chunks};
    b->q_size = b->call.q_sequence * row->sequences;
    b->kv_size = b->call.kv_sequence * row->sequences;
    b->lse_size = b->call.lse_sequence * row->sequences;
    return take_numbers(&b->q, b->q_size, 1) && take_numbers(&b->k, b->kv_size, 2) &&
           take_numbers(&b->v, b->kv_size, 3) && take_numbers(&b->d_o, b->q_size, 4) &&
           take(&b->o_narrow, 2 * b->q_size) && take(&b->delta, 4 * b->lse_size) &&
           take(&b->result[0], 4 * b->q_size) && take(&b->result[1], 4 * b->lse_size) &&
           take(&b->result[2], 4 * b->q_size) && take(&b->result[3], 4 * b->kv_size) &&
           take(&b->result[4], 4 * b->kv_size) && take(&b->workspace, 256 << 20);
}

static void buffers_close(Buffers *b) {
    void *const all[] = {b->q,         b->k,         b->v,         b->d_o,       b->o_narrow,  b->delta,
                         b->result[0], b->result[1], b->result[2], b->result[3], b->result[4], b->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cudaFree(all[i]);
    }
}

// One block: a query chunk and a key chunk.
typedef struct Block {
    int query, key;
} Block;
static const Block blocks[] = {{0, 0}, {1, 1}, {1, 0}};

static int blocks_of(const Buffers *b) {
    return b->chunks == 1 ? 1 : (int)(sizeof blocks / sizeof *blocks);
}

static bool block_run(Bench *bench, AttentionTier tier, const Buffers *b, const Block *block, bool backward) {
    AttentionPlan plan;
    CudaAttention call = b->call;
    call.backward = backward;
    call.merge = !backward && block->query != block->key;
    call.output = backward ? KERNEL_BF16 : KERNEL_FP32;
    call.block.q_first = block->query * call.block.queries;
    call.block.k_first = block->key * call.block.keys;
    if (!cuda_attention_plan(tier, &call, &bench->means, bench->cudnn, &plan, bench->why)) {
        return false;
    }
    const KernelAttention *s = &call.block;
    const int64_t q = s->q_first * s->q_stride, kv = s->k_first * s->kv_stride;
    const AttentionData data = {.q = (const uint16_t *)b->q + q,
                                .k = (const uint16_t *)b->k + kv,
                                .v = (const uint16_t *)b->v + kv,
                                .o = backward ? (void *)((uint16_t *)b->o_narrow + q) : b->result[0] + q,
                                .lse = b->result[1] + s->q_first,
                                .d_o = (const uint16_t *)b->d_o + q,
                                .delta = b->delta + s->q_first,
                                .dq = b->result[2] + q,
                                .dk = b->result[3] + kv,
                                .dv = b->result[4] + kv,
                                .workspace = b->workspace};
    const int code = cuda_attention(&plan, bench->cudnn, &data, NULL);
    const cudaError_t error = cudaDeviceSynchronize();
    if (code || error) {
        snprintf(bench->why, sizeof bench->why, "code %d, %s", code, cudaGetErrorString(error));
    }
    return code == 0 && error == cudaSuccess;
}

// Rounds o to bf16, as a step keeps it.
static bool narrow(const Buffers *b) {
    const int64_t width = b->call.block.o_stride;
    const KernelCuda at = {.processors = 1};
    const KernelCudaCopy all = {KERNEL_FP32, KERNEL_BF16, b->q_size / width, width, width, width};
    return kernel_cuda_copy_rows(&at, &all, b->result[0], b->o_narrow) == 0;
}

static bool whole(Bench *bench, AttentionTier forward, AttentionTier backward, const Buffers *b) {
    CudaAttention all = b->call;
    all.block.queries *= b->chunks;
    all.output = KERNEL_BF16;
    bool right = true;
    for (int at = 0; at < blocks_of(b); at++) {
        right = right && block_run(bench, forward, b, &blocks[at], false);
    }
    right = right && narrow(b) && cuda_attention_delta(&all, b->o_narrow, b->d_o, b->delta, NULL) == 0;
    const int64_t bytes[RESULTS] = {0, 0, 4 * b->q_size, 4 * b->kv_size, 4 * b->kv_size};
    for (int i = 2; i < RESULTS; i++) {
        right = right && cudaMemset(b->result[i], 0, (size_t)bytes[i]) == cudaSuccess;
    }
    for (int at = 0; at < blocks_of(b); at++) {
        right = right && block_run(bench, backward, b, &blocks[at], true);
    }
    return right;
}

// Clears places that no block writes, so that they compare equal.
static bool cleared(const Buffers *b) {
    return cudaMemset(b->result[0], 0, (size_t)(4 * b->q_size)) == cudaSuccess &&
           cudaMemset(b->result[1], 0, (size_t)(4 * b->lse_size)) == cudaSuccess;
}

static float *host_of(const float *at, int64_t count) {
    float *numbers = malloc((size_t)count * sizeof *numbers);
    if (numbers && cudaMemcpy(numbers, at, (size_t)count * sizeof *numbers, cudaMemcpyDeviceToHost) != cudaSuccess) {
        free(numbers);
        return NULL;
    }
    return numbers;
}

// Errors of a pair of tiers, with our own for both passes as the reference.
static bool errors_of(Bench *bench, AttentionTier forward, AttentionTier backward, const Row *row,
                      double errors[RESULTS]) {
    Buffers want, got;
    const bool open = buffers_open(&want, row), both = buffers_open(&got, row) && open;
    snprintf(bench->why, sizeof bench->why, "no device memory");
    const bool right = both && cleared(&want) && cleared(&got) &&
                       whole(bench, ATTENTION_TIER_OWN, ATTENTION_TIER_OWN, &want) &&
                       whole(bench, forward, backward, &got);
    const int64_t counts[RESULTS] = {got.q_size, got.lse_size, got.q_size, got.kv_size, got.kv_size};
    for (int i = 0; right && i < RESULTS; i++) {
        float *expected = host_of(want.result[i], counts[i]);
        errors[i] = bench_attention_distance(got.result[i], KERNEL_FP32, expected, counts[i]);
        free(expected);
    }
    buffers_close(&want);
    buffers_close(&got);
    return right;
}

static bool row_print(Bench *bench, AttentionTier forward, AttentionTier backward, const Row *row) {
    double errors[RESULTS];
    bool right = errors_of(bench, forward, backward, row, errors);
    printf("| %s, %s | %lld x %d x %lld | %lld | %d, %d of %d |", attention_tier_name(forward),
           attention_tier_name(backward), (long long)row->sequences, row->chunks, (long long)row->chunk,
           (long long)row->local, row->heads, row->kv_heads, row->head_dim);
    if (!right) {
        printf(" FAILED: %s |||||\n", bench->why);
        return false;
    }
    for (int i = 0; i < RESULTS; i++) {
        const bool wrong = !(errors[i] <= BENCH_ATTENTION_LIMIT);
        printf(" %.1e%s |", errors[i], wrong ? " WRONG" : "");
        right = right && !wrong;
    }
    printf("\n");
    return right;
}

int main(void) {
    struct cudaDeviceProp device;
    Bench bench;
    if (!bench_attention_open("bench_attention_blocks", &device, &bench)) {
        return 3;
    }
    if (!bench.cudnn) {
        printf("NOT RUN: %s\n", bench.why);
        return 0;
    }
    printf("%s, cuDNN %zu: blocks of a ring against our own, bf16\n\n", device.name,
           cudnn_attention_version(bench.cudnn));
    printf("| forward, backward | sequences x chunks x length | places of lse | heads |");
    for (int i = 0; i < RESULTS; i++) {
        printf(" %s |", result_names[i]);
    }
    printf("\n|---|---|---|---|---|---|---|---|---|\n");
    bool right = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        right = row_print(&bench, ATTENTION_TIER_CUDNN, ATTENTION_TIER_OWN, &rows[i]) && right;
        right = row_print(&bench, ATTENTION_TIER_OWN, ATTENTION_TIER_CUDNN, &rows[i]) && right;
    }
    cudnn_attention_close(bench.cudnn);
    return right ? 0 : 1;
}
