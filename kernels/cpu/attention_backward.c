// Backward of tiled attention (Dao 2023, FlashAttention-2, algorithm 2): probabilities are recomputed from the scores
// and the final log-sum-exp, P^T = exp(S^T - lse), then dP^T = V dO^T, dS^T = P^T (dP^T - delta) scale, and
//   dV += P^T dO, dK += dS^T Q, dQ^T += K^T dS^T.
// As in the forward pass, queries are lanes in the transposed products; dV and dK have head dimensions as lanes. A kv
// head is one work item: its query heads and tiles run in order, so every sum has the same order for any number of
// threads. With fewer kv heads than threads the work is split into a pass for dQ (items: query tiles) and one for dK,
// dV (items: key spans); both keep that order.

#include "kernels/cpu/cap.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/tile.h"
#include "kernels/heads.h"
#include "kernels/kernels.h"

#include <math.h>

typedef struct Backward {
    const KernelAttention *shape;
    const float *q, *k, *v, *d_o, *lse, *delta;
    float *dq;
    int64_t dq_stride;
    float *dk, *dv;
    int64_t dkv_stride;
    bool want_q, want_kv;
} Backward;

typedef struct BackwardTile {
    _Alignas(64) float q[TILE_HEAD * TILE];  // transposed, scaled
    float d_o[TILE_HEAD * TILE];             // transposed
    float dq[TILE_HEAD * TILE];              // transposed
    float p[TILE * TILE], ds[TILE * TILE];   // [key][query]
    float lse[TILE], delta[TILE];
    float slope;             // ALiBi of the head
    int64_t first, queries;  // of this tile
    int head;
} BackwardTile;

static void load_tile(BackwardTile *t, const Backward *b, int head, int64_t first) {
    const KernelAttention *shape = b->shape;
    const int64_t left = shape->queries - first;
    t->head = head;
    t->slope = kernel_alibi_slope(shape, head);
    t->first = first;
    t->queries = left < TILE ? left : TILE;
    const int value_dim = kernel_value_dim(shape);
    tile_transpose(b->q + first * shape->q_stride + (int64_t)head * shape->head_dim, shape->q_stride, t->queries,
                   shape->head_dim, 1.0f / sqrtf((float)shape->head_dim), t->q);
    tile_transpose(b->d_o + first * shape->o_stride + (int64_t)head * value_dim, shape->o_stride, t->queries, value_dim,
                   1.0f, t->d_o);
    // A query that saw no key, and the lanes past the last query: exp(s - inf) = 0.
    for (int64_t i = 0; i < tile_lanes(t->queries); i++) {
        const int64_t at = head * shape->lse_stride + first + i;
        const bool alive = i < t->queries && b->lse[at] > -INFINITY;
        t->lse[i] = alive ? b->lse[at] : INFINITY;
        t->delta[i] = alive ? b->delta[at] : 0.0f;
    }
    if (b->want_q) {
        tile_clear(t->dq, t->queries, shape->head_dim);
    }
}

static void store_dq(BackwardTile *t, const Backward *b) {
    const int head_dim = b->shape->head_dim;
    tile_transpose_back(t->dq, t->queries, head_dim, t->q);  // the queries are no longer needed
    for (int64_t i = 0; i < t->queries; i++) {
        float *restrict dq = b->dq + (t->first + i) * b->dq_stride + (int64_t)t->head * head_dim;
        for (int row = 0; row < head_dim; row++) {
            dq[row] += t->q[i * head_dim + row];
        }
    }
}

// Multiplies by the derivative of the soft cap.
static void differentiate_capped(BackwardTile *t, const TileSight *sight, float scale, float cap) {
    const int64_t begin = sight->col, end = sight->col + sight->cols;
    for (int64_t j = 0; j < sight->keys; j++) {
        float *restrict p = t->p + j * TILE, *restrict ds = t->ds + j * TILE;
        const float *restrict lse = t->lse, *restrict delta = t->delta;
        for (int64_t i = begin; i < end; i++) {
            const float slope = cap_slope(p[i], 1.0f / cap);
            p[i] = exp_fast(p[i] - lse[i]);
            ds[i] = p[i] * (ds[i] - delta[i]) * scale * slope;
        }
    }
}

static void differentiate(BackwardTile *t, const TileSight *sight, float scale, float cap) {
    if (cap > 0) {
        differentiate_capped(t, sight, scale, cap);
        return;
    }
    const int64_t begin = sight->col, end = sight->col + sight->cols;
    for (int64_t j = 0; j < sight->keys; j++) {
        float *restrict p = t->p + j * TILE, *restrict ds = t->ds + j * TILE;
        const float *restrict lse = t->lse, *restrict delta = t->delta;
        for (int64_t i = begin; i < end; i++) {
            p[i] = exp_fast(p[i] - lse[i]);
            ds[i] = p[i] * (ds[i] - delta[i]) * scale;
        }
    }
}

// One step of the tile against keys key .. key + sight->keys - 1.
static void step_back(BackwardTile *t, const TileSight *sight, const Backward *b, int64_t key) {
    const KernelAttention *shape = b->shape;
    const int64_t head_dim = shape->head_dim, value_dim = kernel_value_dim(shape), col = sight->col;
    const int64_t kv_head = t->head / (shape->heads / shape->kv_heads);
    const int64_t kv_at = key * shape->kv_stride + kv_head * head_dim;
    const float *const v = b->v + tile_value_at(shape, key, kv_head);
    tile_dots(sight, b->k + kv_at, shape->kv_stride, head_dim, t->q, t->p);   // S^T
    tile_dots(sight, v, tile_value_stride(shape), value_dim, t->d_o, t->ds);  // dP^T
    if (shape->cap > 0) {
        tile_cap(sight, shape->cap, t->p);
    }
    tile_alibi(sight, t->slope, t->p);
    tile_mask(sight, t->p);
    differentiate(t, sight, 1.0f / sqrtf((float)head_dim), shape->cap);
    if (b->want_q) {
        const TileProduct dq = {.rows = head_dim,
                                .cols = sight->cols,
                                .depth = sight->keys,
                                .a = b->k + kv_at,
                                .a_row = 1,
                                .a_step = shape->kv_stride,
                                .b = t->ds + col,
                                .b_stride = TILE,
                                .c = t->dq + col,
                                .c_stride = TILE,
                                .accumulate = true};
        tile_product(&dq);
    }
    if (b->want_kv && t->queries > col) {
        const int64_t row = t->first + col;
        const int64_t dv_stride = shape->values.dim > 0 ? shape->values.gradient_stride : b->dkv_stride;
        TileProduct dkv = {.rows = sight->keys,
                           .cols = value_dim,
                           .depth = t->queries - col < sight->cols ? t->queries - col : sight->cols,
                           .a = t->p + col,
                           .a_row = TILE,
                           .a_step = 1,
                           .b = b->d_o + row * shape->o_stride + t->head * value_dim,
                           .b_stride = shape->o_stride,
                           .c = b->dv + key * dv_stride + kv_head * value_dim,
                           .c_stride = dv_stride,
                           .accumulate = true};
        tile_product(&dkv);
        dkv.cols = head_dim;
        dkv.a = t->ds + col;
        dkv.b = b->q + row * shape->q_stride + t->head * head_dim;
        dkv.b_stride = shape->q_stride;
        dkv.c = b->dk + key * b->dkv_stride + kv_head * head_dim;
        dkv.c_stride = b->dkv_stride;
        tile_product(&dkv);
    }
}

// The tile's steps over keys from..to; they do not depend on where the keys are split into spans (at step boundaries).
static void walk_keys(BackwardTile *t, const Backward *b, int64_t from, int64_t to) {
    const KernelAttention *shape = b->shape;
    for (int64_t key = tile_first_key(shape, t->first); key < to;) {
        const TileSight sight = tile_sight(shape, t->first, t->queries, key);
        if (sight.keys == 0) {
            return;
        }
        if (key >= from && sight.cols > 0) {
            step_back(t, &sight, b, key);
        }
        key += sight.keys;
    }
}

enum { SPAN = 2 * TILE };  // keys of one work item in the dK, dV pass

static int64_t tiles_of(const KernelAttention *shape) {
    return (shape->queries + TILE - 1) / TILE;
}

// Every query tile of every head of one kv head, against keys from..to.
static void walk_queries(const Backward *b, int64_t kv_head, int64_t from, int64_t to) {
    const KernelAttention *shape = b->shape;
    const int64_t group = shape->heads / shape->kv_heads;
    BackwardTile t;
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        for (int64_t first = 0; first < shape->queries; first += TILE) {
            const int64_t last = first + TILE < shape->queries ? first + TILE - 1 : shape->queries - 1;
            const bool past = shape->window > 0 && tile_first_key(shape, first) >= to;
            if (shape->k_first + from > shape->q_first + last || past) {
                continue;  // sees none of these keys
            }
            load_tile(&t, b, (int)head, first);
            walk_keys(&t, b, from, to);
            if (b->want_q) {
                store_dq(&t, b);
            }
        }
    }
}

static void kv_heads_items(const void *context, int64_t begin, int64_t end) {
    const Backward *b = context;
    for (int64_t kv_head = begin; kv_head < end; kv_head++) {
        walk_queries(b, kv_head, 0, b->shape->keys);
    }
}

static void key_span_items(const void *context, int64_t begin, int64_t end) {
    const Backward *b = context;
    const int64_t keys = b->shape->keys, spans = (keys + SPAN - 1) / SPAN;
    for (int64_t item = begin; item < end; item++) {
        const int64_t from = item % spans * SPAN;
        walk_queries(b, item / spans, from, from + SPAN < keys ? from + SPAN : keys);
    }
}

static void query_tile_items(const void *context, int64_t begin, int64_t end) {
    const Backward *b = context;
    const int64_t tiles = tiles_of(b->shape);
    BackwardTile t;
    for (int64_t item = begin; item < end; item++) {
        load_tile(&t, b, (int)(item / tiles), (tiles - 1 - item % tiles) * TILE);
        walk_keys(&t, b, 0, b->shape->keys);
        store_dq(&t, b);
    }
}

void kernel_attention_backward(const KernelAttention *shape, const float *q, const float *k, const float *v,
                               const float *d_o, const float *lse, const float *delta, float *dq, int64_t dq_stride,
                               float *dk, float *dv, int64_t dkv_stride) {
    Backward work = {shape, q, k, v, d_o, lse, delta, dq, dq_stride, dk, dv, dkv_stride, true, true};
    if (parallel_threads() <= shape->kv_heads) {
        parallel_items(shape->kv_heads, kv_heads_items, &work);
        return;
    }
    work.want_kv = false;
    parallel_items(tiles_of(shape) * shape->heads, query_tile_items, &work);
    work.want_kv = true;
    work.want_q = false;
    parallel_items((shape->keys + SPAN - 1) / SPAN * shape->kv_heads, key_span_items, &work);
}
