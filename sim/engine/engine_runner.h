// The engine behind the StepRunner seam.

#pragma once

#include "sim/engine/engine.h"
#include "sim/step/step_runner.h"

typedef struct EngineRunner {
    CostModel cost;
    EngineOptions options;  // keep_spans is set by the runner
} EngineRunner;

// A StepRunner whose state is *runner, which must outlive it.
StepRunner engine_runner(EngineRunner *runner);
