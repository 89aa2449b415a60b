// --trace, --spans and --memory-snapshot: one step as files for others' viewers and for spreadsheets.

#pragma once

#include "autotune/cli/cli.h"
#include "reports/trace.h"

// Writes what was asked for of this plan (canonical and legal); nothing where no such option is given. measured: the
// recorded step, laid over the simulated one; NULL = none.
Status step_files_write(Cli *cli, const TuneRequest *request, const TrainPlan *plan, const TraceStep *measured,
                        Error *error);
