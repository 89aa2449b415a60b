// Tiled attention with online softmax (Dao et al. 2022; Milakov and Gimelshein 2018). A tile of 64 queries is kept
// transposed, so that queries are vector lanes throughout: scores are S^T = K Q^T, the softmax runs down the keys lane
// by lane without horizontal steps, and O^T += V^T P^T; keys and values are read in place. A work item is one head's
// query tile; items share no results, so the order in which threads take them does not matter.

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/tile.h"
#include "kernels/heads.h"
#include "kernels/kernels.h"

#include <math.h>

typedef struct Forward {
    const KernelAttention *shape;
    const float *q, *k, *v;
    float *o, *lse;
    bool merge;
} Forward;

typedef struct ForwardTile {
    _Alignas(64) float q[TILE_HEAD * TILE];  // transposed and scaled; at the end o[query][head_dim]
    float o[TILE_HEAD * TILE];               // transposed, not yet divided by sum
    float p[TILE * TILE];                    // [key][query]: scores, then their exponentials
    float max[TILE], sum[TILE], shrink[TILE];
    float slope;  // ALiBi of this head
} ForwardTile;

// Updates each lane's running maximum with this step's scores; the sums so far are rescaled accordingly.
static void raise_max(ForwardTile *t, const TileSight *sight, int value_dim) {
    const int64_t begin = sight->col, end = sight->col + sight->cols;
    float highest[TILE];
    for (int64_t i = begin; i < end; i++) {
        highest[i] = t->max[i];
    }
    for (int64_t j = 0; j < sight->keys; j++) {
        const float *restrict score = t->p + j * TILE;
        for (int64_t i = begin; i < end; i++) {
            highest[i] = score[i] > highest[i] ? score[i] : highest[i];
        }
    }
    bool raised = false;
    for (int64_t i = begin; i < end; i++) {
        raised |= highest[i] > t->max[i];
    }
    if (!raised) {
        return;
    }
    for (int64_t i = begin; i < end; i++) {  // a lane without any key yet would be -inf - (-inf): it keeps its zeros
        t->shrink[i] = highest[i] > t->max[i] ? exp_fast(t->max[i] - highest[i]) : 1.0f;
        t->max[i] = highest[i];
        t->sum[i] *= t->shrink[i];
    }
    for (int row = 0; row < value_dim; row++) {
        float *restrict o = t->o + row * TILE;
        for (int64_t i = begin; i < end; i++) {
            o[i] *= t->shrink[i];
        }
    }
}

static void exponentials(ForwardTile *t, const TileSight *sight) {
    const int64_t begin = sight->col, end = sight->col + sight->cols;
    float shift[TILE];
    for (int64_t i = begin; i < end; i++) {
        shift[i] = t->max[i] > -INFINITY ? t->max[i] : 0.0f;
    }
    for (int64_t j = 0; j < sight->keys; j++) {
        float *restrict p = t->p + j * TILE;
        float *restrict sum = t->sum;
        for (int64_t i = begin; i < end; i++) {
            p[i] = exp_fast(p[i] - shift[i]);
            sum[i] += p[i];
        }
    }
}

static void attend(ForwardTile *t, const TileSight *sight, const KernelAttention *shape, const float *k,
                   const float *v) {
    tile_dots(sight, k, shape->kv_stride, shape->head_dim, t->q, t->p);
    if (shape->cap > 0) {
        tile_cap(sight, shape->cap, t->p);
    }
    tile_alibi(sight, t->slope, t->p);
    tile_mask(sight, t->p);
    raise_max(t, sight, kernel_value_dim(shape));
    exponentials(t, sight);
    const TileProduct values = {.rows = kernel_value_dim(shape),
                                .cols = sight->cols,
                                .depth = sight->keys,
                                .a = v,
                                .a_row = 1,
                                .a_step = tile_value_stride(shape),
                                .b = t->p + sight->col,
                                .b_stride = TILE,
                                .c = t->o + sight->col,
                                .c_stride = TILE,
                                .accumulate = true};
    tile_product(&values);
}

// Writes one query's result, merged with what an earlier block left there.
static void finish_query(const ForwardTile *t, int64_t i, int value_dim, bool merge, float *restrict o, float *lse) {
    const bool seen = t->sum[i] > 0.0f;
    const float own = seen ? t->max[i] + logf(t->sum[i]) : -INFINITY;
    float keep = 0.0f, take = seen ? 1.0f / t->sum[i] : 0.0f;
    if (merge) {
        const float high = fmaxf(*lse, own), low = fminf(*lse, own);
        if (!seen) {
            return;
        }
        const float both = low > -INFINITY ? high + log1pf(expf(low - high)) : high;
        keep = *lse > -INFINITY ? expf(*lse - both) : 0.0f;
        take *= expf(own - both);
        *lse = both;
    } else {
        *lse = own;
    }
    for (int row = 0; row < value_dim; row++) {
        o[row] = (merge ? o[row] * keep : 0.0f) + t->q[i * value_dim + row] * take;
    }
}

static void forward_tile(const Forward *f, int head, int64_t first) {
    const KernelAttention *shape = f->shape;
    const int head_dim = shape->head_dim, value_dim = kernel_value_dim(shape);
    const int64_t queries = shape->queries - first < TILE ? shape->queries - first : TILE;
    const int64_t kv_head = head / (shape->heads / shape->kv_heads), kv_at = kv_head * head_dim;
    ForwardTile t;
    t.slope = kernel_alibi_slope(shape, head);
    tile_transpose(f->q + first * shape->q_stride + (int64_t)head * head_dim, shape->q_stride, queries, head_dim,
                   1.0f / sqrtf((float)head_dim), t.q);
    for (int i = 0; i < TILE; i++) {
        t.max[i] = -INFINITY;
        t.sum[i] = 0.0f;
    }
    tile_clear(t.o, queries, value_dim);
    for (int64_t key = tile_first_key(shape, first);;) {
        const TileSight sight = tile_sight(shape, first, queries, key);
        if (sight.keys == 0) {
            break;
        }
        if (sight.cols > 0) {
            attend(&t, &sight, shape, f->k + key * shape->kv_stride + kv_at, f->v + tile_value_at(shape, key, kv_head));
        }
        key += sight.keys;
    }
    tile_transpose_back(t.o, queries, value_dim, t.q);
    for (int64_t i = 0; i < queries; i++) {
        finish_query(&t, i, value_dim, f->merge, f->o + (first + i) * shape->o_stride + (int64_t)head * value_dim,
                     f->lse + head * shape->lse_stride + first + i);
    }
}

// Items go head by head, so that keys and values stay in cache, from the last query tile, which sees the most keys, to
// the first.
static void forward_items(const void *context, int64_t begin, int64_t end) {
    const Forward *f = context;
    const int64_t tiles = (f->shape->queries + TILE - 1) / TILE;
    for (int64_t item = begin; item < end; item++) {
        forward_tile(f, (int)(item / tiles), (tiles - 1 - item % tiles) * TILE);
    }
}

void kernel_attention(const KernelAttention *shape, const float *q, const float *k, const float *v, float *o,
                      float *lse, bool merge) {
    const Forward forward = {shape, q, k, v, o, lse, merge};
    parallel_items((shape->queries + TILE - 1) / TILE * shape->heads, forward_items, &forward);
}

typedef struct Delta {
    const KernelAttention *shape;
    const float *o, *d_o;
    float *delta;
} Delta;

static void delta_rows(const void *context, int64_t begin, int64_t end) {
    const Delta *d = context;
    const int value_dim = kernel_value_dim(d->shape);
    for (int64_t row = begin; row < end; row++) {
        for (int head = 0; head < d->shape->heads; head++) {
            const int64_t at = row * d->shape->o_stride + (int64_t)head * value_dim;
            d->delta[head * d->shape->lse_stride + row] = lanes_dot(d->o + at, d->d_o + at, value_dim);
        }
    }
}

void kernel_attention_delta(const KernelAttention *shape, const float *o, const float *d_o, float *delta) {
    const Delta work = {shape, o, d_o, delta};
    parallel_rows(shape->queries, (int64_t)shape->heads * shape->head_dim, delta_rows, &work);
}

typedef struct Sinks {
    const KernelAttention *shape;
    const float *sinks;
    float *o, *lse;
} Sinks;

static void sinks_rows(const void *context, int64_t begin, int64_t end) {
    const Sinks *s = context;
    const int head_dim = s->shape->head_dim;
    for (int64_t row = begin; row < end; row++) {
        for (int head = 0; head < s->shape->heads; head++) {
            float *restrict o = s->o + row * s->shape->o_stride + (int64_t)head * head_dim;
            float *lse = s->lse + head * s->shape->lse_stride + row;
            const float high = fmaxf(*lse, s->sinks[head]), low = fminf(*lse, s->sinks[head]);
            const float both = high + log1pf(expf(low - high)), keep = expf(*lse - both);
            *lse = both;
            for (int i = 0; i < head_dim; i++) {
                o[i] *= keep;
            }
        }
    }
}

void kernel_attention_sinks(const KernelAttention *shape, const float *sinks, float *o, float *lse) {
    const Sinks work = {shape, sinks, o, lse};
    parallel_rows(shape->queries, (int64_t)shape->heads * shape->head_dim, sinks_rows, &work);
}

// The sink takes a share p of the softmax but its value is zero, so d sink = p (0 - delta).
void kernel_attention_sinks_backward(const KernelAttention *shape, const float *sinks, const float *lse,
                                     const float *delta, float *dsinks) {
    for (int head = 0; head < shape->heads; head++) {
        double sum = 0;
        for (int64_t row = 0; row < shape->queries; row++) {
            const int64_t at = head * shape->lse_stride + row;
            sum += exp((double)sinks[head] - (double)lse[at]) * (double)delta[at];
        }
        dsinks[head] -= (float)sum;
    }
}
