#include "tests/unit/kernels/attention_reference.h"

#include "tests/unit/kernels/check.h"

#include <math.h>

const KernelAttention attention_shapes[] = {
    // queries, keys, q_first, k_first, heads, kv_heads, head_dim, q_stride, kv_stride, o_stride, lse_stride, ALiBi
    // heads, first of them, window
    {1, 1, 0, 0, 1, 1, 8, 8, 8, 8, 1, 0, 0, 0, {0}, 0},            // the smallest
    {64, 64, 0, 0, 2, 2, 64, 128, 128, 128, 64, 0, 0, 0, {0}, 0},  // one whole tile
    {130,
     130,
     0,
     0,
     4,
     2,
     40,
     170,
     90,
     160,
     140,
     0,
     0,
     0,
     {0},
     0},  // part of a tile, grouped heads, gaps in every stride
    {70, 170, 100, 0, 2, 1, 24, 48, 24, 48, 70, 0, 0, 0, {0}, 0},         // queries after the keys' start
    {50, 60, 0, 30, 2, 2, 16, 32, 32, 32, 50, 0, 0, 0, {0}, 0},           // the first 30 queries see no key
    {33, 40, 0, 33, 3, 3, 8, 24, 24, 24, 40, 0, 0, 0, {0}, 0},            // no key is visible
    {75, 75, 7, 7, 1, 1, 256, 256, 256, 256, 75, 0, 0, 0, {0}, 0},        // the largest head
    {67, 67, 3, 3, 6, 1, 72, 432, 72, 432, 67, 0, 0, 0, {0}, 0},          // one key head for six; 72 = 64 + 8
    {100, 333, 240, 5, 2, 2, 32, 64, 64, 64, 100, 0, 0, 0, {0}, 0},       // offsets that are multiples of nothing
    {200, 64, 500, 100, 1, 1, 128, 128, 128, 128, 200, 0, 0, 0, {0}, 0},  // all keys are past
    {130, 130, 0, 0, 2, 2, 24, 48, 48, 48, 130, 8, 3, 0, {0}, 0},         // ALiBi, part of the heads
    {90, 200, 150, 40, 4, 2, 16, 64, 32, 64, 90, 6, 2, 0, {0}, 0}         // ALiBi of six heads, offsets
};
const int attention_shape_count = (int)(sizeof attention_shapes / sizeof attention_shapes[0]);

const int attention_windows[] = {1, 7, 33, 64, 90, 1000, 0};

AttentionCase attention_case(KernelAttention shape, uint64_t seed) {
    AttentionCase c = {.shape = shape,
                       .q_size = shape.queries * shape.q_stride,
                       .kv_size = shape.keys * shape.kv_stride,
                       .o_size = shape.queries * shape.o_stride,
                       .lse_size = shape.heads * shape.lse_stride};
    c.q = check_floats(c.q_size, seed);
    c.k = check_floats(c.kv_size, seed + 1);
    c.v = check_floats(c.kv_size, seed + 2);
    c.d_o = check_floats(c.o_size, seed + 3);
    for (int64_t i = 0; i < c.q_size; i++) {
        c.q[i] *= 4.0f;  // scores far enough apart that the softmax is not flat
    }
    c.wide_q = check_doubles(c.q, c.q_size);
    c.wide_k = check_doubles(c.k, c.kv_size);
    c.wide_v = check_doubles(c.v, c.kv_size);
    c.wide_d_o = check_doubles(c.d_o, c.o_size);
    c.o = calloc((size_t)c.o_size, sizeof *c.o);
    c.lse = calloc((size_t)c.lse_size, sizeof *c.lse);
    c.scores = calloc((size_t)shape.keys, sizeof *c.scores);
    return c;
}

void attention_case_free(AttentionCase *c) {
    void *all[] = {c->q, c->k, c->v, c->d_o, c->wide_q, c->wide_k, c->wide_v, c->wide_d_o, c->o, c->lse, c->scores};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

// Press et al. 2022: 2^(-8/n) and its powers; where n is no power of two, the slopes of the next power P: its 2nd, 4th,
// ... first, then the 1st, 3rd, ... (transformers' build_mpt_alibi_tensor).
static double alibi(const KernelAttention *s, int head) {
    int heads[64], count = 0, power = 1;
    if (s->alibi_heads == 0) {
        return 0.0;
    }
    while (power < s->alibi_heads) {
        power *= 2;
    }
    for (int i = 2; power != s->alibi_heads && i <= power; i += 2) {
        heads[count++] = i;
    }
    for (int i = 1; i <= power; i += power == s->alibi_heads ? 1 : 2) {
        heads[count++] = i;
    }
    return exp2(-8.0 * heads[s->alibi_first + head] / power);
}

// In eight sums, which the processor adds side by side.
static double dot(const double *a, const double *b, int count) {
    enum { SIDE_BY_SIDE = 8 };
    double sums[SIDE_BY_SIDE] = {0.0}, sum = 0.0;
    int t = 0;
    for (; t + SIDE_BY_SIDE <= count; t += SIDE_BY_SIDE) {
        for (int i = 0; i < SIDE_BY_SIDE; i++) {
            sums[i] += a[t + i] * b[t + i];
        }
    }
    for (; t < count; t++) {
        sum += a[t] * b[t];
    }
    for (int i = 0; i < SIDE_BY_SIDE; i++) {
        sum += sums[i];
    }
    return sum;
}

static double score(const AttentionCase *c, int head, int64_t query, int64_t key, double slope) {
    const KernelAttention *s = &c->shape;
    const double *q = c->wide_q + query * s->q_stride + (int64_t)head * s->head_dim;
    const double *k = c->wide_k + key * s->kv_stride + (int64_t)(head / (s->heads / s->kv_heads)) * s->head_dim;
    const double scaled = dot(q, k, s->head_dim) / sqrt(s->head_dim), cap = (double)s->cap;
    return (cap > 0 ? cap * tanh(scaled / cap) : scaled) - slope * (double)(s->q_first + query - s->k_first - key);
}

static void reference_query(const AttentionCase *c, int head, int64_t query) {
    const KernelAttention *s = &c->shape;
    const int64_t kv_at = (int64_t)(head / (s->heads / s->kv_heads)) * s->head_dim;
    double *o = c->o + query * s->o_stride + (int64_t)head * s->head_dim;
    double highest = -INFINITY, sum = 0.0;
    const double slope = alibi(s, head);
    for (int t = 0; t < s->head_dim; t++) {
        o[t] = 0.0;
    }
    int64_t seen = s->q_first + query - s->k_first + 1;
    const int64_t first = s->window > 0 && seen > s->window ? seen - s->window : 0;
    seen = seen < s->keys ? seen : s->keys;
    for (int64_t key = first; key < seen; key++) {
        c->scores[key] = score(c, head, query, key, slope);
        highest = fmax(highest, c->scores[key]);
    }
    for (int64_t key = first; key < seen; key++) {
        const double p = exp(c->scores[key] - highest);
        sum += p;
        for (int t = 0; t < s->head_dim; t++) {
            o[t] += p * c->wide_v[key * s->kv_stride + kv_at + t];
        }
    }
    for (int t = 0; t < s->head_dim && sum > 0.0; t++) {
        o[t] /= sum;
    }
    c->lse[head * s->lse_stride + query] = sum > 0.0 ? highest + log(sum) : -INFINITY;
}

void reference_attention(const AttentionCase *c) {
    for (int head = 0; head < c->shape.heads; head++) {
        for (int64_t query = 0; query < c->shape.queries; query++) {
            reference_query(c, head, query);
        }
    }
}

double reference_attention_value(const void *context) {
    const AttentionPart *part = context;
    const AttentionCase *c = part->of;
    double value = 0.0;
    for (int64_t query = part->query; query < part->query + part->queries; query++) {
        for (int head = part->head; head < part->head + part->heads; head++) {
            const int64_t at = query * c->shape.o_stride + (int64_t)head * c->shape.head_dim;
            reference_query(c, head, query);
            for (int t = 0; t < c->shape.head_dim; t++) {
                value += c->wide_d_o[at + t] * c->o[at + t];
            }
        }
    }
    return value;
}
