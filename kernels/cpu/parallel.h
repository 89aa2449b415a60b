// How the kernels use threads: a range cut into fixed contiguous parts, or items taken in turn. No kernel sums across
// threads, so every result is the same for any number of threads.

#pragma once

#include <stdint.h>

// Elements of plain streaming work below which a second thread costs more than it saves (a fork and join is about 2 us
// here).
enum { PARALLEL_GRAIN = 16384 };

// Works on [begin, end).
typedef void RangeBody(const void *context, int64_t begin, int64_t end);

// [0, count) in at most one part per thread; parts hold at least `grain` and begin at multiples of `unit`.
void parallel_ranges(int64_t count, int64_t unit, int64_t grain, RangeBody *body, const void *context);
// The same for rows of `cols` elements: as many rows per part as PARALLEL_GRAIN asks for.
void parallel_rows(int64_t rows, int64_t cols, RangeBody *body, const void *context);
// Items one by one, in order, each to the next free thread: for items of unequal cost. Serial when there are fewer than
// `grain`.
void parallel_items(int64_t count, int64_t grain, RangeBody *body, const void *context);

int parallel_threads(void);
void parallel_set_threads(int threads);
