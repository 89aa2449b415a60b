// Shared by the files of autotune/calibrate only.

#pragma once

#include "autotune/calibrate/calibrate.h"

// What one shape may be observed by: its step, each kind of span, reserved memory.
enum { OBSERVE_STEP, OBSERVE_SPANS, OBSERVE_RESERVED = OBSERVE_SPANS + SPAN_KIND_COUNT, OBSERVE_COUNT };

// Prior sd of a row on this profile, and a description of where it comes from.
double calibration_prior(const CalibrationParameter *parameter, const ClusterProfile *base, Arena *arena,
                         const char **source);

// ---------------------------------------------------------------------------------------------- shapes.c

// All runs of one plan, reduced to a robust mean of log times per kind of observation.
typedef struct ShapeData {
    CalibrationCase what;
    StepProgram program;                // lowered once
    double peak_bytes, reserved_bytes;  // predicted at theta = 0, of frameworks
    const char *set;
    int runs;
    bool has[OBSERVE_COUNT];
    double mean[OBSERVE_COUNT];      // of the logs
    double variance[OBSERVE_COUNT];  // of that mean, by repeat noise
} ShapeData;

typedef struct ShapeSet {
    ShapeData *rows;  // by key, so that the order of the samples changes nothing
    int count;
    int *shape_of;            // per sample
    double noise_sd;          // of the log step times of repeats
    double *repeat_residual;  // per sample: log time over its shape's mean, in noise_sd
    int span_runs;
} ShapeSet;

// Which sum of spans a task's time belongs to.
SpanKind calibration_span_kind(const StepProgram *program, const ClusterProfile *cluster, const Task *task);

Status shapes_build(const CalibrationInput *input, Arena *arena, ShapeSet *set, Error *error);

// ---------------------------------------------------------------------------------------------- predict_theta.c

// Predicted logs of every observation of every shape, at several thetas: out[(t * shapes + s) * OBSERVE_COUNT + k].
typedef struct ThetaWork {
    const CalibrationPosterior *coordinates;  // at[] and count are read
    const ShapeData *shapes;
    const int *chosen;  // indices of shapes; NULL = all
    int shape_count;    // chosen ones
    int threads;
    const Progress *progress;
} ThetaWork;

Status theta_predict(const ThetaWork *work, const double *thetas, int theta_count, double *out, Error *error);

// One shape at one theta. scratch is reset.
Status theta_predict_shape(const CalibrationPosterior *coordinates, const ShapeData *shape, const double *theta,
                           Arena *scratch, double out[OBSERVE_COUNT], Error *error);

// Of theta in a difference: 2 % of the number.
#define THETA_STEP 0.02

// ---------------------------------------------------------------------------------------------- fit_block.c

// A fit of some coordinates to some observations, the other coordinates held.
typedef struct FitRow {
    int shape, kind;  // index among the chosen shapes
    double y;         // measured log
    double noise_variance;
    double weight;  // robust: 1 = like the others
} FitRow;

typedef struct FitBlock {
    const CalibrationPosterior *coordinates;
    const ShapeData *shapes;
    const int *chosen;
    int chosen_count;
    const int *active;  // coordinates that move
    int active_count;
    FitRow *rows;
    int row_count;
    double *theta;                         // all coordinates: start, then result
    double prior_weight[CALIBRATION_MAX];  // of the active ones: 1 = near its prior, less far out
    double misfit_sd[OBSERVE_COUNT];
    double *jacobian;   // row_count x coordinates->count, of all coordinates at the result
    double *predicted;  // row_count, at the result
    int threads;
    const Progress *progress;
    Arena *arena;
} FitBlock;

Status fit_block(FitBlock *block, Error *error);

// The same problem without one shape, linear around the block's result: the moved coordinates, into theta.
Status fit_without(const FitBlock *block, int shape, double *theta, Error *error);

// J' W J + prior of the active coordinates at the result, active_count x active_count; `others`: the mixed part with
// coordinates->count columns, NULL = not wanted.
void fit_information(const FitBlock *block, double *information, double *others);

// ---------------------------------------------------------------------------------------------- posterior.c

// Which runs inform each coordinate that the block moved, and the verdict with its explanation.
void judge_block(const FitBlock *block, Arena *arena, CalibrationPosterior *posterior);
// Coordinates that no block moved.
void judge_untaught(CalibrationPosterior *posterior);
