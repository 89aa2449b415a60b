// Conversion between bf16 and fp32. Integer arithmetic: AVX512_BF16's own conversion flushes denormals to zero.

#include "kernels/half.h"
#include "kernels/cpu/parallel.h"

typedef uint32_t BitsOf __attribute__((may_alias));  // bits of an fp32

typedef struct Halves {
    const void *from;
    void *to;
} Halves;

static void widen_range(const void *context, int64_t begin, int64_t end) {
    const Halves *h = context;
    const uint16_t *x = h->from;
    BitsOf *y = h->to;
    for (int64_t i = begin; i < end; i++) {
        y[i] = (uint32_t)x[i] << 16;
    }
}

void kernel_widen(int64_t count, const uint16_t *x, float *y) {
    parallel_ranges(count, 32, PARALLEL_GRAIN, widen_range, &(Halves){x, y});
}

static void narrow_range(const void *context, int64_t begin, int64_t end) {
    const Halves *h = context;
    const BitsOf *x = h->from;
    uint16_t *y = h->to;
    for (int64_t i = begin; i < end; i++) {
        const uint32_t rounded = x[i] + 0x7FFFu + (x[i] >> 16 & 1);
        const uint32_t quiet_nan = x[i] | 0x00400000u;  // the payload may lie in the half that is dropped
        y[i] = (uint16_t)(((x[i] & 0x7FFFFFFFu) > 0x7F800000u ? quiet_nan : rounded) >> 16);
    }
}

void kernel_narrow(int64_t count, const float *x, uint16_t *y) {
    parallel_ranges(count, 32, PARALLEL_GRAIN, narrow_range, &(Halves){x, y});
}
