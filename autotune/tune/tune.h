// The closed loop: form a belief, run the most informative shape about the winner, update, repeat. Running, storing and
// calibrating are up to the caller; the loop itself is a function of its seed and the run results, so a session resumed
// from its stored runs continues as if it had never stopped.

#pragma once

#include "autotune/result.h"
#include "autotune/tune/outlook.h"

typedef struct TuneOptions {
    int top;             // best entries of the search, as shapes; 0 = all
    double probability;  // enough: of the winner
    double tolerance;    // what does not count as faster: 0.01 = 1 %
    int max_runs;        // of the session; 0 = no bound
    double max_time_s;   // spent in its runs; 0 = no bound
    uint64_t seed;
} TuneOptions;

// One run of a shape, whatever its outcome.
typedef struct TuneRun {
    int shape;
    bool known;            // measured before the session: costs it nothing
    int64_t id;            // in the store; 0 = in none
    double at_s;           // when it began, in seconds of any origin
    double step_s;         // median after the warm-up; 0 = nothing was measured
    double own_sd;         // of its log, as the spread of its steps says; 0 = not known
    double steady_s;       // that, without the effect of its time (drift.h); of the loop
    const double *span_s;  // sums by SpanKind of the calibration; NULL = not known
    double wall_s;         // that it took
    const char *failure;   // why it says nothing of the time; NULL = it does
} TuneRun;

typedef struct TuneShape {
    const Prediction *prediction;
    int place;             // in the predicted ranking, from 1
    const char *out;       // why it is no candidate any more; NULL
    int runs;              // that ended well
    double measured_sd;    // of the log of that, against the mean of all shapes that ran
    double measured_s;     // what they say of its step, without the effects of their times; 0 = nothing
    double calibrated_s;   // predicted by the profile as the runs so far taught it
    double low_s, high_s;  // 80 % of what is believed of its step
    double good, best;     // probabilities: within the tolerance of the fastest; the fastest
    bool unsettled;        // its runs contradict each other, or its one run all that is known otherwise
} TuneShape;

// Of a step.
static inline double tune_tokens(const TuneShape *shape) {
    return (double)plan_tokens_per_step(&shape->prediction->plan);
}

// Why a shape is run: it tells most about who wins; its runs are not to be trusted yet; it wins and ran once or never.
typedef enum { TUNE_TELLS_MOST, TUNE_UNSETTLED, TUNE_UNPROVEN, TUNE_WHY_COUNT } TuneWhy;
extern const char *const tune_why_names[TUNE_WHY_COUNT];  // "tells most" "to make sure" "to prove it"

// A run, what was expected of it and what is believed after it.
typedef struct TuneStep {
    TuneRun run;
    TuneWhy because;                                     // it was run; nothing of a known one
    double expected_s, expected_low_s, expected_high_s;  // of its measured step, 80 %
    const char *learnt;                                  // what the model says of itself
    int winner;
    double probability, regret, entropy;
    int next;     // shape to run; -1 = none
    TuneWhy why;  // that one
    double gain;  // bits that the run that tells most is expected to bring
} TuneStep;

typedef enum { TUNE_CERTAIN, TUNE_MAX_RUNS, TUNE_MAX_TIME, TUNE_NONE_LEFT, TUNE_LEFT, TUNE_STOP_COUNT } TuneStop;
extern const char
    *const tune_stop_names[TUNE_STOP_COUNT];  // "probability" "max-runs" "max-time" "no-shape-left" "left"
extern const char *const tune_stop_words[TUNE_STOP_COUNT];  // "that is probable enough"

typedef struct Tuning {
    const TuneRequest *request;
    TuneOptions options;
    TuneShape *shapes;
    int shape_count;
    TuneStep begin;   // before the first run of the session; run.shape is -1
    TuneStep *steps;  // a step per run
    int step_count;
    int runs, failures, known;  // of the steps: run by the session; failed; known before
    double wall_s;
    DriftLaw law;  // of the machine, as the runs so far show it
    TuneStop stop;
} Tuning;

typedef struct TuneMeans {
    // What the session holds already, in order. NULL = nothing.
    Status (*recall)(void *state, const Tuning *tuning, TuneRun **runs, int *count, Error *error);
    // One more run, remembered however it ends; a failed run is OK, with its failure. An error ends the loop. NULL =
    // none is made: what was recalled is all, and a session that is not at its end was left.
    Status (*run)(void *state, const Tuning *tuning, int shape, TuneRun *run, Error *error);
    // The model after the steps so far: predictions and gradients of all shapes (log seconds per token), covariance and
    // deviations; learnt: a few words. Called once per step.
    Status (*learn)(void *state, const Tuning *tuning, TuneModel *model, BeliefShape *shapes, const char **learnt,
                    Error *error);
    void (*report)(void *state, const Tuning *tuning, const TuneStep *step);  // NULL = no reporting
    bool (*cancelled)(void *state);
    void *state;
} TuneMeans;

// What an interrupted session says.
#define TUNE_INTERRUPTED "interrupted; the same call goes on from here"

// The entries of a search as shapes. Fills tuning.
void tune_begin(const TuneResult *result, const TuneOptions *options, Arena *arena, Tuning *tuning);

Status tune_run(Tuning *tuning, const TuneMeans *means, Arena *arena, Error *error);

// The last step; before any run, the beginning.
const TuneStep *tune_last(const Tuning *tuning);

// The shape that the last step names; NULL where all are out.
const TuneShape *tune_winner(const Tuning *tuning);

// The model where nothing was learnt yet: predictions as they are, off by one common factor, and a misfit per shape.
void tune_model_prior(const Tuning *tuning, TuneModel *model, BeliefShape *shapes);
