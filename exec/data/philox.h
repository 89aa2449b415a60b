// Philox4x32-10: a random function of (key, counter), no state. Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", SC 2011; round and key constants from its table 2. Integer arithmetic only, so every device and every mesh
// gives the same bits.

#pragma once

#include <stdint.h>

typedef struct Philox {
    uint32_t word[4];
} Philox;

static inline Philox philox(uint64_t key, uint64_t high, uint64_t low) {
    const uint64_t multiplier0 = 0xD2511F53u, multiplier1 = 0xCD9E8D57u;
    const uint32_t weyl0 = 0x9E3779B9u, weyl1 = 0xBB67AE85u;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    Philox x = {{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = multiplier0 * x.word[0], p1 = multiplier1 * x.word[2];
        x = (Philox){
            {(uint32_t)(p1 >> 32) ^ x.word[1] ^ k0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ x.word[3] ^ k1, (uint32_t)p0}};
        k0 += weyl0;
        k1 += weyl1;
    }
    return x;
}

// Normal-like integer: sum of 12 uniform 16-bit words less its mean; standard deviation 65536 (Irwin-Hall, 12 * (2^32 -
// 1) / 12).
static inline int32_t philox_normal(uint64_t key, uint64_t high, uint64_t index) {
    const Philox a = philox(key, high, 2 * index), b = philox(key, high, 2 * index + 1);
    const uint32_t words[6] = {a.word[0], a.word[1], a.word[2], a.word[3], b.word[0], b.word[1]};
    int32_t sum = -393210;  // 12 * 65535 / 2
    for (int i = 0; i < 6; i++) {
        sum += (int32_t)(words[i] & 0xFFFF) + (int32_t)(words[i] >> 16);
    }
    return sum;
}
