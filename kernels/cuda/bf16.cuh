// bfloat16 as stored: 16 bits, two per 32-bit word (the lower half is the element at the lower address). Arithmetic is
// fp32; narrowing rounds to nearest even and is in words.cuh, widening is a shift.

#pragma once

#include <stdint.h>

#include "kernels/cuda/words.cuh"

struct Bf16 {
    uint16_t bits;
};

static __device__ __forceinline__ float bf16_widen(Bf16 x) {
    return word_float((uint32_t)x.bits << 16);
}

static __device__ __forceinline__ float bf16_low(uint32_t pair) {
    return word_float(pair << 16);
}

static __device__ __forceinline__ float bf16_high(uint32_t pair) {
    return word_float(pair & 0xFFFF0000u);
}

static __device__ __forceinline__ Bf16 bf16_narrow(float x) {
    return Bf16{(uint16_t)word_bf16_pair(x, 0.0f)};
}
