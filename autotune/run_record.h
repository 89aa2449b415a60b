// A run of the executor beside its prediction: what `ndtune run` reports and the store keeps.

#pragma once

#include "autotune/result.h"
#include "sim/step/timeline.h"

// One template task: its time per step, measured (mean over ranks) and predicted.
typedef struct RunTask {
    const char *name, *kind, *lane;
    int64_t count;
    double measured_s, predicted_s;
} RunTask;

typedef struct RunRecord {
    const TuneRequest *request;
    const char *host, *device, *transport, *lanes;
    int64_t seed;
    int steps;  // done
    const double *losses, *grad_norms, *step_times_s;
    int64_t peak_bytes, planned_peak_bytes;
    const char *state;      // "ok" "diverged" "failed"
    const char *failure;    // why it failed; NULL otherwise
    Prediction prediction;  // of the plan that ran
    const StepProgram *program;
    Timeline timeline;  // measured, of one step
    const RunTask *tasks;
    int task_count;
} RunRecord;
