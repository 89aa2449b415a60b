// Times every CPU kernel on the layer shapes of three models and prints a Markdown table: rate, share of BLAS for
// compute-bound kernels, share of a triad with the same footprint for streaming ones. Each case is checked first; a
// wrong kernel is not timed.
//   bench_kernels [threads, 1 when left out]
// The rate is that of the fastest of the runs that fit into 0.1 s (at least five): other programs on the machine can
// only slow runs down. Bytes count each operand once per pass that must touch it, without write-allocate, as in STREAM.

#include "tests/bench/kernels/bench.h"

#include "kernels/cpu/parallel.h"
#include "sim/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void Runner(Bench *bench);

typedef struct Case {
    const char *name;
    Runner *run;
    BenchCheck *check;
    double (*flop)(const Bench *);  // per run; NULL for streaming kernels
    double bytes_per_element;       // per element of `elements`, for streaming kernels
    int64_t (*elements)(const Bench *);
} Case;

static double best_s(Runner *run, Bench *bench) {
    double best = 1e30;
    const double start = clock_s();
    for (int i = 0; i < 5 || clock_s() - start < 0.1; i++) {
        const double begin = clock_s();
        run(bench);
        const double took = clock_s() - begin;
        best = took < best ? took : best;
    }
    return best;
}

KernelAttention bench_attention_shape(const Bench *b) {
    const int64_t q = (int64_t)b->heads * b->head_dim, kv = (int64_t)b->kv_heads * b->head_dim;
    return (KernelAttention){.queries = b->tokens,
                             .keys = b->tokens,
                             .heads = b->heads,
                             .kv_heads = b->kv_heads,
                             .head_dim = b->head_dim,
                             .q_stride = q,
                             .kv_stride = kv,
                             .o_stride = q,
                             .lse_stride = b->tokens};
}

static void run_gemm(Bench *b) {
    kernel_gemm(false, true, b->tokens, b->ffn, b->hidden, b->a, b->b, b->c, false);
}

static void run_gemm_weight(Bench *b) {
    kernel_gemm(true, false, b->ffn, b->hidden, b->tokens, b->a, b->b, b->d, true);
}

static double flop_gemm(const Bench *b) {
    return 2.0 * (double)b->tokens * (double)b->ffn * (double)b->hidden;
}

static void run_attention(Bench *b) {
    const KernelAttention s = bench_attention_shape(b);
    kernel_attention(&s, b->a, b->b, b->c, b->d, b->rows, false);
}

static double flop_attention(const Bench *b) {  // exactly the visible half
    return 4.0 * b->head_dim * b->heads * (double)b->tokens * (double)(b->tokens + 1) / 2.0;
}

static void run_attention_backward(Bench *b) {
    const KernelAttention s = bench_attention_shape(b);
    const float *delta = b->rows + s.heads * s.lse_stride;
    kernel_attention_backward(&s, b->a, b->b, b->c, b->a, b->rows, delta, b->d, s.q_stride, b->e, b->f, s.kv_stride);
}

static double flop_attention_backward(const Bench *b) {
    return 2.5 * flop_attention(b);
}

static void run_rmsnorm(Bench *b) {
    kernel_rmsnorm(b->tokens, b->hidden, 1e-5f, b->a, b->b, b->c, b->rows);
}

static void run_rmsnorm_backward(Bench *b) {
    kernel_rmsnorm_backward(b->tokens, b->hidden, b->d, b->a, b->b, b->rows, b->c, b->e, b->f, false);
}

static int64_t elements_hidden(const Bench *b) {
    return b->tokens * b->hidden;
}

static void run_layernorm(Bench *b) {
    kernel_layernorm(b->tokens, b->hidden, 1e-5f, b->a, b->b, b->b, b->c, b->rows, b->rows + b->tokens);
}

static void run_layernorm_backward(Bench *b) {
    kernel_layernorm_backward(b->tokens, b->hidden, b->d, b->a, b->b, b->rows, b->rows + b->tokens, b->c, b->e, b->f,
                              false);
}

KernelRope bench_rope_shape(const Bench *b) {
    return (KernelRope){b->heads, b->head_dim, b->head_dim, (int64_t)b->heads * b->head_dim, 1e4, .backward = false};
}

static void run_rope(Bench *b) {
    const KernelRope shape = bench_rope_shape(b);
    kernel_rope(b->tokens, &shape, b->tokens_at, b->c);
}

static int64_t elements_heads(const Bench *b) {
    return b->tokens * b->heads * b->head_dim;
}

static void run_swiglu(Bench *b) {
    kernel_gated(&(KernelGated){KERNEL_SILU, b->tokens, b->ffn, b->ffn}, b->a, b->b, b->c);
}

static void run_swiglu_backward(Bench *b) {
    kernel_gated_backward(&(KernelGated){KERNEL_SILU, b->tokens, b->ffn, b->ffn}, b->d, b->a, b->b, b->e, b->f);
}

static void run_gelu(Bench *b) {
    kernel_activation(KERNEL_GELU_TANH, b->tokens * b->ffn, b->a, b->c);
}

static void run_gelu_backward(Bench *b) {
    kernel_activation_backward(KERNEL_GELU_TANH, b->tokens * b->ffn, b->d, b->a, b->e);
}

static int64_t elements_ffn(const Bench *b) {
    return b->tokens * b->ffn;
}

static void run_loss(Bench *b) {
    float *max = b->rows, *sum = max + b->tokens, *target = sum + b->tokens, loss;
    const KernelLoss rows = {b->tokens, b->vocabulary, 0, b->tokens_at, max, sum, target, 1.0f, 0};
    kernel_loss(&rows, b->logits, &loss, false);
}

static int64_t elements_logits(const Bench *b) {
    return b->tokens * b->vocabulary;
}

static void run_adamw(Bench *b) {
    const KernelAdamw options = {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 1};
    const float scale = 1.0f;
    kernel_adamw(b->size, 0, &options, &scale, b->b, b->c, b->e, b->f);
}

static void run_add(Bench *b) {
    kernel_add(b->size, b->a, b->b, b->c);
}

static void run_square_sum(Bench *b) {
    kernel_square_sum(b->size, 0, 0.0, b->a, b->rows, false);
}

static int64_t elements_all(const Bench *b) {
    return b->size;
}

static const Case cases[] = {
    {"gemm x w^T", run_gemm, check_gemm, flop_gemm, 0, NULL},
    {"gemm dy^T x, accumulated", run_gemm_weight, check_gemm, flop_gemm, 0, NULL},
    {"attention", run_attention, check_attention, flop_attention, 0, NULL},
    {"attention backward", run_attention_backward, check_attention_backward, flop_attention_backward, 0, NULL},
    {"rmsnorm", run_rmsnorm, check_rmsnorm, NULL, 8, elements_hidden},                              // read x, write y
    {"rmsnorm backward", run_rmsnorm_backward, check_rmsnorm_backward, NULL, 20, elements_hidden},  // x, dy twice; dx
    {"layernorm", run_layernorm, check_layernorm, NULL, 8, elements_hidden},
    {"layernorm backward", run_layernorm_backward, check_layernorm_backward, NULL, 20, elements_hidden},
    {"rope", run_rope, check_rope, NULL, 8, elements_heads},
    {"swiglu", run_swiglu, check_swiglu, NULL, 12, elements_ffn},
    {"swiglu backward", run_swiglu_backward, check_swiglu_backward, NULL, 20, elements_ffn},
    {"gelu, tanh", run_gelu, check_gelu, NULL, 8, elements_ffn},
    {"gelu, tanh, backward", run_gelu_backward, check_gelu_backward, NULL, 12, elements_ffn},
    {"loss", run_loss, check_loss, NULL, 8, elements_logits},   // read, write; cached in between
    {"adamw", run_adamw, check_adamw, NULL, 28, elements_all},  // 4 reads, 3 writes
    {"add", run_add, check_add, NULL, 12, elements_all},
    {"square sum", run_square_sum, check_square_sum, NULL, 4, elements_all},
};
enum { CASES = sizeof cases / sizeof cases[0] };

__attribute__((target_clones("avx512f", "avx2", "default"))) static void triad_part(const void *context, int64_t begin,
                                                                                    int64_t end) {
    const Bench *b = context;
    const float *restrict x = b->a, *restrict y = b->b;
    float *restrict z = b->c;
    for (int64_t i = begin; i < end; i++) {
        z[i] = x[i] + 0.5f * y[i];
    }
}

static void run_triad(Bench *b) {
    parallel_ranges(b->size, 16, PARALLEL_GRAIN, triad_part, b);
}

// GB/s of a triad over about `bytes` in total, limited to what the buffers hold.
static double triad_rate(const Bench *bench, double bytes) {
    Bench part = *bench;
    const int64_t size = (int64_t)(bytes / 12.0);
    part.size = size < bench->size ? size : bench->size;
    return 12e-9 * (double)part.size / best_s(run_triad, &part);
}

// The two products of attention by BLAS, head by head on full square score matrices, in GFLOP/s.
static void run_attention_blas(Bench *b) {
    for (int head = 0; head < b->heads; head++) {
        kernel_gemm(false, true, b->tokens, b->tokens, b->head_dim, b->a, b->b, b->logits, false);
        kernel_gemm(false, false, b->tokens, b->head_dim, b->tokens, b->logits, b->c, b->d, false);
    }
}

static void report(const Case *c, Bench *bench, double peak, double attention_blas) {
    BenchError found = {0};
    c->run(bench);
    c->check(bench, &found);
    const double error = found.off / fmax(found.largest, 1e-30);  // NaN is not below the limit
    if (!(error < 1e-4)) {
        printf("| %s | %s | WRONG, off by %g |||\n", bench->name, c->name, error);
        return;
    }
    const double took = best_s(c->run, bench);
    if (c->flop) {
        const double rate = 1e-9 * c->flop(bench) / took;
        const bool attends = strncmp(c->name, "attention", 9) == 0;
        printf("| %s | %s | %.3f | %.1f GFLOP/s | %.0f %% of peak", bench->name, c->name, 1e3 * took, rate,
               100.0 * rate / peak);
        if (attends) {
            printf(", %.0f %% of BLAS on its products", 100.0 * rate / attention_blas);
        }
        printf(" | %.1e |\n", error);
        return;
    }
    const double bytes = c->bytes_per_element * (double)c->elements(bench), rate = 1e-9 * bytes / took;
    printf("| %s | %s | %.3f | %.1f GB/s | %.0f %% of triad | %.1e |\n", bench->name, c->name, 1e3 * took, rate,
           100.0 * rate / triad_rate(bench, bytes), error);
}

static float *numbers(int64_t count, uint32_t seed) {
    float *x = aligned_alloc(64, ((size_t)count * sizeof *x + 63) / 64 * 64);
    for (int64_t i = 0; x && i < count; i++) {
        seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' linear congruential generator
        x[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    return x;
}

static bool bench_open(Bench *b) {
    const int64_t layer = b->tokens * b->ffn, weight = b->hidden * b->ffn;
    b->size = layer > weight ? layer : weight;
    float **buffers[] = {&b->a, &b->b, &b->c, &b->d, &b->e, &b->f};
    bool opened = true;
    for (uint32_t i = 0; i < 6; i++) {
        *buffers[i] = numbers(b->size, i + 1);
        opened = opened && *buffers[i];
    }
    const int64_t wide = b->vocabulary > b->tokens ? b->vocabulary : b->tokens;  // also holds a score matrix
    b->logits = numbers(b->tokens * wide, 7);
    b->rows = numbers(4 * b->tokens * b->heads, 8);
    b->tokens_at = malloc((size_t)b->tokens * sizeof *b->tokens_at);
    for (int64_t i = 0; b->tokens_at && i < b->tokens; i++) {
        b->tokens_at[i] = (int32_t)(i % b->vocabulary);
    }
    return opened && b->logits && b->rows && b->tokens_at;
}

static void bench_close(Bench *b) {
    void *all[] = {b->a, b->b, b->c, b->d, b->e, b->f, b->logits, b->rows, b->tokens_at};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

static double peak_rate(void) {
    Bench square = {.name = "peak", .tokens = 1536, .hidden = 1536, .heads = 1, .ffn = 1536, .vocabulary = 1};
    double rate = 0.0;
    if (bench_open(&square)) {
        rate = 1e-9 * flop_gemm(&square) / best_s(run_gemm, &square);
    }
    bench_close(&square);
    return rate;
}

static void run_shape(Bench bench, double peak) {
    if (bench_open(&bench)) {
        const double attention_blas = 1e-9 * 4.0 * bench.head_dim * bench.heads * (double)bench.tokens *
                                      (double)bench.tokens / best_s(run_attention_blas, &bench);
        for (int i = 0; i < CASES; i++) {
            report(&cases[i], &bench, peak, attention_blas);
        }
    } else {
        fprintf(stderr, "bench_kernels: %s does not fit into memory\n", bench.name);
    }
    bench_close(&bench);
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
    char words[256];
    kernel_core_settle(argv);
    if (kernel_core_words(words, sizeof words)) {
        fprintf(stderr, "bench_kernels: %s\n", words);
    }
    kernel_set_threads(threads);
    const Bench shapes[] = {
        {.name = "tiny",
         .tokens = 128,
         .hidden = 64,
         .heads = 4,
         .kv_heads = 2,
         .head_dim = 16,
         .ffn = 192,
         .vocabulary = 512},
        {.name = "gpt2-124m",
         .tokens = 256,
         .hidden = 768,
         .heads = 12,
         .kv_heads = 12,
         .head_dim = 64,
         .ffn = 3072,
         .vocabulary = 50304},
        {.name = "h1024",
         .tokens = 1024,
         .hidden = 1024,
         .heads = 16,
         .kv_heads = 4,
         .head_dim = 64,
         .ffn = 2816,
         .vocabulary = 8000},
    };
    const double peak = peak_rate();
    printf("threads %d, peak (sgemm 1536^3) %.1f GFLOP/s\n\n", parallel_threads(), peak);
    printf("| shape | kernel | ms | rate | share | error |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        run_shape(shapes[i], peak);
    }
    return 0;
}
