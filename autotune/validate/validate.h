// Validates predictions: actually runs the best candidates of a search and compares measured with predicted. Running
// and storing are up to the caller; a row that fails does not stop the others.

#pragma once

#include "autotune/result.h"
#include "autotune/run_record.h"
#include "autotune/validate/drift.h"
#include "autotune/validate/measurement.h"

typedef enum { VALIDATE_TOP, VALIDATE_SPREAD } ValidateWhy;  // among the best | spread over the rest of the ranking

typedef struct ValidateRow {
    const Prediction *prediction;
    int place;  // in the predicted ranking, from 1
    ValidateWhy why;
    RunRecord *runs;  // as many as repeats; those that ended well
    int run_count, recalled;
    const char *state;  // "ok"; else "diverged" "failed" "refused" of the last run, with the reason
    const char *reason;
    double measured_s;     // median of the steps of all runs; 0 = nothing was measured
    double steady_s;       // what the runs of all rows say of it without the effects of their times (drift.h)
    double low_s, high_s;  // of that median
    double noise;          // spread of the runs' medians; NAN of fewer than two
    StepParts parts;       // of the last run
} ValidateRow;

// All tasks of a kind on a lane, summed over one step of each measured row.
typedef struct ValidateKind {
    const char *kind, *lane;
    int64_t count;
    double measured_s, predicted_s;
} ValidateKind;

typedef struct Validation {
    const TuneRequest *request;
    const char *source;  // "executor" or "command"
    int shapes;          // that the search ranked
    int steps, warm_up, repeats;
    ValidateRow *rows;
    int row_count;
    ValidateKind *kinds;
    int kind_count;
    DriftLaw law;         // of the machine
    Agreement agreement;  // over the rows that were measured, by steady time per token; its indices are into rows
    int in_interval;      // measured rows within their predicted interval
    CoreUse core_use;
    double noise;  // median over the rows; NAN where nothing was repeated
} Validation;

// The `top` first entries and `spread` more at even distances over the rest; top 0 = all. Fills rows.
void validate_choose(const TuneResult *result, int top, int spread, Arena *arena, Validation *validation);

// Caller's callbacks for a row. All texts and arrays they return live as long as the validation.
typedef struct ValidateMeans {
    // Runs that are known already, at most `most`, newest first; returns how many. NULL = none.
    int (*recall)(void *state, const ValidateRow *row, RunRecord *runs, int most);
    // One more run, stored however it ends: the record says why it failed. An error concerns every row and ends the
    // validation.
    Status (*run)(void *state, const ValidateRow *row, RunRecord *record, Error *error);
    bool (*cancelled)(void *state);
    void *state;
} ValidateMeans;

// Runs the rows in rounds, each in a different order, so that machine drift does not favour one. Fails when cancelled,
// and with the error of a run.
Status validate_run(Validation *validation, const ValidateMeans *means, Arena *arena, Error *error);

// Medians, agreement and kinds from the rows' runs.
void validate_summarize(Validation *validation, Arena *arena);
