// How fast a pair of elements rotates where the context is extended: Llama 3.1's rule, which is linear scaling where
// `original` is 0 (transformers' modeling_rope_utils.py).

#pragma once

#include "kernels/inline.h"
#include "kernels/kernels.h"

KERNEL_INLINE double rotary_scaled(double frequency, const KernelRope *shape) {
    if (shape->factor <= 0) {
        return frequency;
    }
    const double turns = shape->original * frequency * 0.15915494309189533577;  // 1 / (2 pi)
    const double share = (turns - shape->low) / (shape->high - shape->low);
    const double kept = share < 0 ? 0 : share > 1 ? 1 : share;
    return frequency * ((1 - kept) / shape->factor + kept);
}
