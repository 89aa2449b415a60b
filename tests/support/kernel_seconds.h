// Seconds of a single kernel, without a program.

#pragma once

#include "sim/cost/compute.h"

// One product at the sustained rate. output_bytes: per element of C; 8 is an fp32 C that is added to, read and written.
static inline double gemm_s(const Accelerator *accelerator, Dtype dtype, int64_t m, int64_t n, int64_t k,
                            int output_bytes) {
    const GemmShape shape = {.m = m,
                             .n = n,
                             .k = k,
                             .output_bytes = output_bytes,
                             .accumulate = output_bytes == 2 * dtype_bytes(DTYPE_FP32),
                             .casts_input = dtype == DTYPE_FP8};
    return gemm_time(accelerator, dtype, &shape).seconds;
}

// visible_share: of the queries x keys pairs that the mask lets through (0.5 causal); below 1 the block is taken to
// hold the diagonal.
static inline double attention_s(const Accelerator *accelerator, Dtype dtype, int64_t sequences, int heads,
                                 int head_dim, double queries, double keys, double visible_share, bool backward) {
    const AttentionShape shape = {.sequences = (double)sequences,
                                  .heads = heads,
                                  .head_dim = head_dim,
                                  .queries = queries,
                                  .keys = keys,
                                  .visible_share = visible_share,
                                  .diagonal = visible_share < 1,
                                  .backward = backward};
    return attention_time(accelerator, dtype, &shape).seconds;
}

static inline double memory_bound_s(const Accelerator *accelerator, double bytes) {
    return stream_time(accelerator, bytes, 1).seconds;
}
