// Normal-like random numbers of consecutive counters (philox.h), many at a time: lane i of every array belongs to
// counter first + i, and the loops over lanes vectorise. Integer arithmetic up to one final multiply, so every tier,
// number of threads and device gives the same bits.

#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"
#include "kernels/philox.h"

enum { WIDE = 64 };

typedef struct Words {
    _Alignas(64) uint32_t word[4][WIDE];
} Words;

// Philox at counters 2 (first + i) + odd.
static void philox_wide(uint64_t key, uint64_t high, uint64_t first, uint64_t odd, Words *w) {
    uint32_t *restrict x0 = w->word[0], *restrict x1 = w->word[1], *restrict x2 = w->word[2], *restrict x3 = w->word[3];
    for (int i = 0; i < WIDE; i++) {
        const uint64_t counter = 2 * (first + (uint64_t)i) + odd;
        x0[i] = (uint32_t)counter;
        x1[i] = (uint32_t)(counter >> 32);
        x2[i] = (uint32_t)high;
        x3[i] = (uint32_t)(high >> 32);
    }
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        for (int i = 0; i < WIDE; i++) {
            const uint64_t p0 = (uint64_t)PHILOX_MULTIPLIER0 * x0[i], p1 = (uint64_t)PHILOX_MULTIPLIER1 * x2[i];
            x0[i] = (uint32_t)(p1 >> 32) ^ x1[i] ^ key0;
            x1[i] = (uint32_t)p1;
            x2[i] = (uint32_t)(p0 >> 32) ^ x3[i] ^ key1;
            x3[i] = (uint32_t)p0;
        }
        key0 += PHILOX_WEYL0;
        key1 += PHILOX_WEYL1;
    }
}

typedef struct Normal {
    uint64_t key, high, first;
    float scale;
    float *x;
} Normal;

static void normal_range(const void *context, int64_t begin, int64_t end) {
    const Normal *n = context;
    for (int64_t at = begin; at < end; at += WIDE) {
        Words a, b;
        int32_t sum[WIDE];
        const int64_t count = end - at < WIDE ? end - at : WIDE;
        philox_wide(n->key, n->high, n->first + (uint64_t)at, 0, &a);
        philox_wide(n->key, n->high, n->first + (uint64_t)at, 1, &b);
        for (int i = 0; i < WIDE; i++) {
            sum[i] = PHILOX_NORMAL_MEAN + philox_halves(a.word[0][i]) + philox_halves(a.word[1][i]) +
                     philox_halves(a.word[2][i]) + philox_halves(a.word[3][i]) + philox_halves(b.word[0][i]) +
                     philox_halves(b.word[1][i]);
        }
        for (int64_t i = 0; i < count; i++) {
            n->x[at + i] = (float)sum[i] * n->scale;
        }
    }
}

void kernel_normal(const KernelNormal *stream, int64_t count, float *x) {
    const Normal normal = {stream->key, stream->stream, stream->first, stream->scale, x};
    parallel_ranges(count, WIDE, PARALLEL_GRAIN / 16, normal_range, &normal);
}
