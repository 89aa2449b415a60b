// Attention calls that cuDNN is asked to plan, for devices described by their properties.

#pragma once

#include "kernels/cuda/cudnn_attention.h"

typedef struct PlanRow {
    int64_t queries, keys, q_first, k_first;
    int heads, kv_heads, head_dim;
    bool ring;  // a step that merges: o and the gradients are fp32
} PlanRow;

extern const char *const plan_h200;  // properties as JSON
extern const char *const plan_a100;

// cuDNN for a described device, over a driver that only pretends to load compiled code; skips the running test
// where libcudnn.so.9 is missing.
CudnnAttention *plan_opened(const char *device);
// A layer whose q, k and v are adjacent, two sequences.
CudaAttention plan_call(const PlanRow *row, bool backward);
// Both directions of every row have a plan.
void plan_expect(const char *device, const PlanRow *rows, int count);
