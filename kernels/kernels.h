// Kernels: raw pointers, sizes and a stream, the same interface for cpu/ and cuda/. Includes nothing of the project.
// Row-major; fp32 unless a name says otherwise. No kernel allocates (cpu: after kernel_set_threads). Outputs never
// alias inputs unless stated. Sums run in a fixed order, so equal inputs give equal bits for a given thread count.
// Arguments are not checked: the caller must validate them.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// c[m,n] = op(a) op(b) (+ c when accumulate). trans_a: a is stored [k,m]; trans_b: b is stored [n,k]. Packed rows.
void kernel_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c,
                 bool accumulate);
// The same, with the product multiplied by factor.
void kernel_gemm_scaled(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float factor, const float *a,
                        const float *b, float *c, bool accumulate);

// Rows of a token or position table: this rank holds entries [first, first + range).
typedef struct KernelEmbed {
    int64_t rows, cols;
    int64_t first, range;
    float scale;
} KernelEmbed;
// x[i,:] (+)= scale * table[entries[i]-first,:] if this rank holds the entry, else 0.
void kernel_embed(const KernelEmbed *shape, const int32_t *entries, const float *table, float *x, bool accumulate);
// Gradient of the table: scale times the rows, added in order (deterministic). accumulate false: dtable[range,cols] is
// zeroed first.
void kernel_embed_backward(const KernelEmbed *shape, const int32_t *entries, const float *dx, float *dtable,
                           bool accumulate);

// y = (x - mean) * rstd * w (+ bias), rstd = 1 / sqrt(var + eps), per row; mean and rstd are saved. Floats here,
// elements of a store on a GPU. mean NULL: RMS norm, of x itself and without bias. add: NULL, or x + add is normalised
// and saved in added (may be x or add).
typedef struct KernelNorm {
    int64_t rows, cols;
    float eps;
    const void *x, *add, *w, *bias;  // bias may be NULL
    void *added, *y;
    float *mean, *rstd;
    int64_t x_stride;  // elements between rows of x; 0 = cols. No add unless rows are packed
} KernelNorm;
void kernel_norm(const KernelNorm *norm);

// dx = (residual ? residual : 0) + d(norm); dw (+)= sum over rows. The bias gradient is kernel_column_sum of dy.
typedef struct KernelNormBackward {
    int64_t rows, cols;
    const void *dy, *x, *w;
    const float *mean, *rstd;  // mean NULL: RMS norm
    const void *residual;      // may be NULL
    void *dx, *dw;             // dx may be residual
    bool accumulate;           // dw
    int64_t x_stride;          // of x and dx; 0 = cols. No residual unless rows are packed
} KernelNormBackward;
void kernel_norm_backward(const KernelNormBackward *norm);

// On packed rows.
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

// RMS norm of segments of a row, in place (queries and keys): `parts` segments of `width` elements, all with the same
// w[width]. The inputs are saved in before, 1 / rms in rstd (parts per row); strides are elements per row.
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

// Rotary embedding: row r of x has `heads` heads at stride elements per row, and the first `turning` elements of each
// are rotated, in pairs (i, i + turning/2) as in Hugging Face Llama. position[rows]: global positions. backward rotates
// by the negative angle. factor > 0: pairs with fewer than `low` rotations over `original` positions rotate `factor`
// times slower, those with more than `high` are unchanged, those between are interpolated (rotary.h).
typedef struct KernelRope {
    int heads, head_dim, turning;
    int64_t stride;
    double theta;
    bool backward;
    double factor, low, high, original;
} KernelRope;
void kernel_rope(int64_t rows, const KernelRope *shape, const int32_t *position, float *x);

// dim 0: values have the width and layout of keys. Otherwise they have dim elements, with rows stride and heads apart
// elements from each other; heads of o, d_o and dv also have dim elements, dv's rows being gradient_stride apart.
typedef struct KernelValues {
    int dim;
    int64_t stride, apart, gradient_stride;
} KernelValues;

// One causal attention block of one sequence: queries at global positions q_first .. q_first+queries-1, keys likewise.
// Grouped-query: query head h uses key head h / (heads/kv_heads). Strides are elements per token row. Scale
// 1/sqrt(head_dim). merge false: o, lse are written. merge true: (o, lse) hold another block's result and become the
// combined one (log-sum-exp merge): L' = max(L,l) + log1p(exp(-|L-l|)), O' = O exp(L-L') + o exp(l-L'). head_dim: a
// multiple of 8, at most 256. ALiBi: slope(head) * distance in tokens is subtracted from scores (Press et al. 2022;
// slopes for head counts that are not powers of two as in Hugging Face's mpt). window > 0: a query sees at most that
// many keys, the last of them its own (transformers' sliding_window). lse[heads][lse_stride], one entry per query. Rows
// that see no key: o 0, lse -inf (or unchanged when merging). Tiled: no S x S matrix.
typedef struct KernelAttention {
    int64_t queries, keys;
    int64_t q_first, k_first;
    int heads, kv_heads, head_dim;
    int64_t q_stride, kv_stride, o_stride;
    int64_t lse_stride;
    int alibi_heads;  // in the whole model; alibi_first is the index of head 0 here; 0 = no ALiBi
    int alibi_first;
    int64_t window;  // 0 = all
    KernelValues values;
    float cap;  // scores become cap tanh(score / cap), not combined with ALiBi; 0 = no cap
} KernelAttention;
void kernel_attention(const KernelAttention *shape, const float *q, const float *k, const float *v, float *o,
                      float *lse, bool merge);

// Attention sinks (gpt_oss): one more score per head that belongs to no key, applied to a whole sequence's o and lse.
// Its gradient is accumulated; delta as below.
void kernel_attention_sinks(const KernelAttention *shape, const float *sinks, float *o, float *lse);
void kernel_attention_sinks_backward(const KernelAttention *shape, const float *sinks, const float *lse,
                                     const float *delta, float *dsinks);

// Backward of the same block given the final o and lse of the whole sequence; d_o has o's stride.
// delta[heads][lse_stride] = rowsum(do * o), computed by kernel_attention_delta. dq[q_stride rows], dk and dv
// (kv_stride rows) are always accumulated; the caller zeroes them first.
void kernel_attention_delta(const KernelAttention *shape, const float *o, const float *d_o, float *delta);
void kernel_attention_backward(const KernelAttention *shape, const float *q, const float *k, const float *v,
                               const float *d_o, const float *lse, const float *delta, float *dq, int64_t dq_stride,
                               float *dk, float *dv, int64_t dkv_stride);

// x sigma(x); x Phi(x); x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); KERNEL_CLAMPED: a gate alone (kernel_gated).
typedef enum { KERNEL_SILU, KERNEL_GELU, KERNEL_GELU_TANH, KERNEL_CLAMPED } KernelActivation;
void kernel_activation(KernelActivation activation, int64_t count, const float *x, float *y);
void kernel_activation_backward(KernelActivation activation, int64_t count, const float *dy, const float *x,
                                float *dx);  // dx may be x or dy

// s[rows, cols] = act(gate) * up; stride: elements per row of gate, up, dgate and dup (s and ds are packed). dgate may
// be gate, dup may be up. KERNEL_CLAMPED, as in gpt_oss: gate is clamped to at most 7, up to [-7, 7],
// s = gate sigmoid(1.702 gate) (up + 1).
typedef struct KernelGated {
    KernelActivation activation;
    int64_t rows, cols, stride;
} KernelGated;
void kernel_gated(const KernelGated *shape, const float *gate, const float *up, float *s);
void kernel_gated_backward(const KernelGated *shape, const float *ds, const float *gate, const float *up, float *dgate,
                           float *dup);

// ---- MoE layers

enum { KERNEL_MAX_EXPERTS = 1024 };

// Each row visits `active` experts: those with its largest logits, the lower expert first for equal ones. Its weights
// are the softmax over these, or their share of a softmax over all experts (unscaled). counts[experts]: rows routed to
// each; places[rows * active]: where they lie in expert order (within an expert, in row order). sigmoid (DeepSeek-V3,
// section 2.1.2): scores are sigmoids; the largest scores + correction[experts] (may be NULL) are chosen among experts
// of the active_groups of `groups` equal groups whose two largest have the greatest sum (groups 0: among all experts);
// weights are `factor` times the scores over their sum, or times the scores themselves (unscaled).
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

// Load-balancing loss per sequence (DeepSeek-V3, section 2.1.2; transformers' load_balancing_loss_func of one
// sequence): the sum over experts of visits[expert] times its mean probability, a softmax of the logits, or scores over
// their sum. counts and places come from kernel_route; visits[rows / sequence][experts], with `sequence` rows each.
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

// Rows of `count` groups, in `parts` parts: counts[parts][count].
typedef struct KernelGroups {
    int parts, count;
    const int32_t *counts;
} KernelGroups;
// Reorders rows from part-major (each part by group) to group-major (each group by part); back: the reverse.
void kernel_regroup(const KernelGroups *groups, int64_t cols, bool back, const float *from, float *to);
// kernel_gemm on each group's rows, stored group after group: rows of a and c, with one b per group, or with trans_a
// rows of a and b, summed into one c per group. outer and inner are n and k of a product, with trans_a m and n.
void kernel_grouped_gemm(const KernelGroups *groups, bool trans_a, bool trans_b, int64_t outer, int64_t inner,
                         const float *a, const float *b, float *c, bool accumulate);

// Vocabulary-parallel cross-entropy in three steps, so that two small all-reduces fit in between. This rank's columns
// are the vocabulary range [first, first + cols). target_logit is the target's logit - row_max on the rank that owns
// it, 0 elsewhere: the sum over ranks is the target's value, just as that of sum_exp is the denominator. logits of -inf
// are masked columns.
typedef struct KernelLoss {
    int64_t rows, cols, first;
    const int32_t *targets;
    float *row_max, *sum_exp, *target_logit;  // outputs of the first step; of the second
    float gradient;                           // for the third step
    float cap;                                // 0 = none
} KernelLoss;
void kernel_loss_max(const KernelLoss *loss, const float *logits);
void kernel_loss_sum(const KernelLoss *loss, const float *logits);
// logits become gradient * (softmax - onehot), for capped ones times the derivative of the cap; *total (+)= sum over
// rows of log(sum_exp) - target_logit. Accumulated in double.
void kernel_loss_gradient(const KernelLoss *loss, float *logits, float *total, bool accumulate);
// Call before the three steps: logits become cap tanh(logits / cap).
void kernel_loss_cap(int64_t count, float cap, float *logits);

// The three steps fused where this rank has the whole vocabulary: a row's logits are reread while they are in cache.
// With a cap they are capped first.
void kernel_loss(const KernelLoss *loss, float *logits, float *total, bool accumulate);

void kernel_add(int64_t count, const float *a, const float *b, float *c);  // c may be a
// c = a + b + bias, with bias added to every row; c may be a.
void kernel_add_bias(int64_t rows, int64_t cols, const float *a, const float *b, const float *bias, float *c);
void kernel_column_sum(int64_t rows, int64_t cols, const float *x, float *sums, bool accumulate);
// A src_stride of 0 repeats one row.
void kernel_copy_rows(int64_t rows, int64_t cols, int64_t src_stride, int64_t dst_stride, const float *src, float *dst);
void kernel_zero(int64_t count, float *x);

// Sum of squares in double; the first `light` elements are weighted by light_weight. *sum (+)=.
void kernel_square_sum(int64_t count, int64_t light, double light_weight, const float *x, float *sum, bool accumulate);

typedef struct KernelAdamw {
    float lr, beta1, beta2, eps, weight_decay;
    int64_t step;  // 1 at the first update
} KernelAdamw;
// Decoupled weight decay (Loshchilov and Hutter 2019); gradient is multiplied by *scale. The first `undecayed` elements
// have no weight decay.
void kernel_adamw(int64_t count, int64_t undecayed, const KernelAdamw *options, const float *scale,
                  const float *gradient, float *master, float *moment1, float *moment2);

// x[i] = scale * philox_normal(key, stream, first + i) (philox.h): initial weights.
typedef struct KernelNormal {
    uint64_t key, stream, first;
    float scale;
} KernelNormal;
void kernel_normal(const KernelNormal *stream, int64_t count, float *x);

// Which core the BLAS detected ("SkylakeX"); whether its kernels are narrower than what the processor supports.
const char *kernel_blas_name(void);
bool kernel_blas_is_slow(void);

// First call in main: where the BLAS took the processor for an older one, by itself or by OPENBLAS_CORETYPE, the
// process re-executes itself with the core type that fits. NDTUNE_CORE_TYPE names one that is used whatever it costs.
void kernel_core_settle(char **argv);
// A one-sentence report on this; false = nothing to report.
bool kernel_core_words(char *out, size_t out_bytes);

// Threads of every following kernel of this process; 1 until called. Call it before the first kernel: it starts the
// threads and lets the BLAS allocate its buffers, so that no later kernel has to. Kernels may be called concurrently
// from several threads: one call at a time gets the helpers, the others run on their own thread.
void kernel_set_threads(int threads);
