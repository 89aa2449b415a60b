// Lifetimes of parts of buffers, with what happens-before says about each: the input of the planner's interference
// test.

#pragma once

#include "sim/memory/happens_before.h"
#include "sim/memory/lifetimes.h"

// How buffers are divided: a part is one slot or the whole buffer.
typedef struct Parts {
    int32_t *first;  // [buffer_count + 1]: first part of each buffer
    int32_t count;
    int32_t *const *place;  // by buffer: the part of each slot, among the buffer's; NULL, or a NULL: slot i is part i
} Parts;

// Buffers of up to max_slots slots get a part for each, others are one part.
Parts parts_of_buffers(const StepProgram *program, int32_t max_slots, Arena *arena);

// The time in which at least one slot of a part is alive, in instances.
typedef struct PartSpan {
    int32_t first, last;
} PartSpan;

// Two clocks per span, [rows][stride]. ended_before: fewest instances of each lane that end before any use of this or
// a later span of the part starts. used_until: last position in each lane of a use in this or an earlier span.
typedef struct PartSpans {
    Parts parts;
    int32_t stride;   // integers per clock
    int32_t *begin;   // of each part: its first row; begin[parts.count] = rows in all
    PartSpan *spans;  // in issue order
    int32_t *ended_before;
    int32_t *used_until;
} PartSpans;

void part_spans_build(const HappensBefore *order, const Lifetimes *lifetimes, Parts parts, Arena *arena,
                      PartSpans *spans);

// May two parts hold the same bytes: for every pair of their spans, do all uses of one end before any use of the other
// starts?
bool part_spans_disjoint(const PartSpans *spans, int32_t a, int32_t b);
