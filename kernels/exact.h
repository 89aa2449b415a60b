// Sums that do not depend on the order of their terms: every term is truncated to a grid of 2^-62 and added as
// integers, so any mesh, split of the work or transport gives the same bits (fixed-point accumulation; Kulisch 1981
// keeps all bits, here a term loses what lies below the grid, the same wherever it is added). For the bitwise mode of a
// run: readable, not fast. `sums` keeps the exact sum for each float of a result; the float is that sum, rounded.

#pragma once

#include <math.h>

#include "kernels/kernels.h"

// high * 2^-20 + low * 2^-62. A term's low part is below 2^42, so 2^21 terms fit; sums of 2^34 or more are lost: NaN.
typedef struct ExactSum {
    int64_t high, low;
} ExactSum;

#define EXACT_LOST (-(INT64_C(1) << 55))      // still fits when 256 ranks are added
#define EXACT_LOST_BEYOND (INT64_C(1) << 54)  // 2^34 in units of 2^-20
#define EXACT_LIMIT 0x1p34

static inline bool exact_is_lost(ExactSum sum) {
    return sum.high >= EXACT_LOST_BEYOND || sum.high <= -EXACT_LOST_BEYOND;
}

static inline ExactSum exact_of(double x) {
    if (!(fabs(x) < EXACT_LIMIT)) {  // NaN too
        return (ExactSum){EXACT_LOST, 0};
    }
    const int64_t high = (int64_t)(x * 0x1p20);
    return (ExactSum){high, (int64_t)((x - (double)high * 0x1p-20) * 0x1p62)};  // the difference is exact
}

static inline ExactSum exact_plus(ExactSum a, ExactSum b) {
    if (exact_is_lost(a) || exact_is_lost(b)) {
        return (ExactSum){EXACT_LOST, 0};
    }
    return (ExactSum){a.high + b.high, a.low + b.low};
}

static inline void exact_add(ExactSum *sum, double x) {
    *sum = exact_plus(*sum, exact_of(x));
}

static inline double exact_value(ExactSum sum) {
    return exact_is_lost(sum) ? NAN : (double)sum.high * 0x1p-20 + (double)sum.low * 0x1p-62;
}

// x = the sums, rounded.
void exact_round(int64_t count, const ExactSum *sums, float *x);
// Starts sums of one term each, x, which is truncated to the grid.
void exact_take(int64_t count, float *x, ExactSum *sums);
// sums += more.
void exact_accumulate(int64_t count, const ExactSum *more, ExactSum *sums, float *x);

// Same as the kernel_ functions of the same names.
void exact_gemm(const bool trans[2], const int64_t mnk[3], const float *a, const float *b, bool accumulate,
                ExactSum *sums, float *c);
void exact_embed_backward(const KernelEmbed *shape, const int32_t *entries, const float *dx, bool accumulate,
                          ExactSum *sums, float *dtable);
// Only dw of kernel_rmsnorm_backward.
typedef struct ExactNorm {
    int64_t rows, cols;
    const float *dy, *x, *rstd;
} ExactNorm;
void exact_rmsnorm_weight(const ExactNorm *norm, bool accumulate, ExactSum *sums, float *dw);
// *sums (+)= sum of squares of x.
void exact_square_sum(int64_t count, const float *x, bool accumulate, ExactSum *sums, float *sum);

// sums[2][rows]: sum of exponentials; target logit, which begin where those end in memory.
void exact_loss_sum(const KernelLoss *loss, const float *logits, ExactSum *sums);
// From the results of exact_loss_sum, summed over all ranks.
void exact_loss_gradient(const KernelLoss *loss, float *logits);
void exact_loss(const KernelLoss *loss, bool accumulate, ExactSum *sums, float *total);

// Attention in three steps. Exponentials are taken relative to the score of the query with its own key, which is
// available first in every split of the keys; scores more than 23 above it are out of range (NaN).
// begin: shape is the queries' block against their own keys; lse becomes those scores, sums become 0.
typedef struct ExactAttention {
    float *o, *lse;
    ExactSum *o_sums, *lse_sums;
} ExactAttention;
void exact_attention_begin(const KernelAttention *shape, const float *q, const float *k, const ExactAttention *out);
void exact_attention_block(const KernelAttention *shape, const float *q, const float *k, const float *v,
                           const ExactAttention *out);
void exact_attention_end(const KernelAttention *shape, const ExactAttention *out);

typedef struct ExactAttentionBackward {
    const float *q, *k, *v, *d_o, *lse, *delta;
    ExactSum *dq, *dk, *dv;  // accumulated; strides as for q and k
} ExactAttentionBackward;
void exact_attention_backward(const KernelAttention *shape, const ExactAttentionBackward *work);

// Elementwise, without fused multiply-adds: the vector body and the scalar tail round alike.
void exact_gated(const KernelGated *shape, const float *gate, const float *up, float *s);
void exact_gated_backward(const KernelGated *shape, const float *ds, const float *gate, const float *up, float *dgate,
                          float *dup);
void exact_adamw(int64_t count, int64_t undecayed, const KernelAdamw *options, const float *scale,
                 const float *gradient, float *master, float *moment1, float *moment2);
