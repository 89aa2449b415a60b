// Kernels: raw pointers, sizes and a stream, the same interface for cpu/ and cuda/. Includes nothing of the project.
// Row-major; fp32 unless a name says otherwise. No kernel allocates (cpu: after kernel_set_threads). Outputs never
// alias inputs unless said. Sums run in a fixed order, so equal inputs give equal bits for a given thread count.
// Arguments are the caller's to check.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// c[m,n] = op(a) op(b) (+ c when accumulate). trans_a: a is stored [k,m]; trans_b: b is stored [n,k]. Packed rows.
void kernel_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c,
                 bool accumulate);
// factor times the product.
void kernel_gemm_scaled(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float factor, const float *a,
                        const float *b, float *c, bool accumulate);

// Rows of a table, of tokens or of positions: this rank holds entries [first, first + range).
typedef struct KernelEmbed {
    int64_t rows, cols;
    int64_t first, range;
    float scale;
} KernelEmbed;
// x[i,:] (+)= scale * table[entries[i]-first,:] when the entry is held here, else 0.
void kernel_embed(const KernelEmbed *shape, const int32_t *entries, const float *table, float *x, bool accumulate);
// table gradient: scale times the rows, added in order (deterministic). accumulate false: dtable[range,cols] is zeroed
// first.
void kernel_embed_backward(const KernelEmbed *shape, const int32_t *entries, const float *dx, float *dtable,
                           bool accumulate);

// y = (x - mean) * rstd * w (+ bias), rstd = 1 / sqrt(var + eps), by row; mean and rstd are kept. Floats here, elements
// of a store on a GPU. mean NULL: RMS norm, of x itself and without a bias. add: NULL, or x + add is normed and kept in
// added (may be x or add).
typedef struct KernelNorm {
    int64_t rows, cols;
    float eps;
    const void *x, *add, *w, *bias;  // bias may be NULL
    void *added, *y;
    float *mean, *rstd;
    int64_t x_stride;  // elements from a row of x to the next; 0 = cols. Nothing is added to rows that lie apart
} KernelNorm;
void kernel_norm(const KernelNorm *norm);

// dx = (residual ? residual : 0) + d(norm); dw (+)= sum over rows. The bias' gradient is kernel_column_sum of dy.
typedef struct KernelNormBackward {
    int64_t rows, cols;
    const void *dy, *x, *w;
    const float *mean, *rstd;  // mean NULL: RMS norm
    const void *residual;      // may be NULL
    void *dx, *dw;             // dx may be residual
    bool accumulate;           // dw
    int64_t x_stride;          // of x and dx; 0 = cols. No residual where they lie apart
} KernelNormBackward;
void kernel_norm_backward(const KernelNormBackward *norm);

// Of packed rows.
static inline void kernel_rmsnorm(int64_t rows, int64_t cols, float eps, const float *x, const float *w, float *y,
                                  float *rstd) {
    const KernelNorm norm = {rows, cols, eps, x, NULL, w, NULL, NULL, y, NULL, rstd, 0};
    kernel_norm(&norm);
}

static inline void kernel_layernorm(int64_t rows, int64_t cols, float eps, const float *x, const float *w,
                                    const float *bias, float *y, float *mean, float *rstd) {
    const KernelNorm norm = {rows, cols, eps, x, NULL, w, bias, NULL, y, mean, rstd, 0};
    kernel_norm(&norm);
}

static inline void kernel_layernorm_backward(int64_t rows, int64_t cols, const float *dy, const float *x,
                                             const float *w, const float *mean, const float *rstd,
                                             const float *residual, float *dx, float *dw, bool accumulate) {
    const KernelNormBackward norm = {rows, cols, dy, x, w, mean, rstd, residual, dx, dw, accumulate, 0};
    kernel_norm_backward(&norm);
}

static inline void kernel_rmsnorm_backward(int64_t rows, int64_t cols, const float *dy, const float *x, const float *w,
                                           const float *rstd, const float *residual, float *dx, float *dw,
                                           bool accumulate) {
    kernel_layernorm_backward(rows, cols, dy, x, w, NULL, rstd, residual, dx, dw, accumulate);
}

// RMS norm of stretches of a row, in place (queries and keys): `parts` stretches of `width` elements, all with the same
// w[width]. What they were goes to before, 1 / rms to rstd (parts per row); strides are elements per row.
typedef struct KernelStretches {
    int64_t rows;
    int parts;
    int64_t width;
    int64_t stride, before_stride, rstd_stride;
} KernelStretches;
void kernel_stretch_norm(const KernelStretches *shape, float eps, const float *w, float *x, float *before, float *rstd);
// dx holds the gradient of the result and becomes that of the input; dw (+)=.
void kernel_stretch_norm_backward(const KernelStretches *shape, const float *w, const float *before, const float *rstd,
                                  float *dx, float *dw, bool accumulate);

// Rotary positions: row r of x has `heads` heads at stride elements per row, of which the first `turning` elements of
// each turn, in pairs (i, i + turning/2) as in Hugging Face Llama. position[rows]: global positions. backward turns by
// the negative angle. factor > 0: pairs that turn less than `low` times over `original` positions turn `factor` times
// slower, those beyond `high` as they are, those between in between (rotary.h).
typedef struct KernelRope {
    int heads, head_dim, turning;
    int64_t stride;
    double theta;
    bool backward;
    double factor, low, high, original;
} KernelRope;
void kernel_rope(int64_t rows, const KernelRope *shape, const int32_t *position, float *x);

// dim 0: values are as wide as keys and lie as these do. Else they have dim elements, in rows and heads so far apart; o
// and d_o have heads of dim elements, and so has dv, in rows gradient_stride apart.
typedef struct KernelValues {
    int dim;
    int64_t stride, apart, gradient_stride;
} KernelValues;

// One causal attention block of one sequence: queries at global positions q_first .. q_first+queries-1, keys likewise.
// Grouped-query: query head h uses key head h / (heads/kv_heads). Strides are elements per token row. Scale
// 1/sqrt(head_dim). merge false: o, lse are written. merge true: (o, lse) hold another block's result and become that
// of both (log-sum-exp merge): L' = max(L,l) + log1p(exp(-|L-l|)), O' = O exp(L-L') + o exp(l-L'). head_dim: a multiple
// of 8, at most 256. ALiBi: scores lose slope(head) * distance in tokens (Press et al. 2022; slopes of a number of
// heads that is no power of two as in Hugging Face's mpt). window > 0: a query sees that many keys at most, its own the
// last of them (transformers' sliding_window). lse[heads][lse_stride], entry per query. Rows that see no key: o 0, lse
// -inf (or unchanged when merging). Tiled: no S x S matrix.
typedef struct KernelAttention {
    int64_t queries, keys;
    int64_t q_first, k_first;
    int heads, kv_heads, head_dim;
    int64_t q_stride, kv_stride, o_stride;
    int64_t lse_stride;
    int alibi_heads;  // of the whole model, of which alibi_first is head 0 here; 0 = no ALiBi
    int alibi_first;
    int64_t window;  // 0 = all
    KernelValues values;
    float cap;  // scores are cap tanh(score / cap), not beside ALiBi; 0 = as they are
} KernelAttention;
void kernel_attention(const KernelAttention *shape, const float *q, const float *k, const float *v, float *o,
                      float *lse, bool merge);

// One more score for each head, that no key has (gpt_oss): of a whole sequence's o and lse. Of its gradient, which is
// added: delta as below.
void kernel_attention_sinks(const KernelAttention *shape, const float *sinks, float *o, float *lse);
void kernel_attention_sinks_backward(const KernelAttention *shape, const float *sinks, const float *lse,
                                     const float *delta, float *dsinks);

// Backward of the same block given the final o and lse of the whole sequence; d_o has o's stride.
// delta[heads][lse_stride] = rowsum(do * o), made by kernel_attention_delta. dq[q_stride rows] (+)=, dk and dv
// (kv_stride rows) (+)=: always added; the caller zeroes first.
void kernel_attention_delta(const KernelAttention *shape, const float *o, const float *d_o, float *delta);
void kernel_attention_backward(const KernelAttention *shape, const float *q, const float *k, const float *v,
                               const float *d_o, const float *lse, const float *delta, float *dq, int64_t dq_stride,
                               float *dk, float *dv, int64_t dkv_stride);

// x sigma(x); x Phi(x); x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
typedef enum { KERNEL_SILU, KERNEL_GELU, KERNEL_GELU_TANH } KernelActivation;
void kernel_activation(KernelActivation activation, int64_t count, const float *x, float *y);
void kernel_activation_backward(KernelActivation activation, int64_t count, const float *dy, const float *x,
                                float *dx);  // dx may be x or dy

// s[rows, cols] = act(gate) * up; stride: elements per row of gate, up, dgate and dup (s and ds are packed). dgate may
// be gate, dup up.
typedef struct KernelGated {
    KernelActivation activation;
    int64_t rows, cols, stride;
} KernelGated;
void kernel_gated(const KernelGated *shape, const float *gate, const float *up, float *s);
void kernel_gated_backward(const KernelGated *shape, const float *ds, const float *gate, const float *up, float *dgate,
                           float *dup);

// As gpt_oss: gate is cut off above 7, up beyond 7 either way, s = gate sigmoid(1.702 gate) (up + 1). The shape's
// activation is not used.
void kernel_clamped(const KernelGated *shape, const float *gate, const float *up, float *s);
void kernel_clamped_backward(const KernelGated *shape, const float *ds, const float *gate, const float *up,
                             float *dgate, float *dup);

// ---- layers of experts

enum { KERNEL_MAX_EXPERTS = 1024 };

// Each row visits `active` of the experts: those of its largest logits, of equal ones the lower expert. Its weights are
// their softmax, or what a softmax over all experts has for them (unscaled). counts[experts] are rows that come to
// each; places[rows * active] are where these lie when they are in the order of the experts, of one in the rows' order.
// sigmoid (DeepSeek-V3, section 2.1.2): scores are sigmoids; chosen are the largest scores + correction[experts] (may
// be NULL) among experts of the active_groups of `groups` equal groups whose two largest add up to most (groups 0: of
// all experts); weights are `factor` times the scores over their sum, or times the scores themselves (unscaled).
typedef struct KernelRoute {
    int64_t rows;
    int experts, active;
    bool unscaled;
    bool sigmoid;
    int groups, active_groups;
    float factor;  // sigmoid only
    const float *correction;
} KernelRoute;
void kernel_route(const KernelRoute *shape, const float *logits, float *weights, int32_t *places, int32_t *counts);
void kernel_route_backward(const KernelRoute *shape, const float *logits, const float *weights, const int32_t *places,
                           const int32_t *counts, const float *dweights, float *dlogits);

// A loss that spreads a sequence's tokens (DeepSeek-V3, section 2.1.2; transformers' load_balancing_loss_func of one
// sequence): the sum over experts of visits[expert] times the mean of its probability, a softmax of the logits, or
// scores over their sum. counts and places are of kernel_route; visits[rows / sequence][experts] of `sequence` rows
// each.
void kernel_count_visits(const KernelRoute *shape, int64_t sequence, const int32_t *places, const int32_t *counts,
                         float *visits);
// dlogits += factor times the gradient of visits . probability, row by row.
void kernel_balance_backward(const KernelRoute *shape, int64_t sequence, float factor, const float *visits,
                             const float *logits, float *dlogits);

typedef struct KernelSpread {
    int64_t rows, cols;
    int active;
    const int32_t *places;  // [rows * active], each once
} KernelSpread;
// y[places[i],:] = x[i / active,:].
void kernel_spread(const KernelSpread *shape, const float *x, float *y);
// x[row,:] = (more[row,:]) + sum over its places of (weights) y[place,:]; more and weights may be NULL.
void kernel_collect(const KernelSpread *shape, const float *weights, const float *y, const float *more, float *x);
// dy[place,:] = weight dx[row,:], dweights = dx[row,:] . y[place,:]. dy may not be y.
void kernel_collect_backward(const KernelSpread *shape, const float *weights, const float *dx, const float *y,
                             float *dy, float *dweights);

// Rows of groups that come in parts: counts[parts][count].
typedef struct KernelGroups {
    int parts, count;
    const int32_t *counts;
} KernelGroups;
// Rows part by part, of each group by group -> group by group, of each part by part; back: the other way.
void kernel_regroup(const KernelGroups *groups, int64_t cols, bool back, const float *from, float *to);
// kernel_gemm of each group's rows, which lie one behind the other: those of a and c with a b for each, or with trans_a
// those of a and b, whose sum is a c for each. n, k: of one product; trans_a: m, n.
void kernel_grouped_gemm(const KernelGroups *groups, bool trans_a, bool trans_b, int64_t outer, int64_t inner,
                         const float *a, const float *b, float *c, bool accumulate);

// Vocabulary-parallel cross-entropy in three steps, so that two small all-reduces can go between. This rank's columns
// are the vocabulary range [first, first + cols). target_logit is the target's logit - row_max on the rank that owns
// it, 0 elsewhere: the sum over ranks is the target's, as that of sum_exp is the denominator. logits of -inf are masked
// columns.
void kernel_loss_max(int64_t rows, int64_t cols, const float *logits, float *row_max);
void kernel_loss_sum(int64_t rows, int64_t cols, int64_t first, const float *logits, const int32_t *targets,
                     const float *row_max, float *sum_exp, float *target_logit);
// logits become gradient * (softmax - onehot), and of capped ones times the slope of the cap; *loss (+)= sum over rows
// of log(sum_exp) - target_logit. Double accumulation inside.
void kernel_loss_gradient(int64_t rows, int64_t cols, int64_t first, float *logits, const int32_t *targets,
                          const float *row_max, const float *sum_exp, const float *target_logit, float gradient,
                          float *loss, bool accumulate, float cap);
// In front of the three: logits become cap tanh(logits / cap).
void kernel_loss_cap(int64_t count, float cap, float *logits);

// The three at once where this rank has the whole vocabulary: a row's logits are read again while they are in the
// cache.
typedef struct KernelLoss {
    int64_t rows, cols;
    float gradient;
    const int32_t *targets;
    float *row_max, *sum_exp, *target_logit;  // written
    float cap;                                // 0 = none; else logits are capped first
} KernelLoss;
void kernel_loss(const KernelLoss *loss, float *logits, float *total, bool accumulate);

void kernel_add(int64_t count, const float *a, const float *b, float *c);  // c may be a
// c = a + b + bias, the bias of every row; c may be a.
void kernel_add_bias(int64_t rows, int64_t cols, const float *a, const float *b, const float *bias, float *c);
void kernel_fill_rows(int64_t rows, int64_t cols, const float *row, float *x);  // every row of x becomes this one
void kernel_column_sum(int64_t rows, int64_t cols, const float *x, float *sums, bool accumulate);
void kernel_copy_rows(int64_t rows, int64_t cols, int64_t src_stride, int64_t dst_stride, const float *src, float *dst);
void kernel_zero(int64_t count, float *x);

// Sum of squares in double; the first `light` elements weigh light_weight. *sum (+)=.
void kernel_square_sum(int64_t count, int64_t light, double light_weight, const float *x, float *sum, bool accumulate);

typedef struct KernelAdamw {
    float lr, beta1, beta2, eps, weight_decay;
    int64_t step;  // 1 at the first update
} KernelAdamw;
// Decoupled weight decay (Loshchilov and Hutter 2019); gradient is multiplied by *scale. `undecayed` leading elements
// take no decay.
void kernel_adamw(int64_t count, int64_t undecayed, const KernelAdamw *options, const float *scale,
                  const float *gradient, float *master, float *moment1, float *moment2);

// x[i] = scale * philox_normal(key, stream, first + i) (philox.h): initial weights.
typedef struct KernelNormal {
    uint64_t key, stream, first;
    float scale;
} KernelNormal;
void kernel_normal(const KernelNormal *stream, int64_t count, float *x);

// What the BLAS took the processor for ("SkylakeX"); whether its kernels for that are narrower than the processor.
const char *kernel_blas_name(void);
bool kernel_blas_is_slow(void);

// First of all in main: where the BLAS took the processor for an older one, by itself or by OPENBLAS_CORETYPE, the
// process begins anew with the core type that fits. NDTUNE_CORE_TYPE names one that is taken whatever it costs.
void kernel_core_settle(char **argv);
// What there is to say of it in a sentence; false = nothing.
bool kernel_core_words(char *out, size_t out_bytes);

// Threads of every following kernel of this process; 1 until called. Call it before the first kernel: it starts the
// threads and lets the BLAS take its buffers, so that no later kernel has to. Kernels may be called from several
// threads at once: one call at a time gets the helpers, the others run on their own thread.
void kernel_set_threads(int threads);
