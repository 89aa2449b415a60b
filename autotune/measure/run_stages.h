// The stages of a pipeline that was run, compared with those of its simulation.

#pragma once

#include "autotune/measure/measured_run.h"

// Fills the stages of a run that ended well, and those of its record; the record has none without a pipeline.
Status run_stages_take(MeasuredRun *run, Error *error);
