// Predictions of many rows, each with a model, cluster and target of its own.

#pragma once

#include "autotune/accuracy/run_case.h"
#include "sim/base/progress.h"

typedef struct RunPredictor RunPredictor;
RunPredictor *run_predictor_new(Effort effort, Arena *arena);
void run_predictor_free(RunPredictor *predictor);

// Fills run->prediction; memory_only leaves out the times. A plan that cannot be predicted is skipped with the reason.
void run_predict(RunPredictor *predictor, RunCase *run, bool memory_only);
