// A run of the executor with its prediction: what `ndtune run` reports and the store keeps.

#pragma once

#include "autotune/result.h"
#include "sim/step/chip_price.h"
#include "sim/step/expert_load.h"
#include "sim/step/timeline.h"

// One template task: its time per step, measured (mean over ranks) and predicted.
typedef struct RunTask {
    const char *name, *kind, *lane;
    int64_t count;
    double measured_s, predicted_s;
} RunTask;

// A stage of a pipeline: the share of the step in which its compute lane waits for others (predict/stage_waits.h), and
// the bytes of the rank that needs most.
typedef struct RunStage {
    int stage, layers;
    double bubble_share, predicted_bubble_share;  // NAN where not measured
    int64_t peak_bytes, planned_peak_bytes;
} RunStage;

// Breakdown of a measured step, mean over ranks; sums to the step.
typedef struct StepParts {
    double compute_s, exposed_s[AXIS_COUNT], optimizer_s, overhead_s;
} StepParts;

// Who had the cores of this machine while something was measured on it. All 0: not known, or measured elsewhere.
typedef struct CoreUse {
    int cores, ranks;
    double others;  // share of the cores' time that other programs took, or the host of a virtual machine
} CoreUse;

typedef struct RunRecord {
    const TuneRequest *request;
    const char *source;    // "executor", or "command": the user's own framework
    const char *executor;  // its version; NULL = source is no executor
    const char *host, *device, *transport, *lanes;
    int64_t seed;
    int steps;    // done
    int warm_up;  // of them, that measured_step_s leaves out
    const double *losses, *grad_norms, *step_times_s;
    double measured_step_s;     // median after the warm-up; 0 = no step was done
    double at_s;                // when: seconds since 1970, to the second
    uint64_t measurement_hash;  // of what another run must be equal in to be a repeat of this one
    StepParts parts;            // of the recorded step; all 0 where there are no spans
    int64_t peak_bytes, planned_peak_bytes;
    const char *state;    // "ok" "diverged" "failed"
    const char *failure;  // why it failed; NULL otherwise
    CoreUse core_use;
    Prediction prediction;  // of the plan that ran
    const StepProgram *program;
    Timeline timeline;  // measured, of one step
    const RunTask *tasks;
    int task_count;
    const RunStage *stages;
    int stage_count;        // 0 without a pipeline
    const char *core_type;  // that the BLAS of rank 0's processor ran its kernels for; NULL = none, or not known
    const char *chip;       // of a device that has one of its own; NULL otherwise
    int64_t device_bytes;   // that the largest rank took of its memory
    const ChipPrice *prices;
    int price_count;
    ExpertLoad expert_load;
} RunRecord;

// What the store remembers, a line each, newest first.
typedef struct StoredRequest {
    int64_t id;
    const char *asked_at, *command, *model, *cluster, *target;
    int world, times_asked;
    const char *best_plan;  // of what was simulated; NULL = nothing was, or nothing fits
    double best_step_s;
} StoredRequest;

typedef struct StoredRun {
    int64_t id;
    const char *started_at, *source, *host, *model, *plan, *device, *transport, *state, *failure;
    const char *command, *cluster, *target;  // of one run in full; NULL in a list
    int steps;
    double measured_step_s;   // median after the first; 0 = no step was done
    double predicted_step_s;  // 0 = none
} StoredRun;

// A successful run, with what a calibration needs from it in addition to its plan.
typedef struct StoredMeasurement {
    StoredRun run;  // in full, but for failure
    const char *lanes;
    const char *executor;   // version; NULL = a command, or it is not known
    const char *core_type;  // as in RunRecord
} StoredMeasurement;

// What `ndtune calibrate` did: JSON texts are kept as they are.
typedef struct StoredCalibration {
    const char *command, *parent, *parent_hash;
    const char *profile, *profile_hash;  // name and hash of the child
    const char *profile_json;            // the child itself
    const char *runs_json;               // ["run 12", ...]
    int runs, plans, held_out_plans;
    double misfit_sd, noise_sd;
    double fit_before, fit_after, held_out_before, held_out_after;  // median |predicted / measured - 1|
} StoredCalibration;

// What `ndtune preflight` found.
typedef struct StoredFinding {
    bool bad;  // else worth a word
    const char *sentence;
} StoredFinding;

typedef struct StoredGroups {
    const char *axes, *collective;
    int ranks;  // of a group
    double payload_bytes;
    double measured_s, predicted_s;  // of the slowest rank; 0 = the profile says nothing
    double wrong_elements;
} StoredGroups;

typedef struct StoredPreflight {
    int64_t id;  // of the store, as the next
    const char *checked_at;
    const char *command, *cluster, *hosts, *device, *transport, *mesh;
    int world;
    bool ready;
    const StoredFinding *findings;
    const StoredGroups *groups;
    int finding_count, group_count;
} StoredPreflight;

typedef struct StoredList {
    StoredRequest *requests;
    int request_count;
    StoredRun *runs;
    int run_count;
    StoredPreflight *preflights;  // with the first finding that is bad, without groups
    int preflight_count;
} StoredList;
