// Sums, copies, zero fills, and the sum of squares for gradient clipping. The last is split into a fixed number of
// parts for any number of threads, and the parts' doubles are added in order.

#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"

#include <string.h>

typedef struct Elements {
    int64_t cols, src_stride, dst_stride;
    const float *a, *b, *bias;
    float *c;
} Elements;

static void add_range(const void *context, int64_t begin, int64_t end) {
    const Elements *e = context;
    const float *a = e->a, *b = e->b;
    float *c = e->c;
#pragma GCC ivdep  // c may be a
    for (int64_t i = begin; i < end; i++) {
        c[i] = a[i] + b[i];
    }
}

void kernel_add(int64_t count, const float *a, const float *b, float *c) {
    const Elements elements = {.a = a, .b = b, .c = c};
    parallel_ranges(count, 16, PARALLEL_GRAIN, add_range, &elements);
}

static void add_bias_rows(const void *context, int64_t begin, int64_t end) {
    const Elements *e = context;
    for (int64_t row = begin; row < end; row++) {
        const float *a = e->a + row * e->cols, *b = e->b + row * e->cols, *bias = e->bias;
        float *c = e->c + row * e->cols;
#pragma GCC ivdep  // c may be a
        for (int64_t col = 0; col < e->cols; col++) {
            c[col] = a[col] + (b[col] + bias[col]);
        }
    }
}

void kernel_add_bias(int64_t rows, int64_t cols, const float *a, const float *b, const float *bias, float *c) {
    const Elements elements = {.cols = cols, .a = a, .b = b, .bias = bias, .c = c};
    parallel_rows(rows, cols, add_bias_rows, &elements);
}

static void copy_range(const void *context, int64_t begin, int64_t end) {
    const Elements *e = context;
    for (int64_t row = begin; row < end; row++) {
        memcpy(e->c + row * e->dst_stride, e->a + row * e->src_stride, sizeof(float) * (size_t)e->cols);
    }
}

static void copy_packed(const void *context, int64_t begin, int64_t end) {
    const Elements *e = context;
    memcpy(e->c + begin, e->a + begin, sizeof(float) * (size_t)(end - begin));
}

void kernel_copy_rows(int64_t rows, int64_t cols, int64_t src_stride, int64_t dst_stride, const float *src,
                      float *dst) {
    const Elements elements = {.cols = cols, .src_stride = src_stride, .dst_stride = dst_stride, .a = src, .c = dst};
    if (rows == 1 || (src_stride == cols && dst_stride == cols)) {
        parallel_ranges(rows * cols, 16, PARALLEL_GRAIN, copy_packed, &elements);
    } else {
        parallel_rows(rows, cols, copy_range, &elements);
    }
}

static void zero_range(const void *context, int64_t begin, int64_t end) {
    const Elements *e = context;
    memset(e->c + begin, 0, sizeof(float) * (size_t)(end - begin));
}

void kernel_zero(int64_t count, float *x) {
    const Elements elements = {.c = x};
    parallel_ranges(count, 16, PARALLEL_GRAIN, zero_range, &elements);
}

enum { SQUARE_PARTS = 64 };  // enough for the threads of one processor

typedef struct Squares {
    int64_t count, light;
    double light_weight;
    const float *x;
    double *part;  // [SQUARE_PARTS]
} Squares;

// Running sums in double over eight lanes: a fixed order that vectorises.
static double squares(const float *restrict x, int64_t count) {
    typedef double Eight __attribute__((vector_size(64)));
    typedef float EightAt __attribute__((vector_size(32), aligned(4), may_alias));
    Eight sum[4] = {{0}};
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        for (int part = 0; part < 4; part++) {
            const Eight wide = __builtin_convertvector(*(const EightAt *)(x + i + 8 * part), Eight);
            sum[part] += wide * wide;
        }
    }
    double total = 0.0;
    for (; i < count; i++) {
        total += (double)x[i] * (double)x[i];
    }
    for (int lane = 0; lane < 8; lane++) {
        total += (sum[0][lane] + sum[1][lane]) + (sum[2][lane] + sum[3][lane]);
    }
    return total;
}

static void square_parts(const void *context, int64_t begin, int64_t end) {
    const Squares *s = context;
    for (int64_t part = begin; part < end; part++) {
        const int64_t first = s->count / 32 * part / SQUARE_PARTS * 32;
        const int64_t last = part + 1 == SQUARE_PARTS ? s->count : s->count / 32 * (part + 1) / SQUARE_PARTS * 32;
        const int64_t border = s->light < first ? first : s->light > last ? last : s->light;
        s->part[part] = s->light_weight * squares(s->x + first, border - first) + squares(s->x + border, last - border);
    }
}

void kernel_square_sum(int64_t count, int64_t light, double light_weight, const float *x, float *sum, bool accumulate) {
    double part[SQUARE_PARTS];
    const Squares work = {count, light, light_weight, x, part};
    const int64_t grain = count < PARALLEL_GRAIN ? SQUARE_PARTS + 1 : 1;
    parallel_ranges(SQUARE_PARTS, 1, grain, square_parts, &work);
    double total = accumulate ? (double)*sum : 0.0;
    for (int i = 0; i < SQUARE_PARTS; i++) {
        total += part[i];
    }
    *sum = (float)total;
}
