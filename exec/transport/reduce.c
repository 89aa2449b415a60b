// Block by block, so that the running sum stays in the first-level cache whatever the number of rows.

#include "exec/transport/reduce.h"

#include <string.h>

enum { SUM_BLOCK = 1024 };  // floats

void reduce_rows(const float *const *rows, int row_count, int64_t count, ReduceOp op, float *out) {
    for (int64_t first = 0; first < count; first += SUM_BLOCK) {
        const int64_t n = count - first < SUM_BLOCK ? count - first : SUM_BLOCK;
        float sum[SUM_BLOCK];
        memcpy(sum, rows[0] + first, (size_t)n * sizeof(float));
        for (int i = 1; i < row_count; i++) {
            const float *x = rows[i] + first;
            if (op == REDUCE_SUM) {
                for (int64_t j = 0; j < n; j++) {
                    sum[j] += x[j];
                }
            } else {
                for (int64_t j = 0; j < n; j++) {
                    sum[j] = x[j] > sum[j] ? x[j] : sum[j];
                }
            }
        }
        memcpy(out + first, sum, (size_t)n * sizeof(float));
    }
}
