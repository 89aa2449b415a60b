// Predictions of many rows, each with its own model, cluster and target.

#pragma once

#include "autotune/accuracy/run_case.h"

typedef struct RunPredictor RunPredictor;
RunPredictor *run_predictor_new(Effort effort, Arena *arena);
void run_predictor_free(RunPredictor *predictor);

// Fills run->prediction; memory_only omits the times. A plan that cannot be predicted is skipped with the reason.
void run_predict(RunPredictor *predictor, RunCase *run, bool memory_only);
