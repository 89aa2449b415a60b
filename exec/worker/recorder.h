// Recorder: when each task instance ran, in arrays allocated before the first step.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/step/step.h"
#include "sim/step/timeline.h"

typedef struct Recorder {
    int64_t instances;        // of one step
    int steps_kept;           // span arrays hold the latest steps; 0 = no spans
    double *start_s, *end_s;  // [steps_kept][instances], issue order
    TaskTotal *totals;        // by task, over the steps after warm-up
    int32_t task_count;
    bool counting;  // off during the warm-up step
    int counted;    // steps in the totals
} Recorder;

typedef struct RecorderSpan {
    int64_t step, ordinal;  // ordinal: place in issue order
    int32_t task;
    double start_s, end_s;
} RecorderSpan;

void recorder_begin(Recorder *recorder, const StepProgram *program, int steps, bool spans, Arena *arena);

// Different tasks may report from different threads; a given task always reports from the same one.
void recorder_span(Recorder *recorder, const RecorderSpan *span);

// The step of median time among those kept, without warm-up if there are others; -1 without spans.
int recorder_typical_step(const Recorder *recorder, const double *step_time_s, int steps);
