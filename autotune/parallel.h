// Independent work items on the processors of this machine. Results must not depend on which thread ran which item.

#pragma once

#include "sim/base/error.h"
#include "sim/base/progress.h"

enum { PARALLEL_MAX_WORKERS = 16 };

typedef struct ParallelWork {
    int workers;  // the caller is number 0
    int count;    // pieces 0 .. count-1, begun in this order
    Status (*piece)(void *context, int worker, int index, Error *error);
    void *context;
    const Progress *progress;  // called by the caller's thread only; may cancel
    const char *label;
} ParallelWork;

// Number of workers for a requested count: 0 means one per processor.
int parallel_workers(int wished);

// Runs every piece, or stops early: the error is that of the lowest piece that failed, or says that it was interrupted.
Status parallel_run(const ParallelWork *work, Error *error);
