// One plan's step, stage by stage of its pipeline.

#pragma once

#include "autotune/result.h"
#include "sim/memory/memory.h"
#include "sim/step/timeline.h"

typedef struct StageStep {
    const StepProgram *program;
    Timeline timeline;  // of one rank of the stage, all on one clock
    MemoryBreakdown memory;
} StageStep;

typedef struct StageSteps {
    StageStep *of;
    int count;          // 0 where the plan has no pipeline
    int micro_batches;  // of the step that is shown: fewer than the plan's where these are too many for a picture
    double step_s;      // of that step
} StageSteps;

Status predict_stages(const TuneRequest *request, const TrainPlan *plan, Arena *arena, StageSteps *steps, Error *error);
