// Sums and maxima of rows in a fixed order, the same for every transport that combines on the host.

#pragma once

#include "exec/transport/transport.h"

// How one call combines, and the element type.
typedef struct Reduction {
    ReduceOp op;
    Dtype dtype;  // fp32, or bf16: combined in fp32, rounded once
} Reduction;

static inline Reduction reduction_of(const TransportCall *call) {
    return (Reduction){call->op, call->dtype};
}

// One element: data split between ranks is split at multiples of it.
static inline int64_t reduction_unit(Reduction how) {
    return how.op == REDUCE_SUM_INT64 ? (int64_t)sizeof(int64_t) : dtype_bytes(how.dtype);
}

// out[i] = rows 0, 1, ... combined in this order; out may be one of the rows.
void reduce_rows(const void *const *rows, int row_count, int64_t bytes, Reduction how, void *out);
