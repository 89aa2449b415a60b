// Philox4x32-10: a stateless random function of (key, counter). Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", SC 2011; round and key constants from its table 2. Integer arithmetic only, so every device and every mesh
// gives the same bits.

#pragma once

#include <stdint.h>

#include "kernels/inline.h"

typedef struct Philox {
    uint32_t word[4];
} Philox;

enum { PHILOX_ROUNDS = 10 };
static const uint32_t PHILOX_MULTIPLIER0 = 0xD2511F53u, PHILOX_MULTIPLIER1 = 0xCD9E8D57u;
static const uint32_t PHILOX_WEYL0 = 0x9E3779B9u, PHILOX_WEYL1 = 0xBB67AE85u;

KERNEL_INLINE Philox philox(uint64_t key, uint64_t high, uint64_t low) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    Philox x = {{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)PHILOX_MULTIPLIER0 * x.word[0], p1 = (uint64_t)PHILOX_MULTIPLIER1 * x.word[2];
        x = (Philox){
            {(uint32_t)(p1 >> 32) ^ x.word[1] ^ k0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ x.word[3] ^ k1, (uint32_t)p0}};
        k0 += PHILOX_WEYL0;
        k1 += PHILOX_WEYL1;
    }
    return x;
}

// Normal-like integer: sum of 12 uniform 16-bit words minus its mean; standard deviation 65536 (Irwin-Hall,
// 12 * (2^32 - 1) / 12).
enum { PHILOX_NORMAL_MEAN = -393210 };  // -12 * 65535 / 2

KERNEL_INLINE int32_t philox_halves(uint32_t word) {
    return (int32_t)(word & 0xFFFF) + (int32_t)(word >> 16);
}

KERNEL_INLINE int32_t philox_normal(uint64_t key, uint64_t high, uint64_t index) {
    const Philox a = philox(key, high, 2 * index), b = philox(key, high, 2 * index + 1);
    const uint32_t words[6] = {a.word[0], a.word[1], a.word[2], a.word[3], b.word[0], b.word[1]};
    int32_t sum = PHILOX_NORMAL_MEAN;
    for (int i = 0; i < 6; i++) {
        sum += philox_halves(words[i]);
    }
    return sum;
}
