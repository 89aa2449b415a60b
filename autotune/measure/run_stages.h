// The stages of a pipeline that was run, beside those of its simulation.

#pragma once

#include "autotune/measure/measured_run.h"
#include "sim/step/stages.h"

// Fills stages of the record of a run that ended well; none without a pipeline. programs: of its plan.
Status run_stages_take(MeasuredRun *run, const StepPrograms *programs, Error *error);
