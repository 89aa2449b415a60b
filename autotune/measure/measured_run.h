// One plan, predicted and actually run.

#pragma once

#include "autotune/result.h"
#include "autotune/run_record.h"
#include "exec/launch/launch.h"
#include "sim/base/progress.h"
#include "sim/step/stages.h"

typedef struct MeasuredRun {
    Arena *arena;
    const TuneRequest *request;  // its target has the executor's runtime costs
    const Target *target;        // whose program it is
    LaunchOptions launch;        // who starts the ranks, and where
    int warm_up;                 // steps that the measured middle leaves out
    RunRequest run;
    StepProgram program;
    RunResult result;
    StepPrograms stages;   // of a run that ended well: each of its stages' programs
    TaskTotal *predicted;  // by task of the program; all 0 until predicted
    RunRecord record;      // what is reported and stored; prediction first of its fields
} MeasuredRun;

// The name of this machine, as runs are stored with it.
const char *measured_host(Arena *arena);

// Are all ranks on the processors of this machine?
bool measured_here(const LaunchOptions *launch, const RunOptions *options);

// Rejects, with a reason, what the executor cannot run, and lowers the rest. The run's options are `options`.
Status measured_run_prepare(MeasuredRun *run, const TrainPlan *plan, const RunOptions *options, Error *error);

// The prediction of the plan and of each of its tasks.
Status measured_run_predict(MeasuredRun *run, Error *error);

// A run of a plan, prepared and predicted, for the same request and on the same hosts as `like`; in its arena.
Status measured_run_make(const MeasuredRun *like, const TrainPlan *plan, const RunOptions *options, MeasuredRun **run,
                         Error *error);

// Runs it. A run that fails is recorded as such, and the error says why.
Status measured_run_execute(MeasuredRun *run, const Progress *progress, Error *error);
