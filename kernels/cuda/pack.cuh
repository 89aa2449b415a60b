// Packs: W consecutive elements as floats, either PACK or WORD_FLOATS of them in 16-byte words or a single one;
// reductions over a block; and the host-side choice of types and widths.

#pragma once

#include <math.h>

#include "kernels/cuda/bf16.cuh"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launch_plan.h"

template <int W>
struct PackCount {  // a compile-time number as an argument
    static const int value = W;
};

// Elements as stored in memory: loads in flight until they are opened.
template <int W, typename T>
struct alignas(W * sizeof(T) < 16 ? W * sizeof(T) : 16) PackWords {
    uint32_t word[W * sizeof(T) / 4];
};

template <typename T>
struct PackWords<1, T> {
    T x;
};

template <int W, typename T>
static __device__ __forceinline__ PackWords<W, T> pack_fetch(const T *at) {
    constexpr int WORDS = W * (int)sizeof(T) / 16;
    PackWords<W, T> pack;
    if constexpr (WORDS > 0) {
#pragma unroll
        for (int i = 0; i < WORDS; i++) {
            const Word16 words = word_load16(reinterpret_cast<const char *>(at) + 16 * i);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                pack.word[4 * i + j] = words.word[j];
            }
        }
    } else {
        pack = *reinterpret_cast<const PackWords<W, T> *>(at);
    }
    return pack;
}

template <int W>
static __device__ __forceinline__ void pack_open(const PackWords<W, float> &pack, float x[W]) {
    if constexpr (W == 1) {
        x[0] = pack.x;
    } else {
#pragma unroll
        for (int i = 0; i < W; i++) {
            x[i] = word_float(pack.word[i]);
        }
    }
}

template <int W>
static __device__ __forceinline__ void pack_open(const PackWords<W, Bf16> &pack, float x[W]) {
    if constexpr (W == 1) {
        x[0] = bf16_widen(pack.x);
    } else {
#pragma unroll
        for (int i = 0; i < W / 2; i++) {
            x[2 * i] = bf16_low(pack.word[i]);
            x[2 * i + 1] = bf16_high(pack.word[i]);
        }
    }
}

template <int W, typename T>
static __device__ __forceinline__ void pack_load(const T *at, float x[W]) {
    pack_open<W>(pack_fetch<W>(at), x);
}

template <int W>
static __device__ __forceinline__ void pack_store(float *at, const float x[W]) {
    if constexpr (W == 1) {
        *at = x[0];
    } else {
#pragma unroll
        for (int i = 0; i < W; i += 4) {
            const float *y = x + i;
            word_store16(at + i, Word16{{word_bits(y[0]), word_bits(y[1]), word_bits(y[2]), word_bits(y[3])}});
        }
    }
}

template <int W>
static __device__ __forceinline__ void pack_store(Bf16 *at, const float x[W]) {
    if constexpr (W == 1) {
        *at = bf16_narrow(x[0]);
    } else {
        PackWords<W, Bf16> words;
#pragma unroll
        for (int i = 0; i < W / 2; i++) {
            words.word[i] = word_bf16_pair(x[2 * i], x[2 * i + 1]);
        }
        if constexpr (W == PACK) {
            word_store16(at, Word16{{words.word[0], words.word[1], words.word[2], words.word[3]}});
        } else {
            *reinterpret_cast<PackWords<W, Bf16> *>(at) = words;
        }
    }
}

// to[k] = map(a[k], b[k]); all are read before one is written.
template <int W, typename A, typename B, typename T, typename Map>
static __device__ __forceinline__ void pack_map(const A *a, const B *b, T *to, Map map) {
    float x[W], y[W];
    pack_load<W>(a, x);
    pack_load<W>(b, y);
#pragma unroll
    for (int k = 0; k < W; k++) {
        x[k] = map(x[k], y[k]);
    }
    pack_store<W>(to, x);
}

// Elements per thread in a flat pass, such that fp32 words of neighbouring threads are adjacent.
template <typename... Ts>
static constexpr int pack_of() {
    return ((sizeof(Ts) == 4) || ...) ? (int)WORD_FLOATS : (int)PACK;
}

// The value after it is stored as T and read back.
static __device__ __forceinline__ float as_stored(const float *, float x) {
    return x;
}

static __device__ __forceinline__ float as_stored(const Bf16 *, float x) {
    return bf16_widen(bf16_narrow(x));
}

// An element whose format is known only at run time.
static __device__ __forceinline__ float stored_load(const void *from, KernelStore store, int64_t at) {
    return store == KERNEL_FP32 ? static_cast<const float *>(from)[at]
                                : bf16_widen(static_cast<const Bf16 *>(from)[at]);
}

static __device__ __forceinline__ void stored_store(void *to, KernelStore store, int64_t at, float x) {
    if (store == KERNEL_FP32) {
        static_cast<float *>(to)[at] = x;
    } else {
        static_cast<Bf16 *>(to)[at] = bf16_narrow(x);
    }
}

template <typename T>
static __device__ __forceinline__ T warp_sum(T x) {
#pragma unroll
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        x += word_shuffle_xor(x, lanes);
    }
    return x;
}

static __device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        x = fmaxf(x, word_shuffle_xor(x, lanes));
    }
    return x;
}

// Reduces over the block, for all threads, in a fixed order. room: one T per warp; it may be reused at once.
template <typename T>
static __device__ __forceinline__ T block_sum(T x, T *room) {
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % WARP == 0) {
        room[threadIdx.x / WARP] = x;
    }
    __syncthreads();
    T total = 0;
    for (uint32_t warp = 0; warp < blockDim.x / WARP; warp++) {
        total += room[warp];
    }
    return total;
}

static __device__ __forceinline__ float block_max(float x, float *room) {
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % WARP == 0) {
        room[threadIdx.x / WARP] = x;
    }
    __syncthreads();
    float most = room[0];
    for (uint32_t warp = 1; warp < blockDim.x / WARP; warp++) {
        most = fmaxf(most, room[warp]);
    }
    return most;
}

// Calls body.at<W>(i) for elements i .. i + W - 1. Single threads of the first block handle the remainder.
template <int W, typename Body>
__global__ void __launch_bounds__(FLAT_THREADS, 2) flat_kernel(int64_t count, Body body) {
    const int64_t packs = count / W, step = (int64_t)gridDim.x * blockDim.x;
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64_t pack = first; pack < packs; pack += step) {
        body.template at<W>(pack * W);
    }
    if (packs * W + first < count) {
        body.template at<1>(packs * W + first);
    }
}

template <int WIDE, typename Body>
static int flat_launch(const KernelCuda *at, int64_t count, bool wide, const Body &body) {
    return count <= 0 ? 0
                      : launch(wide ? flat_kernel<WIDE, Body> : flat_kernel<1, Body>,
                               launch_flat(count / (wide ? WIDE : 1), at->processors), at->stream, count, body);
}

// Calls body.at<W>(row, col).
template <int W, typename Body>
__global__ void __launch_bounds__(FLAT_THREADS, 2) plane_kernel(int64_t rows, int64_t cols, Body body) {
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        for (int64_t pack = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; pack < cols / W;
             pack += (int64_t)gridDim.x * blockDim.x) {
            body.template at<W>(row, pack * W);
        }
    }
}

template <int WIDE, typename Body>
static int plane_launch(const KernelCuda *at, int64_t rows, int64_t cols, bool wide, const Body &body) {
    const LaunchShape shape = launch_plane(rows, cols / (wide ? WIDE : 1), at->processors);
    return rows <= 0 || cols <= 0
               ? 0
               : launch(wide ? plane_kernel<WIDE, Body> : plane_kernel<1, Body>, shape, at->stream, rows, cols, body);
}

static inline uint64_t address(const void *at) {
    return (uint64_t)(uintptr_t)at;
}

// Calls choose(T{}) for the element type.
template <typename Choose>
static int with_store(KernelStore store, Choose choose) {
    return store == KERNEL_BF16 ? choose(Bf16{}) : choose(0.0f);
}

static inline int workspace_missing(const KernelCuda *at, int64_t bytes) {
    return at->workspace_bytes < bytes ? (int)cudaErrorInvalidValue : 0;
}
