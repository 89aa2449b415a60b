// A shared expert added to the results of the routed ones, with a gate per token (qwen2_moe).

#pragma once

#include <stdint.h>

typedef struct KernelShared {
    int64_t rows, cols;
    const float *gate;  // [rows], before its sigmoid
    const float *y;     // [rows,cols]: the expert's result
} KernelShared;

// x += sigmoid(gate) y.
void kernel_shared(const KernelShared *shared, float *x);
// dy = sigmoid(gate) dx, dgate = sigmoid'(gate) dx . y.
void kernel_shared_backward(const KernelShared *shared, const float *dx, float *dy, float *dgate);
