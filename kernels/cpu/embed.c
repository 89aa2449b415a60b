// Lookup of table rows (token or position embeddings), and their gradient. The gradient is split by columns, and each
// thread walks all rows in order: rows with the same entry are added in order for any number of threads, without
// atomics or sorting.

#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"

#include <string.h>

typedef struct Embed {
    KernelEmbed shape;
    const int32_t *entries;
    const float *from;
    float *to;
    bool accumulate;
} Embed;

static void embed_row(const Embed *e, const float *restrict from, float *restrict to) {
    const int64_t cols = e->shape.cols;
    const float scale = e->shape.scale;
    if (!e->accumulate && scale == 1.0f) {
        memcpy(to, from, sizeof(float) * (size_t)cols);
        return;
    }
    for (int64_t col = 0; col < cols; col++) {
        to[col] = (e->accumulate ? to[col] : 0.0f) + scale * from[col];
    }
}

static void embed_rows(const void *context, int64_t begin, int64_t end) {
    const Embed *e = context;
    const int64_t cols = e->shape.cols;
    for (int64_t row = begin; row < end; row++) {
        const int64_t entry = e->entries[row] - e->shape.first;
        if (entry >= 0 && entry < e->shape.range) {
            embed_row(e, e->from + entry * cols, e->to + row * cols);
        } else if (!e->accumulate) {
            memset(e->to + row * cols, 0, sizeof(float) * (size_t)cols);
        }
    }
}

void kernel_embed(const KernelEmbed *shape, const int32_t *entries, const float *table, float *x, bool accumulate) {
    const Embed embed = {*shape, entries, table, x, accumulate};
    parallel_rows(shape->rows, shape->cols, embed_rows, &embed);
}

static void embed_backward_columns(const void *context, int64_t begin, int64_t end) {
    const Embed *e = context;
    const int64_t cols = e->shape.cols;
    const float scale = e->shape.scale;
    if (!e->accumulate) {
        for (int64_t entry = 0; entry < e->shape.range; entry++) {
            memset(e->to + entry * cols + begin, 0, sizeof(float) * (size_t)(end - begin));
        }
    }
    for (int64_t row = 0; row < e->shape.rows; row++) {
        const int64_t entry = e->entries[row] - e->shape.first;
        if (entry < 0 || entry >= e->shape.range) {
            continue;
        }
        const float *restrict dx = e->from + row * cols;
        float *restrict sum = e->to + entry * cols;
        for (int64_t col = begin; col < end; col++) {
            sum[col] += scale * dx[col];
        }
    }
}

void kernel_embed_backward(const KernelEmbed *shape, const int32_t *entries, const float *dx, float *dtable,
                           bool accumulate) {
    const Embed embed = {*shape, entries, dx, dtable, accumulate};
    const int64_t work = shape->rows + (accumulate ? 0 : shape->range);  // per column
    parallel_ranges(shape->cols, 16, PARALLEL_GRAIN / (work > 0 ? work : 1) + 16, embed_backward_columns, &embed);
}
