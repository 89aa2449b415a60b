// Rotary embedding as in kernels/cpu/rope.c. A block walks rows: sines and cosines of a row's angles go to shared
// memory, in double as on the CPU, then they rotate all heads.

#include "kernels/angle.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/rotary.h"

template <typename T>
struct Turning {
    int64_t rows;
    KernelRope shape;
    double log2_theta;
    const int32_t *position;
    T *x;
};

template <int W, typename T>
static __device__ __forceinline__ void turn(T *a, T *b, const float *sine, const float *cosine) {
    float u[W], v[W], y[W], z[W];
    pack_load<W>(a, u);
    pack_load<W>(b, v);
#pragma unroll
    for (int k = 0; k < W; k++) {
        y[k] = u[k] * cosine[k] - v[k] * sine[k];
        z[k] = v[k] * cosine[k] + u[k] * sine[k];
    }
    pack_store<W>(a, y);
    pack_store<W>(b, z);
}

template <int W, typename T>
static __global__ void __launch_bounds__(FLAT_THREADS) rope_kernel(Turning<T> t) {
    const int half = t.shape.turning / 2;
    double *frequency = word_shared<double>();
    float *sine = reinterpret_cast<float *>(frequency + half), *cosine = sine + half;
    for (int i = (int)threadIdx.x; i < half; i += (int)blockDim.x) {
        frequency[i] = rotary_scaled(exp2(t.log2_theta * (-2.0 * i / t.shape.turning)), &t.shape);
    }
    for (int64_t row = blockIdx.x; row < t.rows; row += gridDim.x) {
        __syncthreads();
        for (int i = (int)threadIdx.x; i < half; i += (int)blockDim.x) {
            float s, c;
            angle_sine(t.position[row] * frequency[i], &s, &c);
            sine[i] = t.shape.backward ? -s : s;
            cosine[i] = c;
        }
        __syncthreads();
        const int packs = half / W;
        for (int i = (int)threadIdx.x; i < t.shape.heads * packs; i += (int)blockDim.x) {
            const int head = i / packs, pair = i % packs * W;
            T *x = t.x + row * t.shape.stride + (int64_t)head * t.shape.head_dim + pair;
            turn<W>(x, x + half, sine + pair, cosine + pair);
        }
    }
}

int kernel_cuda_rope(const KernelCuda *at, KernelStore store, int64_t rows, const KernelRope *shape,
                     const int32_t *position, void *x) {
    const int half = shape->turning / 2;
    if (rows <= 0 || half == 0) {
        return 0;
    }
    const bool wide = launch_is_wide(address(x), shape->stride | shape->head_dim | half);
    const LaunchShape grid = launch_rope(rows, shape->heads * (half / (wide ? PACK : 1)), half, at->processors);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        const Turning<T> t = {rows, *shape, log2(shape->theta), position, (T *)x};
        return launch(wide ? rope_kernel<PACK, T> : rope_kernel<1, T>, grid, at->stream, t);
    });
}
