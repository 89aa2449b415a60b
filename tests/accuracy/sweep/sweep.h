// The measured sweeps as sets of shapes that differ in nothing else: the basis for judging a tuner.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "tests/support/tune_replay.h"

typedef struct Sweep {
    const char *name;     // "two4-wide"
    TuneRequest request;  // model, cluster, target
    TuneResult result;    // its shapes as predicted, best first
    ReplayShape *shapes;  // in that order
    double *measured_s;   // over all rounds, without their common component (median polish)
    double *noise;        // per shape: standard deviation of the logs of its repeats; NAN for fewer than two
    int repeats;          // rounds
    bool in_order;        // they were recorded one after another (drift.csv)
    int best;             // measured
} Sweep;

typedef struct Sweeps {
    Sweep *rows;
    int count;
} Sweeps;

Status sweeps_read(const char *runs_path, const char *groups_path, Arena *arena, Sweeps *sweeps, Error *error);

double sweep_regret(const Sweep *sweep, int shape);  // its measured time relative to the best's

// Within 5 % of the best, and no further from it than two standard errors of their difference round by round: the
// record cannot distinguish them.
bool sweep_tied(const Sweep *sweep, int shape, Arena *arena);
