// How the kernels use threads: a range split into contiguous parts, or items taken one by one. Which thread takes a
// part is not determined, so no kernel sums across parts: every result is the same for any number of threads.

#pragma once

#include <stdint.h>

// Elements of plain streaming work below which a second thread costs more than it saves (a hand-over takes about 1 us).
enum { PARALLEL_GRAIN = 16384 };

// Processes [begin, end).
typedef void RangeBody(const void *context, int64_t begin, int64_t end);

// Splits [0, count) into a few parts per thread; parts have at least `grain` elements and begin at multiples of `unit`.
void parallel_ranges(int64_t count, int64_t unit, int64_t grain, RangeBody *body, const void *context);
// The same for rows of `cols` elements, with as many rows per part as PARALLEL_GRAIN requires.
void parallel_rows(int64_t rows, int64_t cols, RangeBody *body, const void *context);
// Items one by one, in order, each to the next free thread: for items of unequal cost.
void parallel_items(int64_t count, RangeBody *body, const void *context);

int parallel_threads(void);
void parallel_set_threads(int threads);
