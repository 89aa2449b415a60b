// Calibration: a few log-scale factors (theta) on the cost parameters that matter, fitted to measured runs. theta = 0
// is the profile as it is; a number of the profile is multiplied by exp(theta). One table (parameters.c) says which
// numbers a theta scales, how wide its prior is and whose runs may teach it:
//   runs of our executor   the chip and its links, and what running our executor costs
//   runs of a framework    what running that framework costs on this machine; never the machine
// From samples to a Posterior: calibrate_fit. From a Posterior: the log time of any plan with its gradient in theta (so
// that the times of plans are jointly normal), and a child profile.

#pragma once

#include <stdbool.h>

#include "autotune/result.h"
#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/progress.h"
#include "sim/cluster/cluster.h"
#include "sim/frameworks/target.h"
#include "sim/model/model.h"
#include "sim/plan/plan.h"
#include "sim/step/step.h"
#include "sim/step/timeline.h"

enum { CALIBRATION_MAX = 32, CALIBRATION_TARGETS = 3 };  // coordinates of theta; targets that one calibration may hold

// ---------------------------------------------------------------------------------------------- what may be calibrated

// Whose numbers are scaled.
typedef struct CalibrationScaled {
    ClusterProfile *cluster;
    TargetRuntime *runtime;  // NULL = of the machine alone
    Arena *arena;            // for scaled curves
} CalibrationScaled;

// OF_TARGET numbers belong to who runs (a Target's runtime), the others to the machine (its ClusterProfile).
typedef struct CalibrationParameter {
    const char *name;    // "gemm_rate"
    const char *scales;  // description of what it multiplies
    bool of_target;
    bool of_framework;     // of_target: not of our executor, whose share is the chip's
    const char *grade_of;  // path of the profile number whose grade sets the prior; NULL = prior_sd
    double prior_sd;       // where no grade says it; widens the grade's where it is larger
    const char *prior_why;
    // Are there numbers to scale? Multiplies them by factor, within the ranges of a profile.
    bool (*applies)(const ClusterProfile *cluster, const TargetRuntime *runtime);
    void (*scale)(double factor, const CalibrationScaled *of);
} CalibrationParameter;

const CalibrationParameter *calibration_parameters(int *count);

// ---------------------------------------------------------------------------------------------- samples

// Sums over the spans of a step of one rank, the mean over the ranks. Collectives: from the last arrival to the end.
typedef enum { SPAN_GEMM, SPAN_ATTENTION, SPAN_MEMORY, SPAN_LINKS, SPAN_FABRIC, SPAN_KIND_COUNT } SpanKind;

// What runs of one plan are predicted from. Pointers outlive the calibration.
typedef struct CalibrationCase {
    const ModelSpec *model;
    const ClusterProfile *cluster;  // the base profile, or it with what a run overrides
    const Target *target;           // whose program; its runtime is that of who runs it
    const Target *runner;           // who runs it: our executor's row, or target itself
    TrainPlan plan;                 // canonical and legal
    bool serial_lanes;              // our executor on CPUs
} CalibrationCase;

// Of a plan that the request asks about.
CalibrationCase calibration_case(const TuneRequest *request, const TrainPlan *plan);

// One measured run.
typedef struct CalibrationSample {
    CalibrationCase what;
    const char *id;                  // "run 12", "mosaic-0001"
    const char *set;                 // whose runs: a host, a source; a parameter that one set taught is marked so
    double step_s;                   // median after the warm-up
    double span_s[SPAN_KIND_COUNT];  // 0 = not known
    double reserved_bytes;           // of a framework's allocator; 0 = not known
} CalibrationSample;

// Sums the spans of a measured step of our executor (by rank, then issue order). False, and all 0, where they say
// nothing about the machine alone: ranks that shared cores, lanes that ran concurrently, incomplete spans.
bool calibration_spans(const CalibrationCase *what, const StepProgram *program, const Timeline *timeline,
                       Arena *scratch, double span_s[SPAN_KIND_COUNT]);

// ---------------------------------------------------------------------------------------------- posterior

typedef enum { VERDICT_IDENTIFIED, VERDICT_WEAK, VERDICT_UNTAUGHT, VERDICT_COUNT } CalibrationVerdict;

// One coordinate of theta.
typedef struct CalibrationCoordinate {
    const CalibrationParameter *parameter;
    const Target *target;  // of_target: whose; else NULL
    double prior_sd;
    const char *prior_source;    // as text
    double sd;                   // of the posterior
    int runs, shapes, sets;      // that could teach it: their times move with it
    CalibrationVerdict verdict;  // untaught coordinates stay at 0 with their prior sd
    const char *verdict_words;   // one sentence
} CalibrationCoordinate;

typedef struct CalibrationPosterior {
    CalibrationCoordinate at[CALIBRATION_MAX];
    int count;
    double mean[CALIBRATION_MAX];
    double covariance[CALIBRATION_MAX * CALIBRATION_MAX];  // row by row, count x count
    // sd of a shape's log step time around its prediction that no theta explains, one draw per shape, shared by its
    // repeats; and of repeats around their shape.
    double misfit_sd, noise_sd;
    int targets;
    const Target *target[CALIBRATION_TARGETS];
} CalibrationPosterior;

// ---------------------------------------------------------------------------------------------- fit

// What came of all runs of one plan.
typedef struct CalibrationShape {
    CalibrationCase what;
    const char *set;  // of its first run
    int runs;
    double measured_s;         // of the step: exp of the robust mean of log times
    double before_s, after_s;  // predicted at theta = 0, and at the mean
    double held_out_s;         // predicted by the fit without this shape; 0 = not asked, or too few shapes
    double weight;             // 1 = like the others; near 0 = the fit took it for an outlier
} CalibrationShape;

typedef struct CalibrationOutlier {
    const char *id;
    double ratio;  // measured over what its repeats, or the fit, say
    bool against_repeats;
} CalibrationOutlier;

typedef struct CalibrationScore {
    int shapes;
    double before_median, after_median, before_p90, after_p90;  // |predicted / measured - 1|
} CalibrationScore;

typedef struct CalibrationInput {
    const ClusterProfile *base;
    const CalibrationSample *samples;
    int count;
    bool hold_out;    // also leave-one-shape-out
    double noise_sd;  // of a log step time, at least, as the caller knows the machine; 0 = what repeats say
    int threads;      // 0 = as many as there are processors; changes no result
    const Progress *progress;
} CalibrationInput;

typedef struct Calibration {
    CalibrationPosterior posterior;
    CalibrationShape *shapes;
    int shape_count;
    int *shape_of;  // per sample of the input
    CalibrationOutlier *outliers;
    int outlier_count;
    CalibrationScore fit;       // of the shapes that taught
    CalibrationScore held_out;  // each shape predicted by the fit without it; shapes = 0: not asked, or too few
    int span_runs;              // runs whose spans were used in addition to their step times
} Calibration;

// Runs that were not used, and why: commands report them along with a calibration.
typedef struct CalibrationLeftOut {
    const char *reason;
    int runs;
} CalibrationLeftOut;

enum { CALIBRATION_LEAST_SHAPES = 2 };

// Everything lives in the arena. Independent of the order of the samples. USAGE, with a message, where there are too
// few samples.
Status calibrate_fit(const CalibrationInput *input, Arena *arena, Calibration *calibration, Error *error);

// ---------------------------------------------------------------------------------------------- of any plan

// log step time ~ log_step + gradient . (theta - mean) near the posterior's mean.
typedef struct CalibrationSensitivity {
    double log_step;
    double gradient[CALIBRATION_MAX];
} CalibrationSensitivity;

// scratch is reset.
Status calibrate_sensitivity(const CalibrationPosterior *posterior, const CalibrationCase *what, Arena *scratch,
                             CalibrationSensitivity *sensitivity, Error *error);

// sd of the log step time of a plan that was never run: the posterior's part and the misfit.
double calibration_log_sd(const CalibrationPosterior *posterior, const CalibrationSensitivity *sensitivity);

// ---------------------------------------------------------------------------------------------- calibrated profiles

// The base profile under the posterior's mean: every changed number graded fitted with the runs in its source, what the
// runners cost in `targets`, the covariance in `calibration`. date: YYYY-MM-DD.
Status calibration_child(const Calibration *calibration, const CalibrationInput *input, const char *date, Arena *arena,
                         ClusterProfile *child, Error *error);

// Do both profile names denote the same machine? A calibrated profile belongs to its parent's machine.
bool calibration_same_machine(const char *a, const char *b);

// What a calibrated profile (calibration not NULL) knows of itself: mean 0 at its own numbers. Wider, by one factor for
// all, where one set of runs taught any of it.
Status calibration_of_profile(const ClusterProfile *cluster, Arena *arena, CalibrationPosterior *posterior,
                              Error *error);

// 80 % interval of a run of this plan, predicted to take step_s. scratch is reset.
Status calibrated_interval(const CalibrationPosterior *posterior, const CalibrationCase *what, double step_s,
                           Arena *scratch, double *low_s, double *high_s, Error *error);

// The same for the first of a ranking, in place of the interval that the profile's one number gave. Nothing where the
// profile was not calibrated for who runs the request.
Status calibrated_intervals(const TuneRequest *request, Prediction *predictions, int count, Error *error);

bool calibration_same_runner(const Target *a, const Target *b);  // by name and version

// The machine and the runner under a theta, without provenance: what predictions are made from. Coordinates of other
// runners change nothing. Scaled curves live in the arena.
void calibration_apply(const CalibrationPosterior *posterior, const double *theta, const Target *runner, Arena *arena,
                       ClusterProfile *cluster, TargetRuntime *runtime);
