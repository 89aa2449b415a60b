// Activations and their derivatives as in kernels/cpu/activate.h, with the GPU's own exp and erf.

#pragma once

#include "kernels/cuda/pack.cuh"

struct Activated {
    float value, slope;
};

struct Silu {
    static __device__ __forceinline__ Activated at(float x) {
        const float sigma = 1.0f / (1.0f + expf(-x));
        return Activated{x * sigma, sigma * (1.0f + x * (1.0f - sigma))};
    }
};

struct Gelu {
    static __device__ __forceinline__ Activated at(float x) {
        const float phi = 0.5f * erfcf(-0.70710678f * x);
        const float density = 0.39894228f * expf(-0.5f * x * x);  // 1 / sqrt(2 pi)
        return Activated{x * phi, phi + x * density};
    }
};

struct GeluTanh {
    static __device__ __forceinline__ Activated at(float x) {
        const float twice = 1.5957691216f;  // 2 sqrt(2 / pi)
        const float sigma = 1.0f / (1.0f + expf(-twice * (x + 0.044715f * x * x * x)));
        const float bend = twice * (1.0f + 3.0f * 0.044715f * x * x);
        const float away = sigma * (1.0f - sigma);
        return Activated{x * sigma, sigma + (away > 0.0f ? x * away * bend : 0.0f)};  // avoids 0 * infinity far out
    }
};

// Calls choose(T{}, Activation{}) for the element type and the activation.
template <typename Choose>
static int with_activation(KernelStore store, KernelActivation activation, Choose choose) {
    return with_store(store, [&](auto element) {
        return activation == KERNEL_SILU   ? choose(element, Silu{})
               : activation == KERNEL_GELU ? choose(element, Gelu{})
                                           : choose(element, GeluTanh{});
    });
}
