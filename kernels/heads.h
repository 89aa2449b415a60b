// What follows from an attention's shape for one head, for processors and GPUs.

#pragma once

#include <math.h>

#include "kernels/inline.h"
#include "kernels/kernels.h"

// Elements per value, and per head of o: values may differ from keys in width and layout.
KERNEL_INLINE int kernel_value_dim(const KernelAttention *shape) {
    return shape->values.dim > 0 ? shape->values.dim : shape->head_dim;
}

// The ALiBi slope (Press et al. 2022): 2^(-8 i / heads), i = 1 .. heads, for a power of two; otherwise every second
// slope of the next power of two first, then the ones between them. 0 without ALiBi.
KERNEL_INLINE float kernel_alibi_slope(const KernelAttention *shape, int head) {
    if (shape->alibi_heads == 0) {
        return 0.0f;
    }
    int power = 1;
    while (power < shape->alibi_heads) {
        power *= 2;
    }
    int at = shape->alibi_first + head;
    if (power != shape->alibi_heads) {
        at = at < power / 2 ? 2 * at + 1 : 2 * (at - power / 2);
    }
    return exp2f(-8.0f * (float)(at + 1) / (float)power);
}
