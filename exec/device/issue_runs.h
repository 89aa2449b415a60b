// A step cut into runs: what can be submitted to a GPU at once, and what needs the host in between. The cut depends on
// the program alone, so it is the same in every step.

#pragma once

#include "sim/step/step.h"

typedef enum {
    RUN_COLLECTIVE,  // one collective
    RUN_HOST,        // one task the host takes part in: it supplies tokens, or expert row counts are sizes
    RUN_STEPWISE,    // compute tasks that differ between steps: AdamW corrects its moments by the step number
    RUN_FIXED,       // compute tasks that are identical in every step: a graph
    RUN_KINDS
} RunKind;

typedef struct IssueRun {
    RunKind kind;
    StepCursor cursor;  // step_cursor_next gives the first instance, then the others of the run
    int64_t first;      // place of the first instance in issue order
    int32_t count;
    int32_t same_as;  // fixed: the first run with the same tasks, layers and slots in the same order; itself if none
} IssueRun;

typedef struct IssueRuns {
    IssueRun *runs;
    int32_t count, distinct;  // fixed runs that do not repeat an earlier one
} IssueRuns;

// Every instance of the step is in exactly one run, a run stays on one lane, and runs follow each other in issue order.
// No two neighbouring runs of a lane have the same kind, except collectives and host tasks.
IssueRuns issue_runs_cut(const StepProgram *program, Arena *arena);
