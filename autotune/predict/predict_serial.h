// A step whose lanes run one after another on one thread, as our executor runs them on CPUs: nothing overlaps, so the
// step is the sum of its tasks.

#pragma once

#include "autotune/result.h"
#include "sim/cost/cost.h"
#include "sim/step/timeline.h"

// Are the request's lanes serialised on its cluster, if our executor runs them, unless they are asynchronous?
bool predict_is_serial(const TuneRequest *request, bool async_lanes);

// Step and terms of the prediction; totals: NULL, or a row per task of the program to fill.
void predict_serial(const CostModel *cost, const StepProgram *program, Arena *arena, Prediction *prediction,
                    TaskTotal *totals);
