// How much of a collective is exposed: the part of its span in which the compute lane of its rank was idle.

#pragma once

#include "sim/base/arena.h"
#include "sim/step/timeline.h"

typedef struct OpenTime {
    struct OpenInterval *busy;  // of the compute lane, one after another
    int64_t count;
} OpenTime;

int64_t span_ns(double seconds);  // whole nanoseconds: what follows without a gap does not overlap after rounding

// Where the spans of the rank end whose spans begin there: those of a rank stand together.
int64_t span_rank_end(const Timeline *timeline, int64_t begin);

OpenTime open_time_new(int64_t most_spans, Arena *arena);
void open_time_begin(OpenTime *open, const StepProgram *program, const Span *spans, int64_t count);  // of one rank
int64_t open_time_ns(const OpenTime *open, const Span *span);
