// The effect of machine speed drift on measurements, and the resulting estimates of the shapes:
//   log of run k = log t of its shape + d(time of k) + noise,   d: a stationary Gaussian process with covariance
//   sd^2 exp(-|time - time'| / time_s) (Ornstein and Uhlenbeck 1930), noise ~ N(0, noise_sd^2 + own_sd(k)^2): a run
//   whose steps scatter says less of its shape, and steps that agree do not say that the next run will
// Runs close in time share their effect, so they compare shapes; runs hours apart have effects of their own. What the
// three numbers are is averaged over a grid, weighed by prior and restricted likelihood (Harville 1974), so that few
// runs do not pass for a machine at rest. A shape's time is the generalised least squares estimate.

#pragma once

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"

typedef struct DriftRun {
    int shape;
    double log_s;   // of what was measured
    double at_s;    // when it began; any origin
    double own_sd;  // of log_s, as the spread of its steps says (measurement_median_sd); 0 = not known
} DriftRun;

// Of the machine.
typedef struct DriftLaw {
    double sd, time_s;  // of the log of its speed; 0: it does not drift
    double noise_sd;    // of a run, in addition to the drift and to what the spread of its steps implies
} DriftLaw;

// What may be before anything ran: the laws of a grid, from 0 on; returns how probable each is, 0 after the last.
double drift_law(int index, DriftLaw *law);

typedef struct Drift {
    int shapes;
    DriftLaw law;              // the middle of what is believed
    double own_sd;             // of the runs, the root of their mean square
    const double *measured;    // per shape: log seconds without the effects of time; nothing of one without runs
    const double *covariance;  // of these, shapes x shapes; 0 of those without runs
    // Of the laws that were averaged: how probable each is, and by what factor the errors of `measured` are larger
    // under it than `covariance` says. A mixture has heavier tails than a normal of its covariance.
    int laws;
    const double *weight, *scale;
    const double *effect;  // per run: d as expected
    // Of a run begun now: d = offset - lean . (log t of all shapes) + N(0, now_sd^2).
    const double *lean;
    double offset, now_sd;
} Drift;

// Averages over the grid. now_s: of the next run. INTERNAL where the covariance is none.
Status drift_learn(const DriftRun *runs, int count, int shapes, double now_s, Arena *arena, Drift *drift, Error *error);

// The same under one law.
Status drift_under(const DriftLaw *law, const DriftRun *runs, int count, int shapes, double now_s, Arena *arena,
                   Drift *drift, Error *error);
