// One plan run for real beside its prediction, and stored however it ends: what run and validate share.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/run_record.h"
#include "autotune/store/store.h"
#include "exec/launch/launch.h"

enum { VALIDATE_STEPS = 10, VALIDATE_WARM_UP = 2 };  // of a run of validate, unless it is told otherwise

typedef struct MeasuredRun {
    Cli *cli;
    const TuneRequest *request;  // its target has the executor's runtime costs
    const Target *target;        // whose program it is
    int warm_up;                 // steps that the measured middle leaves out
    RunRequest run;
    StepProgram program;
    RunResult result;
    TaskTotal *predicted;  // by task of the program; all 0 until predicted
    RunRecord record;      // what is reported and stored; prediction first of its fields
} MeasuredRun;

// The options of the command line; spans are on.
void measured_run_options(const Cli *cli, RunOptions *options);

// Who starts the ranks, and where.
LaunchOptions measured_run_launch(const Cli *cli);

// Whatever target's program it is, our executor runs it: no Python, no caching allocator. Changes the request's target.
Status measured_run_by_executor(MeasuredRun *run, TuneRequest *request, Error *error);

// Refuses in words what the executor does not run, and lowers the rest. The run's options are `options`.
Status measured_run_prepare(MeasuredRun *run, const TrainPlan *plan, const RunOptions *options, Error *error);

// Hands over what earlier runs found out of chips.
Status measured_run_prices(MeasuredRun *run, Error *error);

// The prediction of the plan and of each of its tasks.
Status measured_run_predict(MeasuredRun *run, Error *error);

// Runs of one command line that differ in the plan.
typedef struct MeasuredSetup {
    Cli *cli;
    const TuneRequest *request;
    const Target *target;
    int steps, warm_up;
} MeasuredSetup;

// Some steps must be left to measure.
Status measured_run_check_warm_up(const MeasuredSetup *setup, Error *error);

// A run of a plan, prepared and predicted; in the call's arena.
Status measured_run_make(const MeasuredSetup *setup, const TrainPlan *plan, MeasuredRun **run, Error *error);

// Runs it. A run that fails is recorded as such, and the error says why.
Status measured_run_execute(MeasuredRun *run, Error *error);
