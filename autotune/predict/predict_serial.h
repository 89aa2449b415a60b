// A step whose lanes run one after another on one thread, as our executor runs them on CPUs: nothing overlaps, so a
// stage's step is the sum of its tasks and of what it waits for other stages.

#pragma once

#include "autotune/result.h"
#include "sim/engine/engine.h"

// Are the request's lanes serialised on its cluster, if our executor runs them, unless they are asynchronous?
bool predict_is_serial(const TuneRequest *request, bool async_lanes);

// As engine_run_stages (engine.h), of this many programs: *busiest is the stage that the result is of. A single one
// waits for no other.
Status predict_serial(const StepProgram *programs, int count, const CostModel *cost, bool keep_spans, Arena *arena,
                      const StepProgram **busiest, EngineResult *result, Error *error);
