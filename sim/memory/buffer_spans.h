// Lifetimes of whole buffers, with what happens-before says about each: the input of the planner's interference test.

#pragma once

#include "sim/memory/happens_before.h"
#include "sim/memory/lifetimes.h"

// The time in which at least one slot of a buffer is alive.
typedef struct BufferSpan {
    int32_t first, last;         // instances
} BufferSpan;

// Two clocks per span, [rows][stride]. ended_before: fewest instances of each lane that end before any use of the span
// starts. used_until: last position in each lane of a use in this or an earlier span of the buffer.
typedef struct BufferSpans {
    int32_t stride;          // integers per clock
    int32_t *begin;          // of each buffer: its first row; begin[buffer_count] = rows in all
    BufferSpan *spans;       // in issue order
    int32_t *ended_before;
    int32_t *used_until;
} BufferSpans;

void buffer_spans_build(const HappensBefore *order, const Lifetimes *lifetimes, Arena *arena, BufferSpans *spans);

// May two buffers hold the same bytes: for every pair of their spans, do all uses of one end before any use of the
// other starts?
bool buffer_spans_disjoint(const BufferSpans *spans, int32_t a, int32_t b);
