// Measured times instead of a machine: a replay of real measurements made in rounds over the shapes. A session stays in
// one round until it requests a shape again that it has had from it, then moves to the next: so a disturbance of a
// round also affects the session. It shows what a strategy would have needed, without running anything again.

#pragma once

#include "autotune/tune/tune.h"

typedef struct ReplayShape {
    const double *steps_s;  // measured, per round; 0 = not in that round
    int count;              // of rounds; 0: the shape failed, for this reason
    const char *failure;
    const double *at_s;    // when, per round; NULL = all at once
    const double *own_sd;  // TuneRun's, per round; NULL = not known
} ReplayShape;

typedef struct Replay {
    const ReplayShape *shapes;  // in the tuning's order
    uint64_t seed;              // of the order of the rounds
    bool in_order;              // they follow each other as they were measured; the seed says where a session begins
} Replay;

// For TuneMeans.run, with a Replay as state's first field. Rounds repeat once all have been used.
Status replay_run(void *state, const Tuning *tuning, int shape, TuneRun *run, Error *error);

// Whether the session's next run would be a repeat: it has seen all measurements of that shape.
bool replay_is_over(const Replay *replay, const Tuning *tuning);
