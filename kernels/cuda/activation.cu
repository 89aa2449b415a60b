// Activations, gated or not: one pass over strided or packed rows.

#include "kernels/cuda/activate.cuh"

template <typename T, typename A>
struct ActivationBody {
    const T *x;
    T *y;
    template <int W>
    __device__ __forceinline__ void at(int64_t i) const {
        float z[W];
        pack_load<W>(x + i, z);
#pragma unroll
        for (int k = 0; k < W; k++) {
            z[k] = A::at(z[k]).value;
        }
        pack_store<W>(y + i, z);
    }
};

int kernel_cuda_activation(const KernelCuda *at, KernelStore store, KernelActivation activation, int64_t count,
                           const void *x, void *y) {
    const bool wide = launch_is_wide(address(x) | address(y), 0);
    return with_activation(store, activation, [&](auto element, auto act) {
        using T = decltype(element);
        return flat_launch(at, count, wide, ActivationBody<T, decltype(act)>{(const T *)x, (T *)y});
    });
}

template <typename T, typename A>
struct ActivationBackBody {
    const T *dy, *x;
    T *dx;
    template <int W>
    __device__ __forceinline__ void at(int64_t i) const {
        float d[W], z[W];
        pack_load<W>(dy + i, d);
        pack_load<W>(x + i, z);
#pragma unroll
        for (int k = 0; k < W; k++) {
            d[k] *= A::at(z[k]).slope;
        }
        pack_store<W>(dx + i, d);
    }
};

int kernel_cuda_activation_backward(const KernelCuda *at, KernelStore store, KernelActivation activation, int64_t count,
                                    const void *dy, const void *x, void *dx) {
    const bool wide = launch_is_wide(address(dy) | address(x) | address(dx), 0);
    return with_activation(store, activation, [&](auto element, auto act) {
        using T = decltype(element);
        return flat_launch(at, count, wide,
                           ActivationBackBody<T, decltype(act)>{(const T *)dy, (const T *)x, (T *)dx});
    });
}

template <typename T, typename A>
struct GatedBody {
    int64_t cols, stride;
    const T *gate, *up;
    T *s;
    template <int W>
    __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        float g[W], u[W];
        pack_load<W>(gate + row * stride + col, g);
        pack_load<W>(up + row * stride + col, u);
#pragma unroll
        for (int k = 0; k < W; k++) {
            g[k] = A::at(g[k]).value * u[k];
        }
        pack_store<W>(s + row * cols + col, g);
    }
};

int kernel_cuda_gated(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *gate,
                      const void *up, void *s) {
    const bool wide = launch_is_wide(address(gate) | address(up) | address(s), shape->cols | shape->stride);
    return with_activation(store, shape->activation, [&](auto element, auto act) {
        using T = decltype(element);
        const GatedBody<T, decltype(act)> body = {shape->cols, shape->stride, (const T *)gate, (const T *)up, (T *)s};
        return plane_launch(at, shape->rows, shape->cols, wide, body);
    });
}

template <typename T, typename A>
struct GatedBackBody {
    int64_t cols, stride;
    const T *ds, *gate, *up;
    T *dgate, *dup;
    template <int W>
    __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        float d[W], g[W], u[W];
        pack_load<W>(ds + row * cols + col, d);
        pack_load<W>(gate + row * stride + col, g);
        pack_load<W>(up + row * stride + col, u);
#pragma unroll
        for (int k = 0; k < W; k++) {
            const Activated gated = A::at(g[k]);
            g[k] = d[k] * u[k] * gated.slope;
            u[k] = d[k] * gated.value;
        }
        pack_store<W>(dgate + row * stride + col, g);
        pack_store<W>(dup + row * stride + col, u);
    }
};

int kernel_cuda_gated_backward(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *ds,
                               const void *gate, const void *up, void *dgate, void *dup) {
    const bool wide = launch_is_wide(address(ds) | address(gate) | address(up) | address(dgate) | address(dup),
                                     shape->cols | shape->stride);
    return with_activation(store, shape->activation, [&](auto element, auto act) {
        using T = decltype(element);
        const GatedBackBody<T, decltype(act)> body = {shape->cols,   shape->stride,   (const T *)ds, (const T *)gate,
                                                      (const T *)up, (T *)dgate, (T *)dup};
        return plane_launch(at, shape->rows, shape->cols, wide, body);
    });
}
