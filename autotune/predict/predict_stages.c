// The simulated spans of every stage. Memory is that of the plan itself, whatever its picture leaves out.

#include "autotune/predict/predict_stages.h"

#include "autotune/predict/simulate.h"

enum { MOST_BLOCKS = 4000 };  // forward and backward of the micro-batches of all stages

// A schedule wants whole groups of as many as its stages, that of a file all of its micro-steps. Of several rounds as
// many are shown as there is room for.
static void show_fewer(int stages, TrainPlan *plan) {
    const int most = MOST_BLOCKS / (2 * stages * (plan->virtual_stages > 1 ? plan->virtual_stages : 1));
    const int groups = most / stages > 2 ? most / stages : 2, all = plan_round_steps(plan);
    const int shown = plan->pp_schedule != PP_FILE && all > groups * stages ? groups * stages : all;
    const int rounds = most / shown > 1 ? most / shown : 1;
    plan->pp_rounds = plan_rounds(plan) < rounds ? plan_rounds(plan) : rounds;
    plan->grad_accum = shown * plan_rounds(plan);
}

Status predict_stages(const TuneRequest *request, const TrainPlan *plan, Arena *arena, StageSteps *steps,
                      Error *error) {
    *steps = (StageSteps){0};
    const int stages = mesh_stages(&plan->mesh);
    if (stages < 2) {
        return STATUS_OK;
    }
    TrainPlan shown = *plan;
    show_fewer(stages, &shown);
    plan_canonical(&shown);
    steps->micro_batches = shown.grad_accum;
    StepPrograms whole, programs;
    TRY(step_lower_stages(&request->model, plan, request->target, arena, &whole, error));
    TRY(step_lower_stages(&request->model, &shown, request->target, arena, &programs, error));
    const CostModel cost = {.profile = &request->cluster, .target = request->target};
    const EngineOptions options = simulate_options(request, arena);
    EngineResult engine = {0};
    const StepProgram *busiest;
    TRY(simulate_stages(request, &programs, &cost, &options, arena, &busiest, &engine, error));
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
