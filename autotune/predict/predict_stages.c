// The engine's spans of every stage. Memory is that of the plan itself, whatever its picture leaves out.

#include "autotune/predict/predict_stages.h"

#include "autotune/predict/handicap.h"
#include "sim/engine/engine.h"

enum { MOST_BLOCKS = 4000 };  // forward and backward of the micro-batches of all stages

// A schedule wants whole rounds of its stages, that of a file all of its micro-steps.
static int shown_micro_batches(const TrainPlan *plan, int stages) {
    const int most = MOST_BLOCKS / (2 * stages * (plan->virtual_stages > 1 ? plan->virtual_stages : 1));
    const int rounds = most / stages > 2 ? most / stages : 2;
    return plan->pp_schedule != PP_FILE && plan->grad_accum > rounds * stages ? rounds * stages : plan->grad_accum;
}

Status predict_stages(const TuneRequest *request, const TrainPlan *plan, Arena *arena, StageSteps *steps,
                      Error *error) {
    *steps = (StageSteps){0};
    const int stages = mesh_stages(&plan->mesh);
    if (stages < 2 || request->serial_lanes) {
        return STATUS_OK;
    }
    TrainPlan shown = *plan;
    shown.grad_accum = steps->micro_batches = shown_micro_batches(plan, stages);
    StepPrograms whole, programs;
    TRY(step_lower_stages(&request->model, plan, request->target, arena, &whole, error));
    TRY(step_lower_stages(&request->model, &shown, request->target, arena, &programs, error));
    const CostModel cost = {.profile = &request->cluster, .target = request->target};
    const EngineOptions options = {.keep_spans = true,
                                   .rank_slowdown = handicap_factors(request, false, arena),
                                   .link_slowdown = handicap_factors(request, true, arena)};
    EngineResult engine = {0};
    const StepProgram *busiest;
    TRY(engine_run_stages(&programs, &cost, &options, arena, &busiest, &engine, error));
    StageStep *of = ARENA_ARRAY(arena, StageStep, stages);
    for (int stage = 0; stage < stages; stage++) {
        of[stage] = (StageStep){.program = &programs.of[stage], .timeline = engine.stages[stage]};
        TRY(memory_breakdown(&whole.of[stage], arena, &of[stage].memory, error));
    }
    steps->of = of;
    steps->count = stages;
    steps->step_s = engine.step_s;
    return STATUS_OK;
}
