// A session's calibration of its profile from its own runs, repeated after each of them. Who wins is not believed by it
// but by the prior model: a dozen factors that a few runs of a drifting machine were fitted to take the ranking of all
// shapes with them, and are sure of it (tests/accuracy/sweep/mild.csv: of the sessions that were sure within 3 %, 5 of
// 10 were right; by the prior model 15 of 16).

#pragma once

#include "autotune/calibrate/calibrate.h"
#include "autotune/tune/tune.h"

typedef struct CalibratedModel {
    const char *set;          // whose runs they are: the host
    int threads;              // 0 = as many as there are processors; changes no result
    Arena arena;              // of the last calibration
    CalibrationInput input;   // its samples
    bool calibrated;          // it succeeded
    Calibration calibration;  // then
    const char *refusal;      // else why not
} CalibratedModel;

void calibrated_model_free(CalibratedModel *model);

// What runs of a shape are predicted from.
CalibrationCase calibrated_model_case(const Tuning *tuning, int shape);

// For TuneMeans.learn: the prior model, and what the calibration predicts.
Status calibrated_model_learn(CalibratedModel *own, const Tuning *tuning, TuneModel *model, BeliefShape *shapes,
                              const char **learnt, Error *error);

// The profile as the last calibration knows it; USAGE, with its reason, where there is none. date: YYYY-MM-DD.
Status calibrated_model_profile(const CalibratedModel *own, const char *date, Arena *arena, ClusterProfile *profile,
                                Error *error);
