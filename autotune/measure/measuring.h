// Runs that are compared with each other: all made in the same way, kept in the store, and found there again.

#pragma once

#include <signal.h>

#include "autotune/measure/measured_run.h"
#include "autotune/store/store.h"

typedef struct Measuring {
    MeasuredRun like;  // every run, but for its plan; its target NULL = our executor runs none of them
    RunOptions options;
    Store *store;
    bool afresh;                               // what the store has measured does not stand for a run
    const volatile sig_atomic_t *interrupted;  // not 0: no further run is wanted
    // Before each run (NULL = another program's), which one in words: how to report and cancel it.
    Progress (*begin)(void *context, const MeasuredRun *run, const char *words);
    void *context;
} Measuring;

// Whichever target's program it is (*target), our executor runs it: no Python, no caching allocator. Modifies the
// request's target.
Status measuring_takes(TuneRequest *request, LaneMode lanes, Arena *arena, const Target **target, Error *error);

// By what a run of this plan is known again, whatever the profile said on its day; 0 = our executor does not run it.
uint64_t measuring_hash(const Measuring *measuring, const TrainPlan *plan);

// What earlier runs measured about the run's chips, for this one. An error is the store's, not the run's.
Status measuring_find_prices(const Measuring *measuring, MeasuredRun *run, Error *error);

// `words` may be NULL.
Status measuring_execute(const Measuring *measuring, MeasuredRun *run, const char *words, Error *error);
