// A step cut into runs: what can be handed to a GPU at once, and what needs the host between. The cut depends on the
// program alone, so it is the same in every step.

#pragma once

#include "sim/step/step.h"

typedef enum {
    RUN_COLLECTIVE,  // one collective
    RUN_HOST,        // one task that the host has a part in: tokens come from it, rows of experts are its sizes
    RUN_STEPWISE,  // compute tasks that are not the same in every step: AdamW corrects its moments by the step's number
    RUN_FIXED,     // compute tasks that do the same in every step: a graph
    RUN_KINDS
} RunKind;

typedef struct IssueRun {
    RunKind kind;
    StepCursor cursor;  // step_cursor_next gives the first instance, then the others of the run
    int64_t first;      // place of the first instance in issue order
    int32_t count;
    int32_t same_as;  // fixed: the first run of the same tasks, layers and slots in the same order; itself if none
} IssueRun;

typedef struct IssueRuns {
    IssueRun *runs;
    int32_t count, distinct;  // fixed runs that are not the same as an earlier one
} IssueRuns;

// Every instance of the step is in one run, a run is of one lane, and runs follow each other in issue order. No two
// neighbours of one lane are of one kind, collectives and host tasks apart.
IssueRuns issue_runs_cut(const StepProgram *program, Arena *arena);
