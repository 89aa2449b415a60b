// Pieces of routing that the kernels for processors and GPUs share.

#pragma once

#include <math.h>
#include <stdint.h>

#include "kernels/inline.h"

// A diverged run still routes: experts whose logits are NaN come last.
KERNEL_INLINE float routing_rank(float logit) {
    return logit != logit ? -INFINITY : logit;
}

KERNEL_INLINE float routing_sigmoid(float logit) {
    return 1.0f / (1.0f + expf(-logit));
}

// The sum of the two largest.
KERNEL_INLINE float routing_two_largest(const float *values, int count) {
    float first = -INFINITY, second = -INFINITY;
    for (int i = 0; i < count; i++) {
        const float value = routing_rank(values[i]);
        second = value > first ? first : value > second ? value : second;
        first = value > first ? value : first;
    }
    return count > 1 ? first + second : first;
}

// The range that contains the row, of ranges of rows that end at these.
KERNEL_INLINE int routing_range_at(const int32_t *ends, int count, int64_t row) {
    int low = 0, high = count - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        low = row < ends[middle] ? low : middle + 1;
        high = row < ends[middle] ? middle : high;
    }
    return low;
}
