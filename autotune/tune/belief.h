// The belief about each shape's time: log seconds per token, jointly normal. Predictions are off by one
// factor, theta; each shape has a misfit of its own that no theta explains; and a shape that has run is known up to
// repeat noise:
//   log t_i = prediction_i + gradient_i . (theta - mean) + misfit_i,   misfit_i ~ N(0, misfit_sd^2)
//   log of a run of i = log t_i + effect of its time (drift.h) + N(0, noise_sd^2)

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "autotune/validate/drift.h"

enum { BELIEF_FACTORS = 1 };

// The model conditioned on the runs: factors are the coordinates of theta.
typedef struct TuneModel {
    int factors;
    double covariance[BELIEF_FACTORS * BELIEF_FACTORS];  // of theta, row by row, factors x factors
    double misfit_sd;
} TuneModel;

// One shape, in log seconds per token.
typedef struct BeliefShape {
    double predicted;   // at the mean of theta
    double calibrated;  // by the profile as the runs taught it; that is not believed in (calibrated_model.h)
    double gradient[BELIEF_FACTORS];
    double tokens;  // of a step
    int runs;       // that ended well
    bool out;       // cannot win any more: it failed, or was refused
} BeliefShape;

typedef struct Belief {
    int count;
    double *mean;        // per shape
    double *covariance;  // row by row, count x count
    const bool *out, *ran;
    int laws;                      // of the drift; they scale the errors of shapes that ran, draw by draw
    const double *weight, *scale;  // of each
    // The next run of i: log t_i + offset - lean . (log t of all shapes) + N(0, run_sd^2), the effect of now and noise.
    const double *lean;
    double offset, run_sd;
} Belief;

// drift: what the runs say, of as many shapes. INTERNAL where its covariance is none.
Status belief_form(const TuneModel *model, const BeliefShape *shapes, int count, const Drift *drift, Arena *arena,
                   Belief *belief, Error *error);

// The log of the next run of a shape as expected; its covariance with the log times of all shapes (NULL = not wanted)
// and its variance.
double belief_next_run(const Belief *belief, int shape, double *covariance, double *variance);

// `draws` joint draws, each under one law of the drift's, row by row of count; the same for the same seed.
// ENVIRONMENT when the covariance is none.
Status belief_draw(const Belief *belief, uint64_t seed, int draws, double *values, Error *error);
