// The words of kernels/cuda/words.cuh on the CPU, for tests: same names, same promises. Matrix pieces have the layouts
// of the PTX ISA (section 9.7.14); sums of mma are exact in double and rounded once.

#pragma once

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/cuda_host/grid.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define threadIdx (host_lane->thread)
#define blockIdx (host_lane->index)
#define blockDim (host_lane->threads)
#define gridDim (host_lane->blocks)

static const int WARP = 32;

static inline void __syncthreads() {
    host_barrier();
}

template <typename T>
static inline T *word_shared() {
    return reinterpret_cast<T *>(host_lane->block->shared);
}

// ---- bits

static inline float word_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t word_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline uint32_t host_bf16(float x) {
    const uint32_t bits = word_bits(x);
    return x != x ? 0x7FFFu : (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;  // the GPU's NaN is this one
}

static inline uint32_t word_bf16_pair(float low, float high) {
    return host_bf16(high) << 16 | host_bf16(low);
}

static inline float word_exp2(float x) {
    return exp2f(x);
}

static inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}

// ---- 16 bytes

struct alignas(16) Word16 {
    uint32_t word[4];
};

static inline Word16 word_load16(const void *at) {
    host_aligned(at, 16, "word_load16");
    host_words_loaded.fetch_add(1, std::memory_order_relaxed);
    Word16 x;
    memcpy(&x, at, sizeof x);
    return x;
}

static inline void word_store16(void *at, Word16 x) {
    host_aligned(at, 16, "word_store16");
    host_words_stored.fetch_add(1, std::memory_order_relaxed);
    memcpy(at, &x, sizeof x);
}

// ---- warps

// fill(in, out) by the last lane to come, for all.
template <typename In, typename Out, typename Fill>
static inline Out host_together(const char *word, const In &in, Fill fill) {
    static_assert(sizeof(In) <= HOST_EXCHANGE_BYTES && sizeof(Out) <= HOST_EXCHANGE_BYTES, "more room");
    HostWarp *warp;
    uint32_t lane;
    if (host_exchange(word, &in, sizeof in, &warp, &lane)) {
        In all[HOST_WARP];
        Out made[HOST_WARP];
        for (int i = 0; i < HOST_WARP; i++) {
            memcpy(&all[i], warp->in[i], sizeof all[i]);
        }
        fill(all, made);
        for (int i = 0; i < HOST_WARP; i++) {
            memcpy(warp->out[i], &made[i], sizeof made[i]);
        }
        host_exchange_done(warp);
    }
    Out out;
    memcpy(&out, warp->out[lane], sizeof out);
    return out;
}

static inline void __syncwarp() {
    host_together<int, int>("__syncwarp", 0, [](const int *, int *out) { memset(out, 0, HOST_WARP * sizeof *out); });
}

template <typename T>
struct HostShuffle {
    T x;
    int from;
};

template <typename T>
static inline T host_shuffle(const char *word, T x, int from) {
    return host_together<HostShuffle<T>, T>(word, HostShuffle<T>{x, from}, [](const HostShuffle<T> *in, T *out) {
        for (int i = 0; i < HOST_WARP; i++) {
            out[i] = in[in[i].from % HOST_WARP].x;
        }
    });
}

static inline float word_shuffle_xor(float x, int lanes) {
    return host_shuffle("word_shuffle_xor", x, (int)(threadIdx.x % HOST_WARP) ^ lanes);
}

static inline double word_shuffle_xor(double x, int lanes) {
    return host_shuffle("word_shuffle_xor", x, (int)(threadIdx.x % HOST_WARP) ^ lanes);
}

static inline uint32_t word_shuffle_xor(uint32_t x, int lanes) {
    return host_shuffle("word_shuffle_xor", x, (int)(threadIdx.x % HOST_WARP) ^ lanes);
}

static inline float word_shuffle(float x, int lane) {
    return host_shuffle("word_shuffle", x, lane);
}

static inline uint32_t word_shuffle(uint32_t x, int lane) {
    return host_shuffle("word_shuffle", x, lane);
}

struct HostFour {
    uint32_t x[4];
};

static inline void host_ldmatrix(const char *word, uint32_t x[4], const void *row, bool transposed) {
    host_aligned(row, 16, word);
    const HostFour four = host_together<const void *, HostFour>(
        word, row, [transposed](const void *const *rows, HostFour *out) {
            for (int lane = 0; lane < HOST_WARP; lane++) {
                for (int matrix = 0; matrix < 4; matrix++) {
                    uint16_t pair[2];
                    for (int i = 0; i < 2; i++) {
                        const int along = 2 * (lane % 4) + i, across = lane / 4;
                        const int at_row = transposed ? along : across, at_col = transposed ? across : along;
                        memcpy(&pair[i], static_cast<const char *>(rows[8 * matrix + at_row]) + 2 * at_col, 2);
                    }
                    out[lane].x[matrix] = (uint32_t)pair[1] << 16 | pair[0];
                }
            }
        });
    memcpy(x, four.x, sizeof four.x);
}

static inline void word_ldmatrix4(uint32_t x[4], const void *row) {
    host_ldmatrix("word_ldmatrix4", x, row, false);
}

static inline void word_ldmatrix4_transposed(uint32_t x[4], const void *row) {
    host_ldmatrix("word_ldmatrix4_transposed", x, row, true);
}

struct HostMma {
    uint32_t a[4], b[2];
    float c[4];
};
struct HostTile {
    float c[4];
};

static inline float host_half(uint32_t pair, int high) {
    return word_float(high ? pair & 0xFFFF0000u : pair << 16);
}

static inline void host_mma_all(const HostMma *in, HostTile *out) {
    float a[16][16], b[16][8];
    for (int lane = 0; lane < HOST_WARP; lane++) {
        const int g = lane / 4, t = 2 * (lane % 4);
        for (int i = 0; i < 2; i++) {
            a[g][t + i] = host_half(in[lane].a[0], i);
            a[g + 8][t + i] = host_half(in[lane].a[1], i);
            a[g][t + 8 + i] = host_half(in[lane].a[2], i);
            a[g + 8][t + 8 + i] = host_half(in[lane].a[3], i);
            b[t + i][g] = host_half(in[lane].b[0], i);
            b[t + 8 + i][g] = host_half(in[lane].b[1], i);
        }
    }
    for (int lane = 0; lane < HOST_WARP; lane++) {
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + 8 * (i / 2), col = 2 * (lane % 4) + i % 2;
            double sum = (double)in[lane].c[i];
            for (int k = 0; k < 16; k++) {
                sum += (double)a[row][k] * (double)b[k][col];
            }
            out[lane].c[i] = (float)sum;
        }
    }
}

static inline void word_mma(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    HostMma in;
    memcpy(in.a, a, sizeof in.a);
    memcpy(in.b, b, sizeof in.b);
    memcpy(in.c, c, sizeof in.c);
    const HostTile tile = host_together<HostMma, HostTile>("word_mma", in, host_mma_all);
    memcpy(c, tile.c, sizeof tile.c);
}

// ---- products of a warpgroup

static inline bool word_has_groups() {
    return host_groups;
}

static inline uint64_t word_group_operand(const void *at) {
    host_aligned(at, 16, "word_group_operand");
    return (uint64_t)(uintptr_t)at;
}

// Element k of row or column `along` of an operand in panels.
static inline float host_group_element(uintptr_t at, int along, int k, bool transposed) {
    const int row = transposed ? k : along, col = transposed ? along : k;
    const uintptr_t plain = at + (uintptr_t)(128 * row + 2 * col);
    uint16_t half;
    memcpy(&half, reinterpret_cast<const void *>(plain ^ (plain >> 7 & 7) << 4), sizeof half);
    return word_float((uint32_t)half << 16);
}

struct HostRows {
    uint16_t a[2][16];  // rows lane / 4 and + 8
};

static inline void host_group_rows(const HostFour *in, HostRows *out) {
    for (int lane = 0; lane < HOST_WARP; lane++) {
        for (int k = 0; k < 16; k++) {
            const HostFour &from = in[lane / 4 * 4 + k % 8 / 2];
            for (int half = 0; half < 2; half++) {
                const uint32_t pair = from.x[half + k / 8 * 2];
                out[lane].a[half][k] = (uint16_t)(k % 2 ? pair >> 16 : pair);
            }
        }
    }
}

static inline void host_group_product(const HostProduct &product) {
    const int lane = (int)(threadIdx.x % HOST_WARP), first = (int)(threadIdx.x / HOST_WARP % 4) * 16;
    float a[2][16];
    HostRows rows = {};
    if (product.in_registers) {
        HostFour four;
        memcpy(four.x, product.rows, sizeof four.x);
        rows = host_together<HostFour, HostRows>("word_group_mma_rows", four, host_group_rows);
    }
    for (int half = 0; half < 2; half++) {
        for (int k = 0; k < 16; k++) {
            const int row = first + lane / 4 + 8 * half;
            a[half][k] = product.in_registers ? word_float((uint32_t)rows.a[half][k] << 16)
                                              : host_group_element(product.a, row, k, product.transposed);
        }
    }
    for (int col = 0; col < product.cols; col++) {
        if (col % 8 / 2 != lane % 4) {
            continue;
        }
        double sum[2] = {0.0, 0.0};
        for (int k = 0; k < 16; k++) {
            const double b = (double)host_group_element(product.b, col, k, product.transposed);
            sum[0] += (double)a[0][k] * b;
            sum[1] += (double)a[1][k] * b;
        }
        for (int half = 0; half < 2; half++) {
            float *const c = &product.c[col / 8][2 * half + col % 2];
            *c = (float)(sum[half] + (product.add ? (double)*c : 0.0));
        }
    }
}

template <int COLS, bool TRANSPOSED>
static inline void word_group_mma(float (*c)[4], uint64_t a, uint64_t b, bool add) {
    host_lane->products.push_back(
        HostProduct{c, false, {}, (uintptr_t)a, (uintptr_t)b, COLS, TRANSPOSED, add, host_lane->product_group});
}

static inline void word_group_mma_rows(float (*c)[4], const uint32_t a[4], uint64_t b) {
    host_lane->products.push_back(
        HostProduct{c, true, {a[0], a[1], a[2], a[3]}, 0, (uintptr_t)b, 64, true, true, host_lane->product_group});
}

static inline void word_group_begin() {
}

static inline void word_group_commit() {
    host_lane->product_group++;
}

template <int pending>
static inline void word_group_wait() {
    std::vector<HostProduct> &products = host_lane->products;
    while (!products.empty() && products.front().group + pending < host_lane->product_group) {
        const HostProduct product = products.front();
        products.erase(products.begin());
        host_group_product(product);
    }
}

template <int TILES>
static inline void word_group_here(float (*)[4]) {
}

static inline void word_group_publish() {
}

// ---- asynchronous copies

static inline void word_copy16(void *shared, const void *global, bool inside) {
    host_copy(shared, global, inside);
}

static inline void word_copy_commit() {
    host_lane->copy_group++;
}

template <int pending>
static inline void word_copy_wait() {
    host_copy_wait(pending);
}

// ---- between threads and blocks

static inline void word_add(float *at, float x) {
    *at += x;
}

static inline void word_add_pair(float *at, float x, float y) {
    host_aligned(at, 8, "word_add_pair");
    word_add(at, x);
    word_add(at + 1, y);
}

static inline uint32_t word_add(uint32_t *at, uint32_t x) {
    const uint32_t before = *at;
    *at += x;
    return before;
}

static inline void word_add_for_host(uint32_t *at, uint32_t x) {
    __atomic_fetch_add(at, x, __ATOMIC_RELAXED);
}

static inline uint32_t word_load_acquire(const uint32_t *at) {
    host_yield_idle();
    return *at;
}

static inline void word_store_release(uint32_t *at, uint32_t x) {
    *at = x;
}
