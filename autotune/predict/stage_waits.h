// When the compute lane of a pipeline stage waits for another stage: one definition for steps that were measured and
// those that were simulated.

#pragma once

#include "sim/step/timeline.h"

typedef struct StageWait {
    double start_s, end_s;
} StageWait;

// Of one rank, in order of time. busy_s: without the optimizer.
typedef struct StageWaits {
    StageWait *waits;
    int64_t count;
    double busy_s, optimizer_s, waits_s;
} StageWaits;

// The compute lane is idle, and neither a collective of ranks of its own stage nor a message that it sends is in
// flight.
// spans: of one rank, in issue order.
StageWaits stage_waits(const StepProgram *program, const Span *spans, int64_t count, double step_s, Arena *arena);

// The share of the step, mean over the timeline's ranks; NAN where it has no spans.
double stage_bubble_share(const StepProgram *program, const Timeline *timeline, Arena *arena);
