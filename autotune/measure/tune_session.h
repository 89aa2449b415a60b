// A session of the closed loop on our executor. Every run is stored with its place in the session before it counts, so
// that the same session goes on after Ctrl-C or a kill.

#pragma once

#include "autotune/measure/measuring.h"
#include "autotune/tune/calibrated_model.h"
#include "autotune/tune/tune.h"

typedef struct TuneSession {
    const Measuring *measuring;
    void (*report)(void *context, const Tuning *tuning, const TuneStep *step);  // with the context of `measuring`
    MeasuredRun **of_shape;                                                     // NULL: the executor refuses it
    uint64_t *hashes;       // of the shapes' measurements; 0 where it refuses
    int64_t id;             // in the store; 0 = in none
    CalibratedModel model;  // freed by the caller, calibrated_model_free
} TuneSession;

// Chooses the shapes (tune_begin), of which those that the executor refuses are out, and continues the session of the
// store that has the same, else begins one.
Status tune_session_begin(TuneSession *session, const TuneResult *result, const TuneOptions *options, Tuning *tuning,
                          Error *error);

// Runs until the loop ends.
Status tune_session_run(TuneSession *session, Tuning *tuning, Error *error);

// What the stored session of the same shapes found, without a run; *tuning: NULL = there is none.
Status tune_session_recall(const Measuring *measuring, const TuneResult *result, const TuneOptions *options,
                           const Tuning **tuning, Error *error);
