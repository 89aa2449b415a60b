// Combines two halves of a row into one, and computes their gradients, with a gate: Gate::of(gate, up), and
// Gate::back(d, &gate, &up), which replaces the halves by their gradients.

#pragma once

#include "kernels/cuda/activate.cuh"

template <typename T, typename Gate> struct GatedBody {
    int64_t cols, stride;
    const T *gate, *up;
    T *s;
    template <int W> __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        float g[W], u[W];
        pack_load<W>(gate + row * stride + col, g);
        pack_load<W>(up + row * stride + col, u);
#pragma unroll
        for (int k = 0; k < W; k++) {
            g[k] = Gate::of(g[k], u[k]);
        }
        pack_store<W>(s + row * cols + col, g);
    }
};

template <typename T, typename Gate>
static int gated_launch(const KernelCuda *at, const KernelGated *shape, const void *gate, const void *up, void *s) {
    const bool wide = launch_is_wide(address(gate) | address(up) | address(s), shape->cols | shape->stride);
    const GatedBody<T, Gate> body = {shape->cols, shape->stride, (const T *)gate, (const T *)up, (T *)s};
    return plane_launch<pack_of<T>()>(at, shape->rows, shape->cols, wide, body);
}

template <typename T, typename Gate> struct GatedBackBody {
    int64_t cols, stride;
    const T *ds, *gate, *up;
    T *dgate, *dup;
    template <int W> __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        float d[W], g[W], u[W];
        pack_load<W>(ds + row * cols + col, d);
        pack_load<W>(gate + row * stride + col, g);
        pack_load<W>(up + row * stride + col, u);
#pragma unroll
        for (int k = 0; k < W; k++) {
            Gate::back(d[k], &g[k], &u[k]);
        }
        pack_store<W>(dgate + row * stride + col, g);
        pack_store<W>(dup + row * stride + col, u);
    }
};

template <typename T, typename Gate>
static int gated_back_launch(const KernelCuda *at, const KernelGated *shape, const void *ds, const void *gate,
                             const void *up, void *dgate, void *dup) {
    const bool wide = launch_is_wide(address(ds) | address(gate) | address(up) | address(dgate) | address(dup),
                                     shape->cols | shape->stride);
    const GatedBackBody<T, Gate> body = {shape->cols,   shape->stride, (const T *)ds, (const T *)gate,
                                         (const T *)up, (T *)dgate,    (T *)dup};
    return plane_launch<pack_of<T>()>(at, shape->rows, shape->cols, wide, body);
}
