// Sums over rows, column by column: the gradients of norm weights and biases. Work is split by columns; a block of
// columns accumulates in a partial sum that is folded into the total every COLUMN_ROWS rows.

#pragma once

#include "kernels/cpu/parallel.h"

#include <stdbool.h>

enum { COLUMNS = 256, COLUMN_ROWS = 64 };  // columns of one partial sum (1 KB), rows until it is folded

typedef struct ColumnSums {
    float part[COLUMNS], total[COLUMNS];
} ColumnSums;

// Call after adding each row to part.
static inline void column_sums_fold(ColumnSums *sums, int64_t row, int64_t rows, int64_t width) {
    if ((row + 1) % COLUMN_ROWS != 0 && row + 1 != rows) {
        return;
    }
    for (int64_t col = 0; col < width; col++) {
        sums->total[col] += sums->part[col];
        sums->part[col] = 0.0f;
    }
}

static inline void column_sums_store(const ColumnSums *sums, int64_t width, bool accumulate, float *out) {
    for (int64_t col = 0; col < width; col++) {
        out[col] = sums->total[col] + (accumulate ? out[col] : 0.0f);
    }
}

static inline void parallel_columns(int64_t rows, int64_t cols, RangeBody *body, const void *context) {
    parallel_ranges(cols, 16, PARALLEL_GRAIN / (rows > 0 ? rows : 1) + 16, body, context);
}
