// Activations, gated or not: one pass over strided or packed rows.

#include "kernels/cuda/gated.cuh"

template <typename T, typename A> struct ActivationBody {
    const T *x;
    T *y;
    template <int W> __device__ __forceinline__ void at(int64_t i) const {
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
        return flat_launch<pack_of<T>()>(at, count, wide, ActivationBody<T, decltype(act)>{(const T *)x, (T *)y});
    });
}

template <typename T, typename A> struct ActivationBackBody {
    const T *dy, *x;
    T *dx;
    template <int W> __device__ __forceinline__ void at(int64_t i) const {
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
        return flat_launch<pack_of<T>()>(at, count, wide,
                                         ActivationBackBody<T, decltype(act)>{(const T *)dy, (const T *)x, (T *)dx});
    });
}

template <typename A> struct GateOf {
    static __device__ __forceinline__ float of(float gate, float up) {
        return A::at(gate).value * up;
    }
    static __device__ __forceinline__ void back(float d, float *gate, float *up) {
        const Activated gated = A::at(*gate);
        *gate = d * *up * gated.slope;
        *up = d * gated.value;
    }
};

int kernel_cuda_gated(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *gate,
                      const void *up, void *s) {
    return with_activation(store, shape->activation, [&](auto element, auto act) {
        return gated_launch<decltype(element), GateOf<decltype(act)>>(at, shape, gate, up, s);
    });
}

int kernel_cuda_gated_backward(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *ds,
                               const void *gate, const void *up, void *dgate, void *dup) {
    return with_activation(store, shape->activation, [&](auto element, auto act) {
        return gated_back_launch<decltype(element), GateOf<decltype(act)>>(at, shape, ds, gate, up, dgate, dup);
    });
}
