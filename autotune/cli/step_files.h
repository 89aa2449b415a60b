// --trace, --spans and --memory-snapshot: one step as files for external viewers and spreadsheets.

#pragma once

#include "autotune/cli/cli.h"
#include "reports/trace.h"

// A recorded step by pipeline stage, or stage 0 alone where no more is known.
typedef struct MeasuredSteps {
    const TraceStep *of;
    int count;  // 0 = nothing was recorded
} MeasuredSteps;

// Writes the requested files for this plan (canonical and legal); nothing where no such option is given. The simulated
// step is that of the slowest stage, overlaid with what was recorded of that stage.
Status step_files_write(Cli *cli, const TuneRequest *request, const TrainPlan *plan, const MeasuredSteps *measured,
                        Error *error);
