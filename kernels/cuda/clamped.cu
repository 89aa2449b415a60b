// The gate of gpt_oss: both halves are clamped, the gate is sharper than a SiLU, and one is added to the other half.

#include "kernels/cuda/gated.cuh"

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

int kernel_cuda_clamped(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *gate,
                        const void *up, void *s) {
    return with_store(store,
                      [&](auto element) { return gated_launch<decltype(element), Clamped>(at, shape, gate, up, s); });
}

int kernel_cuda_clamped_backward(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *ds,
                                 const void *gate, const void *up, void *dgate, void *dup) {
    return with_store(store, [&](auto element) {
        return gated_back_launch<decltype(element), Clamped>(at, shape, ds, gate, up, dgate, dup);
    });
}
