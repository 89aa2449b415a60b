// --trace, --spans and --memory-snapshot: one step as files for others' viewers and for spreadsheets.

#pragma once

#include "autotune/cli/cli.h"
#include "reports/trace.h"

// A recorded step by stage of the pipeline, or stage 0 alone where no more is known.
typedef struct MeasuredSteps {
    const TraceStep *of;
    int count;  // 0 = nothing was recorded
} MeasuredSteps;

// Writes what was asked for of this plan (canonical and legal); nothing where no such option is given. The simulated
// step is that of the slowest stage, and what was recorded of that stage is laid over it.
Status step_files_write(Cli *cli, const TuneRequest *request, const TrainPlan *plan, const MeasuredSteps *measured,
                        Error *error);
