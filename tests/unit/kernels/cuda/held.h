// What the tests of kernels/cuda on the processor share: numbers in device memory in either format, at any alignment;
// random cases; a place to run.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cuda/kernels_cuda.h"

// Exactly `count` elements in device memory: accesses before or after them are errors.
typedef struct Held {
    KernelStore store;
    int64_t count;
    void *at, *allocation;
} Held;

// A random case: a seed, and the values drawn from it.
typedef struct Draw {
    uint64_t seed, state;
} Draw;
int64_t draw_below(Draw *draw, int64_t limit);
int64_t draw_one(Draw *draw, const int64_t *choices, int count);
int64_t draw_rows(Draw *draw);
int64_t draw_cols(Draw *draw);  // multiples of a pack, and other widths

// check(draw, store) for `cases` seeds from NDTUNE_SEED or 1, each in fp32 and bf16; the seed is printed when it fails.
void each_case(int cases, void (*check)(Draw *draw, KernelStore store));

// Numbers in (-1, 1) rounded to the format; sometimes not at a 16-byte address.
Held held_draw(Draw *draw, KernelStore store, int64_t count);
Held held_of(Draw *draw, KernelStore store, const float *x, int64_t count);
Held held_copy(const Held *held);
// The same numbers as floats; the caller frees.
float *held_floats(const Held *held);
void held_free(Held *held);
// The bits of both are equal.
bool held_equal(const Held *a, const Held *b);

// The largest error of `got` against `want`, relative to the largest of `want`, is at most this; else the words say
// what and of which seed.
void held_near(const Draw *draw, const Held *got, const float *want, double limit, const char *what);
// The limit of such an error: fp32 rounding of a few operations, or one rounding to bf16.
double held_limit(KernelStore store);

// A GPU with few processors, so that blocks stride over the work; workspace of exactly this size. Every call has
// another seed for the order of threads.
KernelCuda place_open(Draw *draw, int64_t workspace_bytes);
void place_close(KernelCuda *at);  // waits, and frees the workspace
void place_wait(const KernelCuda *at);
