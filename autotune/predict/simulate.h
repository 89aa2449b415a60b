// The simulation that a request's predictions are made of: lanes one after another (predict_serial.h) or all at once
// (sim/engine).

#pragma once

#include "autotune/result.h"
#include "sim/engine/engine.h"

// Spans are kept; ranks are as slow as the request says.
EngineOptions simulate_options(const TuneRequest *request, Arena *arena);

// As engine_run_stages. A single stage's program waits for no other.
Status simulate_stages(const TuneRequest *request, const StepPrograms *programs, const CostModel *cost,
                       const EngineOptions *options, Arena *arena, const StepProgram **busiest, EngineResult *result,
                       Error *error);
