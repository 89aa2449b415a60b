// Checks each attention tier of the GPU against the CPU's attention on a short sequence, then times it on the shape of
// a 70B layer (64 query heads, 8 key heads, head_dim 128, bf16, causal, one sequence) and prints a Markdown table with
// the target of each row (sim/SOURCES.md X4; cuDNN: 97 % of the figures that NVIDIA publishes for cuDNN 9.19 on an
// H200).
//   bench_attention_gpu [lengths, 4096 8192 when left out]
// The time is the median of 21 calls, measured by events. FLOPs count the unmasked part: 4 per query-key pair, head and
// dimension forward, 10 backward. Exit status: 1 when a tier is wrong, 3 without a GPU.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/kernels/bench_attention.h"

enum { HEADS = 64, KV_HEADS = 8, HEAD_DIM = 128, CHECKED = 300, NUMBERS = 1 << 20 };

typedef struct Row {
    const char *name;
    AttentionTier tier;
    bool backward, deterministic;
    double target_tflops[2];  // at 4096 and 8192; 0: none
} Row;

static const Row rows[] = {
    {"own forward", ATTENTION_TIER_OWN, false, false, {320, 335}},
    {"cuDNN forward", ATTENTION_TIER_CUDNN, false, false, {0.97 * 591, 0.97 * 644}},
    {"own backward", ATTENTION_TIER_OWN, true, false, {270, 295}},
    {"own backward, deterministic", ATTENTION_TIER_OWN, true, true, {0.85 * 270, 0.85 * 295}},
    {"cuDNN backward", ATTENTION_TIER_CUDNN, true, false, {0.97 * 474, 0.97 * 541}},
};

// Device buffers of one length.
typedef struct Buffers {
    CudaAttention call;
    int64_t q_size, kv_size;
    AttentionData data;
    float *delta;
} Buffers;

// A device buffer of `count` bf16 numbers, the same as the host's (seed).
static bool take_numbers(void **at, int64_t count, uint16_t *numbers, uint64_t seed) {
    bench_attention_fill(numbers, NUMBERS, seed);
    if (cudaMalloc(at, (size_t)count * sizeof *numbers) != cudaSuccess) {
        return false;
    }
    for (int64_t done = 0; done < count; done += NUMBERS) {
        const int64_t part = count - done < NUMBERS ? count - done : NUMBERS;
        if (cudaMemcpy((uint16_t *)*at + done, numbers, (size_t)part * sizeof *numbers, cudaMemcpyHostToDevice) !=
            cudaSuccess) {
            return false;
        }
    }
    return true;
}

static CudaAttention call_of(int64_t length) {
    return bench_attention_call(&(BenchAttentionShape){length, length, 1, HEADS, KV_HEADS, HEAD_DIM, KERNEL_BF16});
}

static bool take(void **at, int64_t bytes) {
    return cudaMalloc(at, (size_t)bytes) == cudaSuccess;
}

static bool buffers_open(Buffers *b, int64_t length) {
    *b = (Buffers){
        .call = call_of(length), .q_size = length * HEADS * HEAD_DIM, .kv_size = length * KV_HEADS * HEAD_DIM};
    uint16_t *numbers = malloc(NUMBERS * sizeof *numbers);
    void *inputs[4] = {NULL}, *outputs[6] = {NULL};
    const int64_t bytes[6] = {2 * b->q_size,  2 * b->q_size,      2 * b->kv_size,
                              2 * b->kv_size, 4 * HEADS * length, 4 * HEADS * length};
    bool right = numbers != NULL;
    for (int i = 0; i < 4; i++) {
        right = right && take_numbers(&inputs[i], i == 0 || i == 3 ? b->q_size : b->kv_size, numbers, (uint64_t)i + 1);
    }
    for (int i = 0; i < 6; i++) {
        right = right && take(&outputs[i], bytes[i]);
    }
    free(numbers);
    b->data = (AttentionData){.q = inputs[0],
                              .k = inputs[1],
                              .v = inputs[2],
                              .d_o = inputs[3],
                              .o = outputs[0],
                              .dq = outputs[1],
                              .dk = outputs[2],
                              .dv = outputs[3],
                              .lse = outputs[4]};
    b->delta = outputs[5];
    b->data.delta = b->delta;
    return right;
}

static void buffers_close(Buffers *b) {
    const void *const all[] = {b->data.q,  b->data.k,  b->data.v,  b->data.d_o, b->data.o,
                               b->data.dq, b->data.dk, b->data.dv, b->data.lse, b->delta};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cudaFree((void *)all[i]);
    }
}

// What a step runs for the row: our own backward pass needs delta first.
static int run(const Bench *bench, const AttentionPlan *plan, const Buffers *b) {
    int status = 0;
    if (plan->call.backward && plan->tier != ATTENTION_TIER_CUDNN) {
        status = cuda_attention_delta(&plan->call, b->data.o, b->data.d_o, b->delta, NULL);
    }
    return status ? status : cuda_attention(plan, bench->cudnn, &b->data, NULL);
}

// cuDNN has its own error messages.
static void failure_words(const Bench *bench, const AttentionPlan *plan, char *why) {
    const cudaError_t error = cudaGetLastError();
    const bool own = plan->tier == ATTENTION_TIER_CUDNN && error == cudaSuccess;
    snprintf(why, ATTENTION_WHY_BYTES, "%s", own ? cudnn_attention_error(bench->cudnn) : cudaGetErrorString(error));
}

// The plan of a row with its workspace; false with the reason in why.
static bool prepare(Bench *bench, const Row *row, Buffers *b, AttentionPlan *plan, char *why) {
    CudaAttention call = b->call;
    call.backward = row->backward;
    call.deterministic = row->deterministic;
    if (row->tier == ATTENTION_TIER_CUDNN && !bench->cudnn) {
        snprintf(why, ATTENTION_WHY_BYTES, "%s", bench->why);
        return false;
    }
    if (!cuda_attention_plan(row->tier, &call, &bench->means, bench->cudnn, plan, why)) {
        return false;
    }
    snprintf(why, ATTENTION_WHY_BYTES, "%lld bytes of workspace do not fit", (long long)plan->workspace_bytes);
    return take(&b->data.workspace, plan->workspace_bytes + 1);
}

// A backward pass needs the o and lse of a forward pass.
static bool forward_first(const Bench *bench, const Buffers *b) {
    AttentionPlan plan;
    char why[ATTENTION_WHY_BYTES];
    return cuda_attention_plan(ATTENTION_TIER_OWN, &b->call, &bench->means, NULL, &plan, why) &&
           cuda_attention(&plan, NULL, &b->data, NULL) == 0;
}

typedef struct Timed {
    const Bench *bench;
    const AttentionPlan *plan;
    const Buffers *buffers;
} Timed;

static int timed_run(const void *context) {
    const Timed *timed = context;
    return run(timed->bench, timed->plan, timed->buffers);
}

static double distance(const void *at, const float *want, int64_t count) {
    return bench_attention_distance(at, KERNEL_BF16, want, count);
}

// The CPU's attention for one length: o, dq, dk, dv.
typedef struct Reference {
    float *in[4], *o, *lse, *delta, *dq, *dk, *dv;
} Reference;

static Reference reference_of(int64_t length) {
    const KernelAttention shape = call_of(length).block;
    const int64_t q = length * HEADS * HEAD_DIM, kv = length * KV_HEADS * HEAD_DIM;
    uint16_t *numbers = malloc(NUMBERS * sizeof *numbers);
    Reference r = {.o = calloc((size_t)q, 4),
                   .lse = calloc((size_t)(HEADS * length), 4),
                   .delta = calloc((size_t)(HEADS * length), 4),
                   .dq = calloc((size_t)q, 4),
                   .dk = calloc((size_t)kv, 4),
                   .dv = calloc((size_t)kv, 4)};
    for (int i = 0; i < 4; i++) {
        const int64_t count = i == 0 || i == 3 ? q : kv;
        r.in[i] = malloc((size_t)count * sizeof(float));
        bench_attention_fill(numbers, NUMBERS, (uint64_t)i + 1);
        for (int64_t j = 0; j < count; j++) {
            r.in[i][j] = bench_attention_float(numbers[j % NUMBERS]);
        }
    }
    kernel_attention(&shape, r.in[0], r.in[1], r.in[2], r.o, r.lse, false);
    kernel_attention_delta(&shape, r.o, r.in[3], r.delta);
    kernel_attention_backward(&shape, r.in[0], r.in[1], r.in[2], r.in[3], r.lse, r.delta, r.dq, shape.q_stride, r.dk,
                              r.dv, shape.kv_stride);
    free(numbers);
    return r;
}

static void reference_free(Reference *r) {
    float *const all[] = {r->in[0], r->in[1], r->in[2], r->in[3], r->o, r->lse, r->delta, r->dq, r->dk, r->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]);
    }
}

// Error of a row on the short sequence; infinity with the reason in why when it did not run.
static double error_of(Bench *bench, const Row *row, const Reference *r, char *why) {
    Buffers b;
    AttentionPlan plan;
    double off = INFINITY;
    snprintf(why, ATTENTION_WHY_BYTES, "no device memory");
    if (buffers_open(&b, CHECKED) && forward_first(bench, &b) && prepare(bench, row, &b, &plan, why)) {
        snprintf(why, ATTENTION_WHY_BYTES, "wrong");
        if (run(bench, &plan, &b) == 0 && cudaDeviceSynchronize() == cudaSuccess) {
            off = row->backward
                      ? fmax(fmax(distance(b.data.dq, r->dq, b.q_size), distance(b.data.dk, r->dk, b.kv_size)),
                             distance(b.data.dv, r->dv, b.kv_size))
                      : distance(b.data.o, r->o, b.q_size);
        } else {
            failure_words(bench, &plan, why);
        }
    }
    cudaFree(b.data.workspace);
    buffers_close(&b);
    return off;
}

static double flop_of(const Row *row, int64_t length) {
    const double pairs = 0.5 * (double)length * (double)(length + 1);
    return (row->backward ? 10.0 : 4.0) * pairs * HEADS * HEAD_DIM;
}

static void time_row(Bench *bench, const Row *row, int64_t length, double error) {
    Buffers b;
    AttentionPlan plan;
    char why[ATTENTION_WHY_BYTES] = "no device memory";
    float ms = -1.0f;
    if (buffers_open(&b, length) && forward_first(bench, &b) && prepare(bench, row, &b, &plan, why)) {
        ms = bench_gpu_middle_ms(timed_run, &(Timed){bench, &plan, &b}, NULL);
        failure_words(bench, &plan, why);
    }
    if (ms < 0.0f) {
        printf("| %s | %lld | FAILED: %s ||||\n", row->name, (long long)length, why);
    } else {
        const double tflops = 1e-9 * flop_of(row, length) / (double)ms;
        const double target = length == 4096 ? row->target_tflops[0] : length == 8192 ? row->target_tflops[1] : 0.0;
        printf("| %s | %lld | %.3f | %.0f | %.0f%s | %.1e |\n", row->name, (long long)length, (double)ms, tflops,
               target, tflops < target ? " MISSED" : "", error);
    }
    fflush(stdout);
    cudaFree(b.data.workspace);
    buffers_close(&b);
}

static bool run_rows(Bench *bench, const int64_t *lengths, int count) {
    Reference reference = reference_of(CHECKED);
    bool right = true;
    printf("| pass | length | ms | TFLOP/s | target | error |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[ATTENTION_WHY_BYTES] = "";
        const double error = error_of(bench, &rows[i], &reference, why);
        if (!(error <= BENCH_ATTENTION_LIMIT)) {
            const bool absent = rows[i].tier == ATTENTION_TIER_CUDNN && !bench->cudnn;
            if (absent) {
                printf("| %s | | NOT RUN: %s ||||\n", rows[i].name, why);
            } else {
                printf("| %s | | FAILED: %s, error %.1e ||||\n", rows[i].name, why, error);
            }
            right = right && absent;
            continue;
        }
        for (int j = 0; j < count; j++) {
            time_row(bench, &rows[i], lengths[j], error);
        }
    }
    reference_free(&reference);
    return right;
}

int main(int argc, char **argv) {
    enum { MOST = 8 };
    int64_t lengths[MOST] = {4096, 8192};
    int count = 2;
    for (int i = 1; i < argc && i <= MOST; i++) {
        lengths[i - 1] = strtoll(argv[i], NULL, 10);
        count = i;
    }
    struct cudaDeviceProp device;
    Bench bench;
    if (!bench_attention_open("bench_attention_gpu", &device, &bench)) {
        return 3;
    }
    printf("%s, cuDNN %zu, causal, %d query and %d key heads, head_dim %d, bf16\n\n", device.name,
           bench.cudnn ? cudnn_attention_version(bench.cudnn) : 0, HEADS, KV_HEADS, HEAD_DIM);
    const bool right = run_rows(&bench, lengths, count);
    cudnn_attention_close(bench.cudnn);
    return right ? 0 : 1;
}
