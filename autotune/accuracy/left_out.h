// How well constants fitted on published runs predict runs of a source that they were not fitted on: every fitted
// number is refitted leaving out each source, and that source's rows are predicted with the result.

#pragma once

#include "autotune/accuracy/run_case.h"
#include "sim/base/progress.h"

// Scores of a set of rows with the shipped numbers, and with each row predicted by the fit without its source.
typedef struct LeftOutScore {
    const char *source, *target, *accelerator;  // NULL where the score is not split by it
    int n;
    double median_abs, p90_abs, bias, in_interval;
    double left_median_abs, left_p90_abs, left_bias, left_in_interval;
    double left_width;  // factor by which intervals must widen to hold 80 % of the rows
} LeftOutScore;

// A fitted number; values are relative to the shipped one. Unknown where no row depends on it.
typedef struct LeftOutParameter {
    const char *name;
    const char *basis;                           // of `without`
    double without;                              // the prior without any run
    double fitted;                               // on all sources
    double left;                                 // furthest from `fitted` when one source is left out
    const char *rests_on;                        // that source
    int n;                                       // rows that depend on it
    double median_abs, p90_abs;                  // over those, with the shipped numbers
    double without_median_abs, without_p90_abs;  // with this number alone set to its prior
} LeftOutParameter;

typedef struct LeftOut {
    LeftOutScore *sources, *classes;  // in file order; by target and accelerator
    int source_count, class_count;
    LeftOutScore all;
    LeftOutParameter *parameters;
    int parameter_count;
} LeftOut;

// cases: already mapped and predicted. False when cancelled. Results live in the arena.
bool left_out_run(const RunCase *cases, int count, Effort effort, const Progress *progress, Arena *arena,
                  LeftOut *left_out);
