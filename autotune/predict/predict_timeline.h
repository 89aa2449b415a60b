// One plan's step as the spans that its prediction is made of.

#pragma once

#include "autotune/result.h"
#include "sim/step/timeline.h"

// Of which step live bytes are shown over time: of at most two micro-batches, later ones repeat the second.
TrainPlan memory_step_plan(const TrainPlan *plan);

// Lowers the plan (canonical and legal) and times every span of one rank, *rank: the slowest that the engine found;
// *program is that of its stage.
Status predict_timeline(const TuneRequest *request, const TrainPlan *plan, Arena *arena, StepProgram *program,
                        Timeline *timeline, int *rank, Error *error);
