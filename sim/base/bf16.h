// bfloat16 on processors without it: the upper half of an fp32, rounded to nearest, ties to even. NaN stays NaN.

#pragma once

#include <stdint.h>
#include <string.h>

static inline uint16_t bf16_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = bits + 0x7FFFu + (bits >> 16 & 1);
    const uint32_t quiet_nan = bits | 0x00400000u;  // the payload may lie in the half that is cut off
    return (uint16_t)((x != x ? quiet_nan : rounded) >> 16);
}

static inline float bf16_value(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
