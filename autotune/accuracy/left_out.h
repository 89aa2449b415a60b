// How well what was fitted on published runs predicts runs of a source that it was not fitted on: every fitted number
// is fitted again without each source in turn, and the rows of the source are predicted with that.

#pragma once

#include "autotune/accuracy/predict_runs.h"

// A set of rows as it ships, and each row by the fit without its source.
typedef struct LeftOutScore {
    const char *source, *target, *accelerator;  // NULL where the score is not split by it
    int n;
    double median_abs, p90_abs, bias, in_interval;
    double left_median_abs, left_p90_abs, left_bias, left_in_interval;
    double left_width;  // intervals so many times as wide would hold 80 % of the rows
} LeftOutScore;

// A fitted number; values are over what ships. Not known where no row moves with it.
typedef struct LeftOutParameter {
    const char *name;
    const char *basis;                           // of `without`
    double without;                              // what one would take without any run
    double fitted;                               // on all sources
    double left;                                 // furthest from `fitted` when one source is left out
    const char *rests_on;                        // that source
    int n;                                       // rows that move with it
    double median_abs, p90_abs;                  // of those, as it ships
    double without_median_abs, without_p90_abs;  // with this number alone as without any run
} LeftOutParameter;

typedef struct LeftOut {
    LeftOutScore *sources, *classes;  // as they come in the file; by target and accelerator
    int source_count, class_count;
    LeftOutScore all;
    LeftOutParameter *parameters;
    int parameter_count;
} LeftOut;

// cases: as they were mapped and predicted. False when cancelled. Results live in the arena.
bool left_out_run(const RunCase *cases, int count, Effort effort, const Progress *progress, Arena *arena,
                  LeftOut *left_out);
