// Block by block, so that the running sum stays in the first-level cache whatever the number of rows.

#include "exec/transport/reduce.h"

#include <string.h>

#include "sim/base/bf16.h"

enum { SUM_BLOCK = 1024 };  // elements

static void add(const float *x, int64_t count, float *sum) {
    for (int64_t i = 0; i < count; i++) {
        sum[i] += x[i];
    }
}

static void widen(const uint16_t *x, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++) {
        out[i] = bf16_value(x[i]);
    }
}

// Elements [first, first + count) of a row as fp32: in place, or widened into room.
static const float *block_of(const void *row, int64_t first, int64_t count, Dtype dtype, float *room) {
    if (dtype == DTYPE_FP32) {
        return (const float *)row + first;
    }
    widen((const uint16_t *)row + first, count, room);
    return room;
}

static void store(const float *sum, int64_t first, int64_t count, Dtype dtype, void *out) {
    if (dtype == DTYPE_FP32) {
        memcpy((float *)out + first, sum, (size_t)count * sizeof(float));
        return;
    }
    uint16_t *halves = (uint16_t *)out + first;
    for (int64_t i = 0; i < count; i++) {
        halves[i] = bf16_of(sum[i]);
    }
}

static void add_integers(const void *const *rows, int row_count, int64_t count, int64_t *out) {
    for (int64_t i = 0; i < count; i++) {
        int64_t sum = 0;
        for (int row = 0; row < row_count; row++) {
            sum += ((const int64_t *)rows[row])[i];
        }
        out[i] = sum;
    }
}

void reduce_rows(const void *const *rows, int row_count, int64_t bytes, Reduction how, void *out) {
    if (how.op == REDUCE_SUM_INT64) {
        add_integers(rows, row_count, bytes / (int64_t)sizeof(int64_t), out);
        return;
    }
    const int64_t count = bytes / dtype_bytes(how.dtype);
    for (int64_t first = 0; first < count; first += SUM_BLOCK) {
        const int64_t n = count - first < SUM_BLOCK ? count - first : SUM_BLOCK;
        float sum[SUM_BLOCK], room[SUM_BLOCK];
        memcpy(sum, block_of(rows[0], first, n, how.dtype, room), (size_t)n * sizeof(float));
        for (int i = 1; i < row_count; i++) {
            const float *x = block_of(rows[i], first, n, how.dtype, room);
            if (how.op == REDUCE_SUM) {
                add(x, n, sum);
                continue;
            }
            for (int64_t j = 0; j < n; j++) {
                sum[j] = x[j] > sum[j] ? x[j] : sum[j];
            }
        }
        store(sum, first, n, how.dtype, out);
    }
}
