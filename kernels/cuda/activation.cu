// Activations, gated or not: one pass over strided or packed rows.

#include "kernels/cuda/activate.cuh"

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
        pack_map<W>(dy + i, x + i, dx + i, [](float d, float z) { return d * A::at(z).slope; });
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

// Gates combine two halves of a row into one, Gate::of(gate, up), and Gate::back(d, &gate, &up) replaces the halves by
// their gradients.
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

// The gate of gpt_oss: both halves are clamped, the gate is sharper than a SiLU, and one is added to the other half.
static const float CUT = 7.0f, SHARPNESS = 1.702f;  // transformers' GptOssConfig.swiglu_limit, GptOssExperts.alpha

static __device__ __forceinline__ Activated sharp(float gate) {
    const Activated a = Silu::at(SHARPNESS * gate);
    return Activated{a.value / SHARPNESS, a.slope};
}

static __device__ __forceinline__ float cut_above(float x) {
    return x > CUT ? CUT : x;
}

static __device__ __forceinline__ float cut_both(float x) {
    return x > CUT ? CUT : x < -CUT ? -CUT : x;
}

struct Clamped {
    static __device__ __forceinline__ float of(float gate, float up) {
        return sharp(cut_above(gate)).value * (cut_both(up) + 1.0f);
    }
    // Values beyond the limit have no gradient; those at the limit have (torch.clamp).
    static __device__ __forceinline__ void back(float d, float *gate, float *up) {
        const Activated a = sharp(cut_above(*gate));
        *gate = *gate <= CUT ? d * (cut_both(*up) + 1.0f) * a.slope : 0.0f;
        *up = fabsf(*up) <= CUT ? d * a.value : 0.0f;
    }
};

// Calls choose(T{}, Gate{}) for the element type and the gate.
template <typename Choose> static int with_gate(KernelStore store, KernelActivation activation, Choose choose) {
    if (activation == KERNEL_CLAMPED) {
        return with_store(store, [&](auto element) { return choose(element, Clamped{}); });
    }
    return with_activation(store, activation,
                           [&](auto element, auto act) { return choose(element, GateOf<decltype(act)>{}); });
}

template <typename T, typename Gate> struct GatedBody {
    int64_t cols, stride;
    const T *gate, *up;
    T *s;
    template <int W> __device__ __forceinline__ void at(int64_t row, int64_t col) const {
        const int64_t from = row * stride + col;
        pack_map<W>(gate + from, up + from, s + row * cols + col, [](float g, float u) { return Gate::of(g, u); });
    }
};

int kernel_cuda_gated(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *gate,
                      const void *up, void *s) {
    const bool wide = launch_is_wide(address(gate) | address(up) | address(s), shape->cols | shape->stride);
    return with_gate(store, shape->activation, [&](auto element, auto chosen) {
        using T = decltype(element);
        const GatedBody<T, decltype(chosen)> body = {shape->cols, shape->stride, (const T *)gate, (const T *)up,
                                                     (T *)s};
        return plane_launch<pack_of<T>()>(at, shape->rows, shape->cols, wide, body);
    });
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

int kernel_cuda_gated_backward(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *ds,
                               const void *gate, const void *up, void *dgate, void *dup) {
    const bool wide = launch_is_wide(address(ds) | address(gate) | address(up) | address(dgate) | address(dup),
                                     shape->cols | shape->stride);
    return with_gate(store, shape->activation, [&](auto element, auto chosen) {
        using T = decltype(element);
        const GatedBackBody<T, decltype(chosen)> body = {shape->cols,   shape->stride, (const T *)ds, (const T *)gate,
                                                         (const T *)up, (T *)dgate,    (T *)dup};
        return plane_launch<pack_of<T>()>(at, shape->rows, shape->cols, wide, body);
    });
}
