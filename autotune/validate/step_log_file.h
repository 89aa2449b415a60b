// The step time that the log of a framework's run tells.

#pragma once

#include "sim/base/error.h"
#include "sim/plan/plan.h"

enum { STEP_LOG_WARM_UP = 2 };  // unless it is told otherwise

// The median after the warm-up of a run of the plan. `name`: what errors begin with, "--log run.txt".
Status step_log_file_time(const char *name, const char *path, const TrainPlan *plan, int warm_up, Arena *arena,
                          double *step_s, Error *error);
