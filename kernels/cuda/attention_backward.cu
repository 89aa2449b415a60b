// Backward attention on tensor cores after FlashAttention-2 (Dao 2023, algorithm 2). A block of eight warps holds 128
// keys of one key head, 16 per warp, and walks over the query tiles (64) that see them, head by head of the group.
// Everything is computed transposed, S^T = K Q^T and dP^T = V dO^T, so that P^T and dS^T leave one product in the
// registers from which the next one takes them, and dK and dV stay in registers to the end: the sum over a group's
// heads needs no extra memory and has a fixed order. Only dS^T goes through shared memory, for dQ = dS K, which is
// added to global memory in fp32. On sm_90a four warps multiply as a warpgroup from the same tiles; everything else is
// the same, including register layouts.
// Deterministic mode: blocks add to a query tile in the order of their keys, each when its turn comes. A block takes
// its place in line from a counter, so those before it are already running and the wait ends whatever order the GPU
// starts blocks in; tiles are walked from last to first, so that no block waits longer than one step of the block
// before it. A second pass over query tiles instead would compute S and dP twice: seven products instead of five.

#include "kernels/cuda/attention_launch.h"
#include "kernels/cuda/attention_own.h"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/launch.cuh"

#include <math.h>

enum {
    KEYS = OWN_BACK_KEYS,
    QUERIES = OWN_BACK_QUERIES,
    WARP_KEYS = 16,
    THREADS = KEYS / WARP_KEYS * WARP,
    GROUP_WARPS = 4,  // per warpgroup
    GROUP_KEYS = GROUP_WARPS * WARP_KEYS,
    QUERY_TILES = QUERIES / 8,
    ROW_WARPS = QUERIES / 16,               // for dQ: this many warps along the queries,
    COL_WARPS = THREADS / WARP / ROW_WARPS  // and across the head
};

struct Backward {
    CudaAttention call;
    const Bf16 *q, *k, *v, *d_o;
    const float *lse, *delta;
    float *dq;
    int64_t dq_stride, dq_sequence;
    void *dk, *dv;
    uint32_t *turns;  // deterministic mode: the counter, then [sequence][head][query tile]
};

// Shared memory of a block. First come lse, in base 2, and delta of each stage.
template <int D> struct Shared {
    Bf16 k[KEYS * D], v[KEYS * D];
    Bf16 q[2][QUERIES * D], d_o[2][QUERIES * D];
    Bf16 ds[KEYS * QUERIES];  // transposed
    float lse[2][QUERIES], delta[2][QUERIES];
    uint32_t ticket, unused[31];  // whole 128 bytes
};

struct Place {
    int first, left;  // first key, number of keys from there on
    int kv_head, tile, sequence;
};

// One step: a query tile of one head.
struct Step {
    int head, tile;

    __device__ __forceinline__ int first() const {
        return tile * QUERIES;
    }

    __device__ __forceinline__ int left(const KernelAttention &block) const {
        return (int)block.queries - first();
    }
};

template <int D> struct Sums {
    float dk[D / 8][4], dv[D / 8][4];  // for 16 keys
};

static __device__ Place place_of(const CudaAttention &call, uint32_t number) {
    const KernelAttention &block = call.block;
    const uint32_t across = (uint32_t)(block.kv_heads * call.sequences);
    Place at;
    at.tile = (int)(number / across);  // the first keys are seen by most queries: their blocks start first
    at.first = at.tile * KEYS;
    at.left = (int)block.keys - at.first;
    at.kv_head = (int)(number % across % (uint32_t)block.kv_heads);
    at.sequence = (int)(number % across / (uint32_t)block.kv_heads);
    return at;
}

// Query tiles that a block of keys walks; outside these, no tile sees them.
struct Tiles {
    int first, last;
};

// Steps go through the heads of the group, and in each through the query tiles from last to first.
static __device__ __forceinline__ Step step_behind(const Step &step, const Tiles &tiles) {
    return step.tile > tiles.first ? Step{step.head, step.tile - 1} : Step{step.head + 1, tiles.last};
}

template <int D>
static __device__ __forceinline__ void fetch_step(Shared<D> &shared, const Backward &work, const Place &at,
                                                  const Step &step, int stage) {
    const KernelAttention &block = work.call.block;
    const int64_t head_at = (int64_t)step.head * D;
    tile_fetch<D, QUERIES, THREADS>(
        shared.q[stage], work.q + at.sequence * work.call.q_sequence + step.first() * block.q_stride + head_at,
        block.q_stride, step.left(block));
    tile_fetch<D, QUERIES, THREADS>(
        shared.d_o[stage], work.d_o + at.sequence * work.call.o_sequence + step.first() * block.o_stride + head_at,
        block.o_stride, step.left(block));
}

// Loads lse (threads below QUERIES) or delta (the next QUERIES) of a step's row into a register until its stage is
// free. Queries that saw no key, and those past the last one, get lse +inf: exp(s - inf) = 0.
static __device__ __forceinline__ float fetch_row(const Backward &work, const Place &at, const Step &step) {
    const KernelAttention &block = work.call.block;
    const int thread = (int)threadIdx.x, row = thread % QUERIES;
    const bool is_lse = thread < QUERIES;
    if (thread >= 2 * QUERIES || row >= step.left(block)) {
        return is_lse ? INFINITY : 0.0f;
    }
    const int64_t start = at.sequence * work.call.lse_sequence + step.head * block.lse_stride + step.first();
    const float lse = work.lse[start + row];
    if (is_lse) {
        return lse > -INFINITY ? lse * LOG2_E : INFINITY;
    }
    return lse > -INFINITY ? work.delta[start + row] : 0.0f;
}

template <int D> static __device__ __forceinline__ void keep_row(Shared<D> &shared, int stage, float value) {
    const int thread = (int)threadIdx.x;
    if (thread < QUERIES) {
        shared.lse[stage][thread] = value;
    } else if (thread < 2 * QUERIES) {
        shared.delta[stage][thread - QUERIES] = value;
    }
}

// c[16 keys][64 queries] = keys (16 rows from `row`) times queries, summed over the head dimension.
template <int D>
static __device__ __forceinline__ void product(float c[QUERY_TILES][4], Bf16 *keys, int row, Bf16 *queries, int lane) {
#pragma unroll
    for (int n = 0; n < QUERY_TILES; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            c[n][i] = 0.0f;
        }
    }
#pragma unroll 2  // a full unroll would keep more fragments in flight than there are registers
    for (int step = 0; step < D / 16; step++) {
        uint32_t a[4];
        tile_upright<KEYS>(a, keys, row, 2 * step, lane);
#pragma unroll
        for (int n = 0; n < QUERY_TILES; n += 2) {
            uint32_t b[4];
            tile_crossed<QUERIES>(b, queries, 8 * n, 2 * step, lane);
            word_mma(c[n], a, b);
            word_mma(c[n + 1], a, b + 2);
        }
    }
}

// sums[16 keys][D] += weights^T[16 keys][64 queries] times rows[64 queries][D].
template <int D>
static __device__ __forceinline__ void gather(float sums[D / 8][4], const float weights[QUERY_TILES][4], Bf16 *rows,
                                              int lane) {
#pragma unroll
    for (int step = 0; step < QUERIES / 16; step++) {
        uint32_t a[4];
        tile_repack(a, weights[2 * step], weights[2 * step + 1]);
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            uint32_t b[4];
            tile_upright_transposed<QUERIES>(b, rows, 16 * step, n, lane);
            word_mma(sums[n], a, b);
            word_mma(sums[n + 1], a, b + 2);
        }
    }
}

// Which of a warp's keys are visible in a step: query i of the tile sees key j when j <= ahead + i, with a window only
// the first `window` queries from there on do. There are `behind` keys.
struct Sight {
    int ahead, behind, window;
};

// Turns scores into probabilities.
template <bool WINDOW>
static __device__ __forceinline__ void probabilities(float p[QUERY_TILES][4], const Sight &sight, const float *lse,
                                                     float scale) {
    const int lane = threadIdx.x % WARP;
    const float scale_log2 = LOG2_E * scale;
#pragma unroll
    for (int n = 0; n < QUERY_TILES; n++) {
        const Two row = *reinterpret_cast<const Two *>(lse + 8 * n + 2 * (lane % 4));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            p[n][i] = word_exp2(p[n][i] * scale_log2 - (i % 2 ? row.y : row.x));
        }
    }
    if (sight.ahead >= WARP_KEYS - 1 && sight.behind >= WARP_KEYS &&
        !(WINDOW && sight.ahead + QUERIES > sight.window)) {
        return;
    }
#pragma unroll
    for (int n = 0; n < QUERY_TILES; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int query = 8 * n + 2 * (lane % 4) + i % 2, key = lane / 4 + 8 * (i / 2);
            const int distance = sight.ahead + query - key;
            const bool unseen = WINDOW ? (uint32_t)distance >= (uint32_t)sight.window : distance < 0;
            p[n][i] = unseen || key >= sight.behind ? 0.0f : p[n][i];
        }
    }
}

// Repacks as the left operand of products over queries.
static __device__ __forceinline__ void repack(uint32_t a[QUERIES / 16][4], const float x[QUERY_TILES][4]) {
#pragma unroll
    for (int step = 0; step < QUERIES / 16; step++) {
        tile_repack(a[step], x[2 * step], x[2 * step + 1]);
    }
}

// Turns dP^T into dS^T (without the scale), kept in registers and, in bf16, in shared memory for the product with K.
template <int D>
static __device__ __forceinline__ void differentiate(float ds[QUERY_TILES][4], const float p[QUERY_TILES][4],
                                                     Shared<D> &shared, const float *delta) {
    const int lane = threadIdx.x % WARP, row = (int)(threadIdx.x / WARP) * WARP_KEYS + lane / 4;
#pragma unroll
    for (int n = 0; n < QUERY_TILES; n++) {
        const Two row_delta = *reinterpret_cast<const Two *>(delta + 8 * n + 2 * (lane % 4));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            ds[n][i] = p[n][i] * (ds[n][i] - (i % 2 ? row_delta.y : row_delta.x));
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            Bf16 *const at = tile_piece(shared.ds, row + 8 * half, n) + 2 * (lane % 4);
            *reinterpret_cast<uint32_t *>(at) = word_bf16_pair(ds[n][2 * half], ds[n][2 * half + 1]);
        }
    }
}

template <int D> static __device__ __forceinline__ void no_difference(Shared<D> &shared) {
    const int lane = threadIdx.x % WARP, row = (int)(threadIdx.x / WARP) * WARP_KEYS + lane / 2;
#pragma unroll
    for (int n = 0; n < QUERY_TILES / 2; n++) {
        word_store16(tile_piece(shared.ds, row, 2 * n + lane % 2), Word16{});
    }
}

// The block's part of dQ in a step, in the registers of all warps: 16 queries and D / COL_WARPS columns per warp.
template <int D>
static __device__ __forceinline__ void dq_of(float dq[D / COL_WARPS / 8][4], Shared<D> &shared, int lane) {
    const int warp = (int)(threadIdx.x / WARP), row = warp % ROW_WARPS, col = warp / ROW_WARPS;
#pragma unroll
    for (int n = 0; n < D / COL_WARPS / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            dq[n][i] = 0.0f;
        }
    }
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
        uint32_t a[4];
        tile_crossed_transposed<KEYS>(a, shared.ds, 16 * step, 2 * row, lane);
#pragma unroll
        for (int n = 0; n < D / COL_WARPS / 8; n += 2) {
            uint32_t b[4];
            tile_upright_transposed<KEYS>(b, shared.k, 16 * step, col * (D / COL_WARPS / 8) + n, lane);
            word_mma(dq[n], a, b);
            word_mma(dq[n + 1], a, b + 2);
        }
    }
}

// The same with warpgroups: each computes all 64 queries and half of the head dimension.
template <int D> static __device__ __forceinline__ void group_dq(float dq[D / COL_WARPS / 8][4], Shared<D> &shared) {
    const int col = (int)(threadIdx.x / WARP) / ROW_WARPS * (D / COL_WARPS);
    word_group_begin();
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
        Bf16 *const keys = tile_panel<KEYS>(shared.k, col / PANEL) + 16 * step * PANEL + col % PANEL;
        word_group_mma<D / COL_WARPS, true>(dq, word_group_operand(shared.ds + 16 * step * PANEL),
                                            word_group_operand(keys), step > 0);
    }
    word_group_commit();
    word_group_wait<0>();
    word_group_here<D / COL_WARPS / 8>(dq);
}

template <int D>
static __device__ __forceinline__ void add_dq(const float dq[D / COL_WARPS / 8][4], const Backward &work,
                                              const Place &at, const Step &step) {
    const KernelAttention &block = work.call.block;
    const int warp = (int)(threadIdx.x / WARP), lane = threadIdx.x % WARP;
    const float scale = 1.0f / sqrtf((float)D);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = warp % ROW_WARPS * 16 + lane / 4 + 8 * half;
        if (row >= step.left(block)) {
            continue;
        }
        float *const to = work.dq + at.sequence * work.dq_sequence + (step.first() + row) * work.dq_stride +
                          (int64_t)step.head * D + warp / ROW_WARPS * (D / COL_WARPS) + 2 * (lane % 4);
#pragma unroll
        for (int n = 0; n < D / COL_WARPS / 8; n++) {
            word_add_pair(to + 8 * n, dq[n][2 * half] * scale, dq[n][2 * half + 1] * scale);
        }
    }
}

static __device__ __forceinline__ uint32_t *turn_of(const Backward &work, const Place &at, const Step &step) {
    const KernelAttention &block = work.call.block;
    const int64_t tiles = (block.queries + QUERIES - 1) / QUERIES;
    return work.turns + 1 + (at.sequence * block.heads + step.head) * tiles + step.tile;
}

// The whole block waits until the keys before its own have been added to this query tile; then lets the next block in.
static __device__ __forceinline__ void turn_wait(const Backward &work, const Place &at, const Step &step) {
    if (threadIdx.x == 0) {
        while (word_load_acquire(turn_of(work, at, step)) != (uint32_t)at.tile) {
        }
    }
    __syncthreads();
}

static __device__ __forceinline__ void turn_pass(const Backward &work, const Place &at, const Step &step) {
    __syncthreads();
    if (threadIdx.x == 0) {
        word_store_release(turn_of(work, at, step), (uint32_t)at.tile + 1);
    }
}

template <int D, bool WINDOW>
static __device__ __forceinline__ void warp_back(Shared<D> &shared, Sums<D> &sums, const Sight &sight, int stage) {
    const int lane = threadIdx.x % WARP, row = (int)(threadIdx.x / WARP) * WARP_KEYS;
    float p[QUERY_TILES][4], ds[QUERY_TILES][4];
    product<D>(p, shared.k, row, shared.q[stage], lane);
    probabilities<WINDOW>(p, sight, shared.lse[stage], 1.0f / sqrtf((float)D));
    gather<D>(sums.dv, p, shared.d_o[stage], lane);
    product<D>(ds, shared.v, row, shared.d_o[stage], lane);
    differentiate<D>(ds, p, shared, shared.delta[stage]);
    gather<D>(sums.dk, ds, shared.q[stage], lane);
}

// The same with a warpgroup, whose products overlap the computation of probabilities and differences.
template <int D, bool WINDOW>
static __device__ __forceinline__ void group_back(Shared<D> &shared, Sums<D> &sums, const Sight &sight, int stage) {
    const int row = (int)(threadIdx.x / WARP) / GROUP_WARPS * GROUP_KEYS;
    float p[QUERY_TILES][4], ds[QUERY_TILES][4];
    uint32_t weights[QUERIES / 16][4], slopes[QUERIES / 16][4];
    word_group_begin();
    tile_group_product<D, KEYS, QUERIES>(p, shared.k, row, shared.q[stage]);
    word_group_commit();
    tile_group_product<D, KEYS, QUERIES>(ds, shared.v, row, shared.d_o[stage]);
    word_group_commit();
    word_group_wait<1>();
    word_group_here<QUERY_TILES>(p);
    probabilities<WINDOW>(p, sight, shared.lse[stage], 1.0f / sqrtf((float)D));
    repack(weights, p);
    word_group_begin();
    tile_group_gather<D, QUERIES>(sums.dv, weights, shared.d_o[stage]);
    word_group_commit();
    word_group_wait<1>();
    word_group_here<QUERY_TILES>(ds);
    differentiate<D>(ds, p, shared, shared.delta[stage]);
    repack(slopes, ds);
    word_group_begin();
    tile_group_gather<D, QUERIES>(sums.dk, slopes, shared.q[stage]);
    word_group_commit();
}

template <int D, bool ORDERED, bool WINDOW>
static __device__ __forceinline__ void step_back(Shared<D> &shared, Sums<D> &sums, const Backward &work,
                                                 const Place &at, const Step &step, int stage) {
    const KernelAttention &block = work.call.block;
    const int together = word_has_groups() ? GROUP_KEYS : WARP_KEYS;  // keys that are multiplied or skipped together
    const int row = (int)(threadIdx.x / WARP) * WARP_KEYS, before = row % together;
    const int64_t from_first = block.q_first + step.first() - block.k_first - at.first - row;
    const int window = WINDOW ? (int)least(block.window, INT32_MAX) : 0;
    const Sight sight = {(int)least(from_first, WINDOW ? INT32_MAX - QUERIES - KEYS : KEYS),
                         (int)least(at.left - row, KEYS), window};
    const bool sees = sight.ahead + before + QUERIES - 1 >= 0 && sight.behind + before > 0 &&
                      !(WINDOW && sight.ahead + before - together + 1 >= window);
    if (sees && word_has_groups()) {
        group_back<D, WINDOW>(shared, sums, sight, stage);
    } else if (sees) {
        warp_back<D, WINDOW>(shared, sums, sight, stage);
    } else {
        no_difference<D>(shared);
    }
    word_group_publish();
    __syncthreads();
    float dq[D / COL_WARPS / 8][4];
    if (word_has_groups()) {
        group_dq<D>(dq, shared);
    } else {
        dq_of<D>(dq, shared, threadIdx.x % WARP);
    }
    if (ORDERED) {
        turn_wait(work, at, step);
    }
    add_dq<D>(dq, work, at, step);
    if (ORDERED) {
        turn_pass(work, at, step);
    }
}

// Written in bf16 or added in fp32: no other block has these keys.
template <int D>
static __device__ __forceinline__ void finish(const float sums[D / 8][4], float scale, const Backward &work,
                                              const Place &at, void *to) {
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = (int)(threadIdx.x / WARP) * WARP_KEYS + lane / 4 + 8 * half;
        if (row >= at.left) {
            continue;
        }
        const int64_t start = at.sequence * work.call.dkv_sequence + (at.first + row) * work.call.dkv_stride +
                              (int64_t)at.kv_head * D + 2 * (lane % 4);
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
            const float x = sums[n][2 * half] * scale, y = sums[n][2 * half + 1] * scale;
            if (work.call.gradient == KERNEL_BF16) {
                *reinterpret_cast<uint32_t *>(static_cast<Bf16 *>(to) + start + 8 * n) = word_bf16_pair(x, y);
                continue;
            }
            Two *const sum = reinterpret_cast<Two *>(static_cast<float *>(to) + start + 8 * n);
            *sum = Two{sum->x + x, sum->y + y};
        }
    }
}

template <int D> static __device__ __forceinline__ uint32_t place_in_line(const Backward &work, Shared<D> &shared) {
    if (threadIdx.x == 0) {
        shared.ticket = word_add(work.turns, 1u);
    }
    __syncthreads();
    return shared.ticket;
}

// With a window, no query past the last that sees the last key sees any; when ordered, every tile still takes its turn.
template <bool ORDERED, bool WINDOW>
static __device__ __forceinline__ Tiles tiles_of(const KernelAttention &block, const Place &at) {
    const int tiles = (int)((block.queries + QUERIES - 1) / QUERIES);
    const int64_t unseeing = block.k_first + at.first - block.q_first;  // number of queries before all keys
    Tiles walked = {unseeing > 0 ? (int)least(unseeing / QUERIES, tiles) : 0, tiles - 1};
    if (WINDOW && !ORDERED) {
        const int64_t seeing = unseeing + least(at.left, KEYS) - 1 + block.window;      // queries before the first one
        walked.last = seeing > 0 ? (int)least((seeing - 1) / QUERIES, tiles - 1) : -1;  // past the window
    }
    walked.last = unseeing < block.queries ? walked.last : -1;
    return walked;
}

template <int D, bool ORDERED, bool WINDOW>
static __global__ void __launch_bounds__(THREADS, 1) attention_backward_kernel(const Backward work) {
    const KernelAttention &block = work.call.block;
    Shared<D> &shared = *word_shared<Shared<D>>();
    const Place at = place_of(work.call, ORDERED ? place_in_line<D>(work, shared) : blockIdx.x);
    const Tiles tiles = tiles_of<ORDERED, WINDOW>(block, at);
    const int group = block.heads / block.kv_heads;
    const int steps = tiles.last >= tiles.first ? (tiles.last - tiles.first + 1) * group : 0;
    const int64_t kv_at = at.sequence * work.call.kv_sequence + at.first * block.kv_stride + (int64_t)at.kv_head * D;
    Sums<D> sums = {};
    Step step = {at.kv_head * group, tiles.last};
    if (steps > 0) {
        tile_fetch<D, KEYS, THREADS>(shared.k, work.k + kv_at, block.kv_stride, at.left);
        tile_fetch<D, KEYS, THREADS>(shared.v, work.v + kv_at, block.kv_stride, at.left);
        fetch_step<D>(shared, work, at, step, 0);
        word_copy_commit();
        keep_row<D>(shared, 0, fetch_row(work, at, step));
    }
    for (int i = 0; i < steps; i++) {
        word_copy_wait<0>();
        word_group_publish();
        __syncthreads();  // this stage has arrived, and the other one is free
        const Step next = step_behind(step, tiles);
        float next_row = 0.0f;
        if (i + 1 < steps) {
            fetch_step<D>(shared, work, at, next, (i + 1) % 2);
            next_row = fetch_row(work, at, next);
        }
        word_copy_commit();
        step_back<D, ORDERED, WINDOW>(shared, sums, work, at, step, i % 2);
        keep_row<D>(shared, (i + 1) % 2, next_row);
        step = next;
    }
    word_group_here<D / 8>(sums.dk);
    word_group_here<D / 8>(sums.dv);
    finish<D>(sums.dk, 1.0f / sqrtf((float)D), work, at, work.dk);
    finish<D>(sums.dv, 1.0f, work, at, work.dv);
}

template <int D> static int launch_backward(const Backward &work, cudaStream_t stream) {
    const LaunchShape shape = attention_own_shape(&work.call);
    static_assert(sizeof(Shared<D>) <= LAUNCH_MAX_SHARED_BYTES, "fits sm_80");
    if (sizeof(Shared<D>) != shape.shared_bytes) {
        return (int)cudaErrorInvalidConfiguration;
    }
    if (work.call.block.window > 0) {
        return work.call.deterministic ? launch(attention_backward_kernel<D, true, true>, shape, stream, work)
                                       : launch(attention_backward_kernel<D, false, true>, shape, stream, work);
    }
    return work.call.deterministic ? launch(attention_backward_kernel<D, true, false>, shape, stream, work)
                                   : launch(attention_backward_kernel<D, false, false>, shape, stream, work);
}

extern "C" int attention_own_backward(const CudaAttention *call, const AttentionData *data, cudaStream_t stream) {
    const KernelAttention &block = call->block;
    const bool narrow = call->gradient == KERNEL_BF16;
    const int64_t turns_bytes = attention_own_turns_bytes(call), width = (int64_t)block.heads * block.head_dim;
    float *const sum = reinterpret_cast<float *>(static_cast<char *>(data->workspace) + turns_bytes);
    const Backward work = {*call,
                           static_cast<const Bf16 *>(data->q),
                           static_cast<const Bf16 *>(data->k),
                           static_cast<const Bf16 *>(data->v),
                           static_cast<const Bf16 *>(data->d_o),
                           data->lse,
                           data->delta,
                           narrow ? sum : static_cast<float *>(data->dq),
                           narrow ? width : call->dq_stride,
                           narrow ? block.queries * width : call->dq_sequence,
                           data->dk,
                           data->dv,
                           static_cast<uint32_t *>(data->workspace)};
    int status = 0;
    if (attention_own_workspace_bytes(call) > 0) {
        status = cudaMemsetAsync(data->workspace, 0, (size_t)attention_own_workspace_bytes(call), stream);
    }
    if (status == 0) {
        status = block.head_dim == 64 ? launch_backward<64>(work, stream) : launch_backward<128>(work, stream);
    }
    if (status == 0 && narrow) {
        const AttentionRows rows = {call->sequences, block.queries, width, call->dq_stride, call->dq_sequence};
        status = attention_narrow_rows(&rows, sum, data->dq, stream);
    }
    return status;
}
