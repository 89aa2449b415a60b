// Causal attention of one block, written plainly: a score is a double sum over head_dim in order, and sums over keys
// (outputs, query gradients) or queries (key and value gradients) are exact, so blocks may come in any order and any
// split. No matrix of scores.

#include "kernels/exact.h"

#include <string.h>

static double dot(const float *x, const float *y, int count) {
    double sum = 0.0;
    for (int i = 0; i < count; i++) {
        sum += (double)x[i] * (double)y[i];
    }
    return sum;
}

static double score(const KernelAttention *s, const float *q, const float *k) {
    return dot(q, k, s->head_dim) / sqrt((double)s->head_dim);
}

// First element of a head in a row.
static int64_t q_at(const KernelAttention *s, int64_t row, int head) {
    return row * s->q_stride + (int64_t)head * s->head_dim;
}

static int64_t o_at(const KernelAttention *s, int64_t row, int head) {
    return row * s->o_stride + (int64_t)head * s->head_dim;
}

static int64_t kv_at(const KernelAttention *s, int64_t row, int head) {
    return row * s->kv_stride + (int64_t)(head / (s->heads / s->kv_heads)) * s->head_dim;
}

// The range of keys of the block that the query sees: the first, and one past the last.
static int64_t seen(const KernelAttention *s, int64_t query) {
    const int64_t keys = s->q_first + query - s->k_first + 1;
    return keys < 0 ? 0 : keys < s->keys ? keys : s->keys;
}

static int64_t seen_from(const KernelAttention *s, int64_t query) {
    const int64_t key = s->q_first + query - s->k_first + 1 - s->window;
    return s->window > 0 && key > 0 ? key : 0;
}

void exact_attention_begin(const KernelAttention *s, const float *q, const float *k, const ExactAttention *out) {
    for (int head = 0; head < s->heads; head++) {
        for (int64_t row = 0; row < s->queries; row++) {
            const int64_t at = head * s->lse_stride + row;
            out->lse[at] = (float)score(s, q + q_at(s, row, head), k + kv_at(s, row, head));
            out->lse_sums[at] = (ExactSum){0};
            memset(out->o_sums + o_at(s, row, head), 0, (size_t)s->head_dim * sizeof(ExactSum));
        }
    }
}

void exact_attention_block(const KernelAttention *s, const float *q, const float *k, const float *v,
                           const ExactAttention *out) {
    for (int head = 0; head < s->heads; head++) {
        for (int64_t row = 0; row < s->queries; row++) {
            const int64_t at = head * s->lse_stride + row;
            ExactSum *o = out->o_sums + o_at(s, row, head);
            for (int64_t key = seen_from(s, row); key < seen(s, row); key++) {
                const int64_t from = kv_at(s, key, head);
                const double p = exp(score(s, q + q_at(s, row, head), k + from) - (double)out->lse[at]);
                exact_add(&out->lse_sums[at], p);
                for (int i = 0; i < s->head_dim; i++) {
                    exact_add(&o[i], p * (double)v[from + i]);
                }
            }
        }
    }
}

void exact_attention_end(const KernelAttention *s, const ExactAttention *out) {
    for (int head = 0; head < s->heads; head++) {
        for (int64_t row = 0; row < s->queries; row++) {
            const int64_t at = head * s->lse_stride + row, to = o_at(s, row, head);
            const double sum = exact_value(out->lse_sums[at]);
            out->lse[at] = (float)((double)out->lse[at] + log(sum));
            for (int i = 0; i < s->head_dim; i++) {
                out->o[to + i] = (float)(exact_value(out->o_sums[to + i]) / sum);
            }
        }
    }
}

static void backward_row(const KernelAttention *s, const ExactAttentionBackward *w, int64_t row, int head) {
    const int64_t at = head * s->lse_stride + row, from = q_at(s, row, head);
    const float *q = w->q + from, *d_o = w->d_o + o_at(s, row, head);
    const double scale = 1.0 / sqrt((double)s->head_dim);
    for (int64_t key = seen_from(s, row); key < seen(s, row); key++) {
        const int64_t kv = kv_at(s, key, head);
        const float *k = w->k + kv;
        const double p = exp(score(s, q, k) - (double)w->lse[at]);
        const double ds = p * (dot(d_o, w->v + kv, s->head_dim) - (double)w->delta[at]) * scale;
        for (int i = 0; i < s->head_dim; i++) {
            exact_add(&w->dq[from + i], ds * (double)k[i]);
            exact_add(&w->dk[kv + i], ds * (double)q[i]);
            exact_add(&w->dv[kv + i], p * (double)d_o[i]);
        }
    }
}

void exact_attention_backward(const KernelAttention *s, const ExactAttentionBackward *work) {
    for (int head = 0; head < s->heads; head++) {
        for (int64_t row = 0; row < s->queries; row++) {
            backward_row(s, work, row, head);
        }
    }
}
