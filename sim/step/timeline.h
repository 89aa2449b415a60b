// Timeline: when each task instance of a step ran, simulated or measured. The engine and the executor use the same
// type, so that predicted and measured line up task by task.

#pragma once

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/step/step.h"

typedef enum { TIMELINE_SIMULATED, TIMELINE_MEASURED } TimelineOrigin;

typedef struct Span {
    int32_t rank;
    int32_t task;  // index into the program's tasks
    int32_t layer;
    int32_t micro_step;
    double start_s, end_s;  // from the step's start
} Span;

typedef struct Timeline {
    TimelineOrigin origin;
    Span *spans;  // by rank, then issue order; may be a sample (first and last iterations) when complete is false
    int64_t span_count;
    bool complete;
    double step_s;  // whole step, slowest rank
} Timeline;

// Totals per template task: count and duration, over the spans of one rank.
typedef struct TaskTotal {
    int64_t count;
    double seconds;
} TaskTotal;

// totals has program->task_count rows.
void timeline_totals(const Timeline *timeline, const StepProgram *program, int rank, TaskTotal *totals);
