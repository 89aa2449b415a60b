// Joins and splits the keys of latent attention row by row. Its norms are in norm.c.

#include "kernels/latent.h"
#include "kernels/cpu/parallel.h"

#include <string.h>

typedef struct Keys {
    KernelKeys of;
    const float *up, *shared, *dk, *dv;
    float *k, *dup, *dshared;
} Keys;

static size_t bytes_of(int elements) {
    return sizeof(float) * (size_t)elements;
}

static void join_rows(const void *context, int64_t begin, int64_t end) {
    const Keys *w = context;
    const KernelKeys *of = &w->of;
    for (int64_t row = begin; row < end; row++) {
        for (int head = 0; head < of->heads; head++) {
            const int64_t at = row * of->heads + head;
            float *k = w->k + at * (of->still + of->turning);
            memcpy(k, w->up + at * (of->still + of->value), bytes_of(of->still));
            memcpy(k + of->still, w->shared + row * of->shared_stride, bytes_of(of->turning));
        }
    }
}

static int64_t width_of(const KernelKeys *keys) {
    return (int64_t)keys->heads * (keys->still + keys->turning);
}

void kernel_join_keys(const KernelKeys *keys, const float *up, const float *shared, float *k) {
    const Keys work = {.of = *keys, .up = up, .shared = shared, .k = k};
    parallel_rows(keys->rows, width_of(keys), join_rows, &work);
}

static void part_rows(const void *context, int64_t begin, int64_t end) {
    const Keys *w = context;
    const KernelKeys *of = &w->of;
    for (int64_t row = begin; row < end; row++) {
        float *restrict shared = w->dshared + row * of->shared_stride;
        memset(shared, 0, bytes_of(of->turning));
        for (int head = 0; head < of->heads; head++) {
            const int64_t at = row * of->heads + head;
            const float *restrict dk = w->dk + at * (of->still + of->turning);
            float *dup = w->dup + at * (of->still + of->value);
            memcpy(dup, dk, bytes_of(of->still));
            memcpy(dup + of->still, w->dv + at * of->value, bytes_of(of->value));
            for (int i = 0; i < of->turning; i++) {
                shared[i] += dk[of->still + i];
            }
        }
    }
}

void kernel_part_keys(const KernelKeys *keys, const float *dk, const float *dv, float *dup, float *dshared) {
    const Keys work = {.of = *keys, .dk = dk, .dv = dv, .dup = dup, .dshared = dshared};
    parallel_rows(keys->rows, width_of(keys), part_rows, &work);
}
