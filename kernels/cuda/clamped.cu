// The gate of gpt_oss: both halves are cut off, the gate is sharper than a SiLU, and one is added to the other half.

#include "kernels/cuda/activate.cuh"

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

template <typename T>
struct ClampedBody {
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
            g[k] = sharp(cut_above(g[k])).value * (cut_both(u[k]) + 1.0f);
        }
        pack_store<W>(s + row * cols + col, g);
    }
};

int kernel_cuda_clamped(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *gate,
                        const void *up, void *s) {
    const bool wide = launch_is_wide(address(gate) | address(up) | address(s), shape->cols | shape->stride);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        return plane_launch(at, shape->rows, shape->cols, wide,
                            ClampedBody<T>{shape->cols, shape->stride, (const T *)gate, (const T *)up, (T *)s});
    });
}

// What is cut off has no slope; at the limit itself it has (torch.clamp).
template <typename T>
struct ClampedBackBody {
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
            const Activated a = sharp(cut_above(g[k]));
            g[k] = g[k] <= CUT ? d[k] * (cut_both(u[k]) + 1.0f) * a.slope : 0.0f;
            u[k] = fabsf(u[k]) <= CUT ? d[k] * a.value : 0.0f;
        }
        pack_store<W>(dgate + row * stride + col, g);
        pack_store<W>(dup + row * stride + col, u);
    }
};

int kernel_cuda_clamped_backward(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *ds,
                                 const void *gate, const void *up, void *dgate, void *dup) {
    const bool wide = launch_is_wide(address(ds) | address(gate) | address(up) | address(dgate) | address(dup),
                                     shape->cols | shape->stride);
    return with_store(store, [&](auto element) {
        using T = decltype(element);
        const ClampedBackBody<T> body = {shape->cols,    shape->stride, (const T *)ds, (const T *)gate,
                                         (const T *)up, (T *)dgate,    (T *)dup};
        return plane_launch(at, shape->rows, shape->cols, wide, body);
    });
}
