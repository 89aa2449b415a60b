// Token embedding of a vocabulary range, and its gradient. The gradient is cut by columns, each thread walking all
// tokens in order: rows of equal tokens then add in token order for any number of threads, without atomics or sorting.

#include "kernels/cpu/tier.h"

#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"

#include <string.h>

typedef struct Embed {
    int64_t rows, cols, first, range;
    const int32_t *tokens;
    const float *from;
    float *to;
    bool accumulate;
} Embed;

static void embed_rows(const void *context, int64_t begin, int64_t end) {
    const Embed *e = context;
    const size_t bytes = sizeof(float) * (size_t)e->cols;
    for (int64_t row = begin; row < end; row++) {
        const int64_t entry = e->tokens[row] - e->first;
        if (entry >= 0 && entry < e->range) {
            memcpy(e->to + row * e->cols, e->from + entry * e->cols, bytes);
        } else {
            memset(e->to + row * e->cols, 0, bytes);
        }
    }
}

void kernel_embed(int64_t rows, int64_t cols, int64_t first, int64_t range, const int32_t *tokens, const float *table,
                  float *x) {
    const Embed embed = {rows, cols, first, range, tokens, table, x, false};
    parallel_rows(rows, cols, embed_rows, &embed);
}

static void embed_backward_columns(const void *context, int64_t begin, int64_t end) {
    const Embed *e = context;
    if (!e->accumulate) {
        for (int64_t entry = 0; entry < e->range; entry++) {
            memset(e->to + entry * e->cols + begin, 0, sizeof(float) * (size_t)(end - begin));
        }
    }
    for (int64_t row = 0; row < e->rows; row++) {
        const int64_t entry = e->tokens[row] - e->first;
        if (entry < 0 || entry >= e->range) {
            continue;
        }
        const float *restrict dx = e->from + row * e->cols;
        float *restrict sum = e->to + entry * e->cols;
        for (int64_t col = begin; col < end; col++) {
            sum[col] += dx[col];
        }
    }
}

void kernel_embed_backward(int64_t rows, int64_t cols, int64_t first, int64_t range, const int32_t *tokens,
                           const float *dx, float *dtable, bool accumulate) {
    const Embed embed = {rows, cols, first, range, tokens, dx, dtable, accumulate};
    const int64_t work = rows + (accumulate ? 0 : range);  // per column
    parallel_ranges(cols, 16, PARALLEL_GRAIN / (work > 0 ? work : 1) + 16, embed_backward_columns, &embed);
}
