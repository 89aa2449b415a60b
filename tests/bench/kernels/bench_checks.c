// Compares sampled entries of every benchmarked kernel with the definition in double: a fast wrong kernel is worthless.
// The unit tests check exhaustively.

#include "tests/bench/kernels/bench.h"

#include <math.h>

static void compare(BenchError *error, double got, double want) {
    const double off = fabs(got - want);
    error->off = off > error->off || isnan(off) ? off : error->off;
    error->largest = fmax(error->largest, fabs(want));
}

static double silu(double x) {
    return x / (1.0 + exp(-x));
}

void check_gemm(Bench *bench, BenchError *error) {
    const int64_t m = bench->tokens, n = bench->ffn, k = bench->hidden;
    kernel_gemm(false, true, m, n, k, bench->a, bench->b, bench->c, false);  // whichever product the case ran
    for (int64_t i = 0; i < m * n; i += m * n / 64 + 1) {
        double want = 0.0;
        for (int64_t t = 0; t < k; t++) {
            want += (double)bench->a[i / n * k + t] * (double)bench->b[i % n * k + t];
        }
        compare(error, (double)bench->c[i], want);
    }
}

// Probabilities of one query's head into p[keys]; returns the log-sum-exp.
static double probabilities(const Bench *bench, int64_t query, int head, double *p) {
    const KernelAttention s = bench_attention_shape(bench);
    const float *q = bench->a + query * s.q_stride + head * s.head_dim;
    double highest = -INFINITY, sum = 0.0;
    for (int64_t key = 0; key <= query; key++) {
        const float *k = bench->b + key * s.kv_stride + head / (s.heads / s.kv_heads) * s.head_dim;
        p[key] = 0.0;
        for (int t = 0; t < s.head_dim; t++) {
            p[key] += (double)q[t] * (double)k[t] / sqrt(s.head_dim);
        }
        highest = fmax(highest, p[key]);
    }
    for (int64_t key = 0; key <= query; key++) {
        sum += exp(p[key] - highest);
    }
    for (int64_t key = 0; key <= query; key++) {
        p[key] = exp(p[key] - highest) / sum;
    }
    return highest + log(sum);
}

enum { MOST_TOKENS = 4096 };

void check_attention(Bench *bench, BenchError *error) {
    const KernelAttention s = bench_attention_shape(bench);
    double p[MOST_TOKENS];
    for (int64_t query = 0; query < s.queries; query += s.queries / 8 + 1) {
        const int head = (int)(query % s.heads);
        const double lse = probabilities(bench, query, head, p);
        compare(error, (double)bench->rows[head * s.lse_stride + query], lse);
        for (int t = 0; t < s.head_dim; t++) {
            double want = 0.0;
            for (int64_t key = 0; key <= query; key++) {
                const int64_t at = key * s.kv_stride + head / (s.heads / s.kv_heads) * s.head_dim + t;
                want += p[key] * (double)bench->c[at];
            }
            compare(error, (double)bench->d[query * s.o_stride + head * s.head_dim + t], want);
        }
    }
}

// dq of sampled queries; dk and dv come from the same products and are covered by the unit tests.
void check_attention_backward(Bench *bench, BenchError *error) {
    const KernelAttention s = bench_attention_shape(bench);
    float *lse = bench->rows, *delta = bench->rows + s.heads * s.lse_stride;
    double p[MOST_TOKENS];
    kernel_attention(&s, bench->a, bench->b, bench->c, bench->d, lse, false);
    kernel_attention_delta(&s, bench->d, bench->a, delta);  // the gradient of o is a itself
    kernel_zero(bench->size, bench->d);
    kernel_zero(bench->size, bench->e);
    kernel_attention_backward(&s, bench->a, bench->b, bench->c, bench->a, lse, delta, bench->d, s.q_stride, bench->e,
                              bench->f, s.kv_stride);
    for (int64_t query = 0; query < s.queries; query += s.queries / 8 + 1) {
        const int head = (int)(query % s.heads);
        const int64_t q_at = query * s.q_stride + head * s.head_dim, kv_head = head / (s.heads / s.kv_heads);
        probabilities(bench, query, head, p);
        double mean = 0.0, slope[MOST_TOKENS];
        for (int64_t key = 0; key <= query; key++) {
            slope[key] = 0.0;
            for (int t = 0; t < s.head_dim; t++) {
                const int64_t at = key * s.kv_stride + kv_head * s.head_dim + t;
                slope[key] += (double)bench->a[q_at + t] * (double)bench->c[at];
            }
            mean += p[key] * slope[key];
        }
        for (int t = 0; t < s.head_dim; t++) {
            double want = 0.0;
            for (int64_t key = 0; key <= query; key++) {
                const double k = (double)bench->b[key * s.kv_stride + kv_head * s.head_dim + t];
                want += p[key] * (slope[key] - mean) * k / sqrt(s.head_dim);
            }
            compare(error, (double)bench->d[q_at + t], want);
        }
    }
}

static double root_mean_square(const float *x, int64_t count) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sqrt(sum / (double)count + 1e-5);
}

void check_rmsnorm(Bench *bench, BenchError *error) {
    const int64_t rows = bench->tokens, cols = bench->hidden;
    for (int64_t i = 0; i < rows * cols; i += rows * cols / 64 + 1) {
        const double root = root_mean_square(bench->a + i / cols * cols, cols);
        compare(error, (double)bench->c[i], (double)bench->a[i] * (double)bench->b[i % cols] / root);
    }
}

void check_rmsnorm_backward(Bench *bench, BenchError *error) {
    const int64_t rows = bench->tokens, cols = bench->hidden;
    kernel_rmsnorm(rows, cols, 1e-5f, bench->a, bench->b, bench->c, bench->rows);
    kernel_rmsnorm_backward(rows, cols, bench->d, bench->a, bench->b, bench->rows, bench->d, bench->e, bench->f, false);
    for (int64_t i = 0; i < rows * cols; i += rows * cols / 64 + 1) {
        const float *x = bench->a + i / cols * cols, *dy = bench->d + i / cols * cols, *w = bench->b;
        const double root = root_mean_square(x, cols);
        double dot = 0.0;
        for (int64_t col = 0; col < cols; col++) {
            dot += (double)dy[col] * (double)w[col] * (double)x[col];
        }
        const int64_t col = i % cols;
        const double own = (double)dy[col] * (double)w[col] / root;
        compare(error, (double)bench->e[i],
                (double)dy[col] + own - (double)x[col] * dot / (double)cols / (root * root * root));
    }
}

static double mean_of(const float *x, int64_t count) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += (double)x[i];
    }
    return sum / (double)count;
}

static double deviation(const float *x, int64_t count) {
    const double mean = mean_of(x, count);
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += ((double)x[i] - mean) * ((double)x[i] - mean);
    }
    return sqrt(sum / (double)count + 1e-5);
}

void check_layernorm(Bench *bench, BenchError *error) {
    const int64_t cols = bench->hidden, count = bench->tokens * cols;
    for (int64_t i = 0; i < count; i += count / 64 + 1) {
        const float *x = bench->a + i / cols * cols;
        const double normed = ((double)bench->a[i] - mean_of(x, cols)) / deviation(x, cols);
        compare(error, (double)bench->c[i], (normed + 1.0) * (double)bench->b[i % cols]);
    }
}

void check_layernorm_backward(Bench *bench, BenchError *error) {
    const int64_t cols = bench->hidden, count = bench->tokens * cols;
    kernel_layernorm(bench->tokens, cols, 1e-5f, bench->a, bench->b, bench->b, bench->c, bench->rows,
                     bench->rows + bench->tokens);
    kernel_layernorm_backward(bench->tokens, cols, bench->d, bench->a, bench->b, bench->rows,
                              bench->rows + bench->tokens, NULL, bench->e, bench->f, false);
    for (int64_t i = 0; i < count; i += count / 64 + 1) {
        const float *x = bench->a + i / cols * cols, *dy = bench->d + i / cols * cols, *w = bench->b;
        const double mean = mean_of(x, cols), spread = deviation(x, cols);
        double level = 0.0, along = 0.0;
        for (int64_t col = 0; col < cols; col++) {
            level += (double)dy[col] * (double)w[col] / (double)cols;
            along += (double)dy[col] * (double)w[col] * ((double)x[col] - mean) / spread / (double)cols;
        }
        const double own = (double)dy[i % cols] * (double)w[i % cols];
        compare(error, (double)bench->e[i], (own - level - ((double)x[i % cols] - mean) / spread * along) / spread);
    }
}

void check_rope(Bench *bench, BenchError *error) {
    const int64_t stride = bench->heads * bench->head_dim;
    const KernelRope shape = bench_rope_shape(bench);
    const int half = bench->head_dim / 2;
    kernel_copy_rows(bench->tokens, stride, stride, stride, bench->a, bench->c);
    kernel_rope(bench->tokens, &shape, bench->tokens_at, bench->c);
    for (int64_t row = 0; row < bench->tokens; row += bench->tokens / 16 + 1) {
        for (int i = 0; i < half; i++) {
            const double angle = bench->tokens_at[row] * pow(1e4, -2.0 * i / bench->head_dim);
            const float *x = bench->a + row * stride + i;
            compare(error, (double)bench->c[row * stride + i],
                    (double)x[0] * cos(angle) - (double)x[half] * sin(angle));
        }
    }
}

void check_swiglu(Bench *bench, BenchError *error) {
    const int64_t count = bench->tokens * bench->ffn;
    for (int64_t i = 0; i < count; i += count / 256 + 1) {
        compare(error, (double)bench->c[i], silu((double)bench->a[i]) * (double)bench->b[i]);
    }
}

void check_swiglu_backward(Bench *bench, BenchError *error) {
    const int64_t count = bench->tokens * bench->ffn;
    for (int64_t i = 0; i < count; i += count / 256 + 1) {
        const double g = (double)bench->a[i], sigma = 1.0 / (1.0 + exp(-g)), ds = (double)bench->d[i];
        compare(error, (double)bench->e[i], ds * (double)bench->b[i] * sigma * (1.0 + g * (1.0 - sigma)));
        compare(error, (double)bench->f[i], ds * g * sigma);
    }
}

// The tanh form of GELU, using tanh.
static double gelu(double x) {
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

void check_gelu(Bench *bench, BenchError *error) {
    const int64_t count = bench->tokens * bench->ffn;
    for (int64_t i = 0; i < count; i += count / 256 + 1) {
        compare(error, (double)bench->c[i], gelu((double)bench->a[i]));
    }
}

void check_gelu_backward(Bench *bench, BenchError *error) {
    const int64_t count = bench->tokens * bench->ffn;
    const double step = 1e-5;
    for (int64_t i = 0; i < count; i += count / 256 + 1) {
        const double x = (double)bench->a[i], slope = (gelu(x + step) - gelu(x - step)) / (2.0 * step);
        compare(error, (double)bench->e[i], (double)bench->d[i] * slope);
    }
}

void check_loss(Bench *bench, BenchError *error) {
    const int64_t cols = bench->vocabulary;
    float *max = bench->rows, *sum = max + bench->tokens, *target = sum + bench->tokens, loss = 0.0f;
    double want = 0.0;
    for (int64_t row = 0; row < bench->tokens; row++) {
        double denominator = 0.0;
        for (int64_t col = 0; col < cols; col++) {
            denominator += exp((double)bench->logits[row * cols + col]);
        }
        want += log(denominator) - (double)bench->logits[row * cols + bench->tokens_at[row]];
    }
    const KernelLoss rows = {bench->tokens, cols, 0, bench->tokens_at, max, sum, target, 1.0f, 0};
    kernel_loss(&rows, bench->logits, &loss, false);
    compare(error, (double)loss, want);
}

void check_adamw(Bench *bench, BenchError *error) {
    const KernelAdamw options = {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 1};
    const float scale = 1.0f;
    kernel_zero(bench->size, bench->e);
    kernel_zero(bench->size, bench->f);
    kernel_copy_rows(1, bench->size, bench->size, bench->size, bench->a, bench->c);
    kernel_adamw(bench->size, 0, &options, &scale, bench->b, bench->c, bench->e, bench->f);
    for (int64_t i = 0; i < bench->size; i += bench->size / 256 + 1) {
        const double g = (double)bench->b[i];  // after one step both corrected moments are g and g^2
        compare(error, (double)bench->c[i], (double)bench->a[i] * (1.0 - 1e-4) - 1e-3 * g / (fabs(g) + 1e-8));
    }
}

void check_add(Bench *bench, BenchError *error) {
    for (int64_t i = 0; i < bench->size; i += bench->size / 256 + 1) {
        compare(error, (double)bench->c[i], (double)bench->a[i] + (double)bench->b[i]);
    }
}

void check_square_sum(Bench *bench, BenchError *error) {
    double want = 0.0;
    for (int64_t i = 0; i < bench->size; i++) {
        want += (double)bench->a[i] * (double)bench->a[i];
    }
    compare(error, (double)bench->rows[0], want);
}
