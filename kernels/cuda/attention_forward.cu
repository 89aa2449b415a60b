// Forward attention on tensor cores after FlashAttention-2 (Dao 2023, algorithm 1): a block of four warps holds 128
// queries, 32 per warp, and walks over the keys they see in tiles of 64. On sm_90a the four multiply as a warpgroup, 64
// queries at a time, and the exponentials of one half overlap the score products of the other. Scores, probabilities
// and the result stay in registers; keys and values come through a ring of shared-memory slots by asynchronous copies,
// K0 V0 K1 V1 ..., two ahead of the multiplication. Tiles that no query sees are not loaded, a warp skips those that it
// does not see, and only tiles on the causal diagonal or past the last key are masked. Blocks with the most keys start
// first; query heads of one key head run concurrently. Another block's (o, lse) is merged in fp32 registers at the end.
// Registers limit the sizes: 32 rows x 128 head dimensions are 128 accumulators per thread, plus 64 scores.

#include "kernels/cuda/attention_launch.h"
#include "kernels/cuda/attention_own.h"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/launch.cuh"

#include <math.h>

enum {
    WARP_ROWS = 32,
    THREADS = OWN_QUERIES / WARP_ROWS * WARP,
    SLOTS = OWN_SLOTS,
    SCORE_TILES = OWN_KEYS / 8,
    GROUP_ROWS = 64
};

struct Forward {
    CudaAttention call;
    const Bf16 *q, *k, *v;
    void *o;
    float *lse;
};

// A block's position.
struct Place {
    int first, left;  // first query, number of queries from there on
    int head, sequence;
};

template <int D> struct Rows {  // per warp: 2 x 16 queries
    float o[2][D / 8][4];
    float scores[2][SCORE_TILES][4];
    uint32_t weights[2][OWN_KEYS / 16][4];  // exponentials, as the left operand of the product with values
    float max[2][2], sum[2][2];             // of rows lane / 4 and + 8 of each 16
};

static __device__ Place place_of(const CudaAttention &call) {
    const KernelAttention &block = call.block;
    Place at;
    at.first = (int)(gridDim.y - 1 - blockIdx.y) * OWN_QUERIES;
    at.left = (int)block.queries - at.first;
    at.head = (int)(blockIdx.x % (uint32_t)block.heads);
    at.sequence = (int)(blockIdx.x / (uint32_t)block.heads);
    return at;
}

// First row of a warp's first or second 16 queries. A warpgroup multiplies 64 rows at a time, 16 per warp.
static __device__ __forceinline__ int row_of(int m) {
    const int warp = (int)(threadIdx.x / WARP);
    return word_has_groups() ? GROUP_ROWS * m + 16 * warp : WARP_ROWS * warp + 16 * m;
}

template <int D> static __device__ __forceinline__ void scores_of(Rows<D> &rows, Bf16 *q, Bf16 *k, int warp) {
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int m = 0; m < 2; m++) {
#pragma unroll
        for (int n = 0; n < SCORE_TILES; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                rows.scores[m][n][i] = 0.0f;
            }
        }
    }
#pragma unroll 4  // a full unroll would keep more fragments in flight than there are registers
    for (int step = 0; step < D / 16; step++) {
        uint32_t a[2][4];
        tile_upright<OWN_QUERIES>(a[0], q, warp * WARP_ROWS, 2 * step, lane);
        tile_upright<OWN_QUERIES>(a[1], q, warp * WARP_ROWS + 16, 2 * step, lane);
#pragma unroll
        for (int n = 0; n < SCORE_TILES; n += 2) {
            uint32_t b[4];
            tile_crossed<OWN_KEYS>(b, k, 8 * n, 2 * step, lane);
#pragma unroll
            for (int m = 0; m < 2; m++) {
                word_mma(rows.scores[m][n], a[m], b);
                word_mma(rows.scores[m][n + 1], a[m], b + 2);
            }
        }
    }
}

// The first of 16 queries sees the first `ahead` keys of a tile (may be negative), out of the `behind` keys that it
// has; with a window, not the first `before` keys.
struct Sight {
    int ahead, behind, before;
};

// Masks keys that come after a query or past the last key.
template <bool WINDOW> static __device__ __forceinline__ void hide(float scores[SCORE_TILES][4], const Sight &sight) {
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int half = 0; half < 2; half++) {  // 8 queries each
        const int sees = sight.ahead + 8 * half + lane / 4;
        const int edge = (sees < sight.behind ? sees : sight.behind) - 2 * (lane % 4);
        const int begin = sight.before + 8 * half + lane / 4 - 2 * (lane % 4);
#pragma unroll
        for (int n = 0; n < SCORE_TILES; n++) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                if (8 * n + i >= edge || (WINDOW && 8 * n + i < begin)) {
                    scores[n][2 * half + i] = -INFINITY;
                }
            }
        }
    }
}

// Turns scores of 16 queries into exponentials; maxima, sums and earlier results are rescaled to the new maximum.
template <int D> static __device__ __forceinline__ void soften(Rows<D> &rows, int m, float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float highest = rows.max[m][half];
#pragma unroll
        for (int n = 0; n < SCORE_TILES; n++) {
            highest = fmaxf(highest, fmaxf(rows.scores[m][n][2 * half], rows.scores[m][n][2 * half + 1]));
        }
        highest = fmaxf(highest, word_shuffle_xor(highest, 1));
        highest = fmaxf(highest, word_shuffle_xor(highest, 2));
        const float shift = highest > -INFINITY ? highest * scale_log2 : 0.0f;
        const float shrink = word_exp2(rows.max[m][half] * scale_log2 - shift);
        rows.max[m][half] = highest;
        float sum = 0.0f;
#pragma unroll
        for (int n = 0; n < SCORE_TILES; n++) {
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                rows.scores[m][n][i] = word_exp2(rows.scores[m][n][i] * scale_log2 - shift);
                sum += rows.scores[m][n][i];
            }
        }
        rows.sum[m][half] = rows.sum[m][half] * shrink + sum;
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
            rows.o[m][n][2 * half] *= shrink;
            rows.o[m][n][2 * half + 1] *= shrink;
        }
    }
#pragma unroll
    for (int step = 0; step < OWN_KEYS / 16; step++) {
        tile_repack(rows.weights[m][step], rows.scores[m][2 * step], rows.scores[m][2 * step + 1]);
    }
}

template <int D> static __device__ __forceinline__ void values_of(Rows<D> &rows, Bf16 *v) {
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int step = 0; step < OWN_KEYS / 16; step++) {
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            uint32_t b[4];
            tile_upright_transposed<OWN_KEYS>(b, v, 16 * step, n, lane);
#pragma unroll
            for (int m = 0; m < 2; m++) {
                word_mma(rows.o[m][n], rows.weights[m][step], b);
                word_mma(rows.o[m][n + 1], rows.weights[m][step], b + 2);
            }
        }
    }
}

// Writes one row, merged with what an earlier block left there. All lanes of the row must call this; the first of four
// writes lse.
template <int D>
static __device__ __forceinline__ void finish_row(const Forward &work, const Place &at, const Rows<D> &rows, int m,
                                                  int half, float scale) {
    const KernelAttention &block = work.call.block;
    const int lane = threadIdx.x % WARP;
    const int row = row_of(m) + 8 * half + lane / 4;
    const bool inside = row < at.left;
    float sum = rows.sum[m][half];
    sum += word_shuffle_xor(sum, 1);
    sum += word_shuffle_xor(sum, 2);
    float *const lse = work.lse + at.sequence * work.call.lse_sequence + at.head * block.lse_stride + at.first + row;
    const float before = work.call.merge && inside ? *lse : -INFINITY;
    const float own = sum > 0.0f ? rows.max[m][half] * scale + logf(sum) : -INFINITY;
    const float high = fmaxf(before, own), low = fminf(before, own);
    const float both = low > -INFINITY ? high + log1pf(expf(low - high)) : high;
    const float keep = before > -INFINITY ? expf(before - both) : 0.0f;
    const float take = sum > 0.0f ? expf(own - both) / sum : 0.0f;
    __syncwarp();  // all four have read lse
    if (!inside || (work.call.merge && sum <= 0.0f)) {
        return;
    }
    if (lane % 4 == 0) {
        *lse = both;
    }
    const int64_t start =
        at.sequence * work.call.o_sequence + (at.first + row) * block.o_stride + (int64_t)at.head * D + 2 * (lane % 4);
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
        float x = rows.o[m][n][2 * half] * take, y = rows.o[m][n][2 * half + 1] * take;
        if (work.call.output == KERNEL_BF16) {
            *reinterpret_cast<uint32_t *>(static_cast<Bf16 *>(work.o) + start + 8 * n) = word_bf16_pair(x, y);
            continue;
        }
        Two *const o = reinterpret_cast<Two *>(static_cast<float *>(work.o) + start + 8 * n);
        if (work.call.merge) {
            x += o->x * keep;
            y += o->y * keep;
        }
        *o = Two{x, y};
    }
}

// The asynchronous copies: item 2 i is key tile i, item 2 i + 1 value tile i.
template <int D> struct Ring {
    const Forward &work;
    Bf16 *slots;
    int64_t start;  // first element of the head's keys and values
    int first_tile, items;

    __device__ __forceinline__ Bf16 *slot(int item) const {
        return slots + item % SLOTS * (OWN_KEYS * D);
    }

    // Every call commits one group, so that groups count items.
    __device__ __forceinline__ void fetch(int item) const {
        if (item < items) {
            const int64_t first = (int64_t)(first_tile + item / 2) * OWN_KEYS;
            const KernelAttention &block = work.call.block;
            tile_fetch<D, OWN_KEYS, THREADS>(slot(item), (item % 2 ? work.v : work.k) + start + first * block.kv_stride,
                                             block.kv_stride, block.keys - first);
        }
        word_copy_commit();
    }

    // The item has arrived for all threads, and the slot of the item before it is free: the next one goes there.
    __device__ __forceinline__ void advance(int item) const {
        word_copy_wait<SLOTS - 2>();
        word_group_publish();
        __syncthreads();
        fetch(item + SLOTS - 1);
    }
};

// Number of keys of the block that are before this query's window.
static __device__ __forceinline__ int64_t unseen_before(const KernelAttention &block, int64_t query) {
    return block.q_first + query + 1 - block.window - block.k_first;
}

// The first tile that the block's first query sees.
template <bool WINDOW> static __device__ __forceinline__ int first_tile_of(const KernelAttention &block, int first) {
    const int64_t unseen = WINDOW ? unseen_before(block, first) : 0;
    return unseen > 0 ? (int)(least(unseen, block.keys) / OWN_KEYS) : 0;
}

// For the queries from `query` on and all keys; clamped to the range that matters.
template <bool WINDOW> static __device__ __forceinline__ Sight sight_of(const KernelAttention &block, int query) {
    const int64_t ahead = block.q_first + query - block.k_first + 1, before = WINDOW ? unseen_before(block, query) : 0;
    return Sight{(int)most(least(ahead, INT32_MAX / 2), -(int64_t)OWN_QUERIES), (int)block.keys,
                 (int)most(least(before, INT32_MAX / 2), -(int64_t)OWN_QUERIES)};
}

// Scores of one of the warp's groups of 16 queries to weights. sight: of the first group.
template <int D, bool WINDOW> static __device__ __forceinline__ void weigh(Rows<D> &rows, int m, const Sight &sight) {
    const int apart = row_of(1) - row_of(0);
    const Sight own = {sight.ahead + m * apart, sight.behind, sight.before + m * apart};
    if (own.ahead < OWN_KEYS || own.behind < OWN_KEYS || (WINDOW && own.before + 16 > 0)) {
        hide<WINDOW>(rows.scores[m], own);
    }
    soften<D>(rows, m, LOG2_E / sqrtf((float)D));
}

template <int D, bool WINDOW>
static __device__ __forceinline__ void warp_tile(Rows<D> &rows, const Ring<D> &ring, Bf16 *q, int item,
                                                 const Sight &sight) {
    const bool sees = sight.ahead + WARP_ROWS - 1 > 0 && !(WINDOW && sight.before >= OWN_KEYS);
    ring.advance(item);
    if (sees) {
        scores_of<D>(rows, q, ring.slot(item), (int)(threadIdx.x / WARP));
        weigh<D, WINDOW>(rows, 0, sight);
        weigh<D, WINDOW>(rows, 1, sight);
    }
    ring.advance(item + 1);
    if (sees) {
        values_of<D>(rows, ring.slot(item + 1));
    }
}

// The same with a warpgroup: rows that see nothing of the tile are multiplied too, and masked.
template <int D, bool WINDOW>
static __device__ __forceinline__ void group_tile(Rows<D> &rows, const Ring<D> &ring, Bf16 *q, int item,
                                                  const Sight &sight) {
    ring.advance(item);
    word_group_begin();
#pragma unroll
    for (int m = 0; m < 2; m++) {
        tile_group_product<D, OWN_QUERIES, OWN_KEYS>(rows.scores[m], q, GROUP_ROWS * m, ring.slot(item));
        word_group_commit();
    }
    word_group_wait<1>();
    word_group_here<SCORE_TILES>(rows.scores[0]);
    weigh<D, WINDOW>(rows, 0, sight);
    word_group_wait<0>();
    word_group_here<SCORE_TILES>(rows.scores[1]);
    weigh<D, WINDOW>(rows, 1, sight);
    ring.advance(item + 1);
    word_group_begin();
#pragma unroll
    for (int m = 0; m < 2; m++) {
        tile_group_gather<D, OWN_KEYS>(rows.o[m], rows.weights[m], ring.slot(item + 1));
    }
    word_group_commit();
    word_group_wait<0>();
    word_group_here<D / 8>(rows.o[0]);
    word_group_here<D / 8>(rows.o[1]);
}

template <int D, bool WINDOW>
static __global__ void __launch_bounds__(THREADS) attention_forward_kernel(const Forward work) {
    const KernelAttention &block = work.call.block;
    const Place at = place_of(work.call);
    const int first_tile = first_tile_of<WINDOW>(block, at.first);
    Bf16 *const q = word_shared<Bf16>();
    const int64_t last = at.first + least(at.left, OWN_QUERIES) - 1;
    const int64_t seen = least(block.keys, block.q_first + last + 1 - block.k_first);  // may be negative
    const int tiles = seen > 0 ? (int)((seen + OWN_KEYS - 1) / OWN_KEYS) : 0;
    const int64_t kv_at = at.sequence * work.call.kv_sequence + key_head(block, at.head) * D;
    const Ring<D> ring = {work, q + OWN_QUERIES * D, kv_at, first_tile, 2 * (tiles - first_tile)};
    if (tiles > first_tile) {
        tile_fetch<D, OWN_QUERIES, THREADS>(
            q, work.q + at.sequence * work.call.q_sequence + at.first * block.q_stride + (int64_t)at.head * D,
            block.q_stride, at.left);
    }
    for (int item = 0; item < SLOTS - 1; item++) {
        ring.fetch(item);
    }
    Rows<D> rows = {};
    rows.max[0][0] = rows.max[0][1] = rows.max[1][0] = rows.max[1][1] = -INFINITY;
    const Sight all = sight_of<WINDOW>(block, at.first + row_of(0));
    for (int tile = first_tile; tile < tiles; tile++) {
        const int first = tile * OWN_KEYS;
        const Sight sight = {all.ahead - first, all.behind - first, all.before - first};
        if (word_has_groups()) {
            group_tile<D, WINDOW>(rows, ring, q, 2 * (tile - first_tile), sight);
        } else {
            warp_tile<D, WINDOW>(rows, ring, q, 2 * (tile - first_tile), sight);
        }
    }
#pragma unroll
    for (int m = 0; m < 2; m++) {
        finish_row<D>(work, at, rows, m, 0, 1.0f / sqrtf((float)D));
        finish_row<D>(work, at, rows, m, 1, 1.0f / sqrtf((float)D));
    }
}

template <int D> static int launch_forward(const Forward &work, cudaStream_t stream) {
    const LaunchShape shape = attention_own_shape(&work.call);
    return work.call.block.window > 0 ? launch(attention_forward_kernel<D, true>, shape, stream, work)
                                      : launch(attention_forward_kernel<D, false>, shape, stream, work);
}

extern "C" int attention_own_forward(const CudaAttention *call, const AttentionData *data, cudaStream_t stream) {
    const Forward work = {*call,
                          static_cast<const Bf16 *>(data->q),
                          static_cast<const Bf16 *>(data->k),
                          static_cast<const Bf16 *>(data->v),
                          data->o,
                          data->lse};
    return call->block.head_dim == 64 ? launch_forward<64>(work, stream) : launch_forward<128>(work, stream);
}
