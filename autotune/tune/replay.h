// Measured times in the place of a machine: a replay of real measurements, in which each further run of a shape is
// another of its measured repeats. What a strategy would have needed is judged by it, without running anything again.

#pragma once

#include "autotune/tune/tune.h"

typedef struct ReplayShape {
    const double *steps_s;  // measured, one per repeat
    int count;              // 0: the shape failed, for this reason
    const char *failure;
} ReplayShape;

typedef struct Replay {
    const ReplayShape *shapes;  // in the order of the tuning's
    uint64_t seed;              // of the order of the repeats; of each shape for itself, so that every strategy sees
                                // the same runs of it
} Replay;

// For TuneMeans.run, with a Replay as state's first field. Repeats come again once all were seen.
Status replay_run(void *state, const Tuning *tuning, int shape, TuneRun *run, Error *error);
