// The simulated spans. Steps of many instances keep the engine's sample of them (first and last iterations).

#include "autotune/predict/predict_timeline.h"

#include "autotune/predict/simulate.h"

enum { MOST_UNROLLED = 2000000 };   // instances: 80 MB of spans
enum { MEMORY_MICRO_BATCHES = 2 };  // later ones repeat the second

TrainPlan memory_step_plan(const TrainPlan *plan) {
    TrainPlan fewer = *plan;
    const int steps = plan_round_steps(plan);
    const bool whole = plan->pp_schedule == PP_FILE || steps < MEMORY_MICRO_BATCHES;
    fewer.pp_rounds = plan_rounds(plan) > 1 ? 2 : 1;
    fewer.grad_accum = (whole ? steps : MEMORY_MICRO_BATCHES) * plan_rounds(&fewer);
    return fewer;
}

// One rank stands for all that do the same, wherever their stages are: the one of this stage is meant.
static int rank_in_stage(const StepProgram *program, int rank) {
    const Mesh *mesh = &program->plan.mesh;
    const MeshCoordinates at = mesh_coordinates(mesh, rank);
    return mesh_group_member(mesh, AXES_STAGE, &at, program->stage);
}

Status predict_timeline(const TuneRequest *request, const TrainPlan *plan, Arena *arena, StepProgram *program,
                        Timeline *timeline, int *rank, Error *error) {
    const CostModel cost = {.profile = &request->cluster, .target = request->target};
    StepPrograms programs;
    TRY(step_lower_stages(&request->model, plan, request->target, arena, &programs, error));
    *rank = 0;
    *program = *step_program_of(&programs, &plan->mesh, *rank);
    EngineOptions options = simulate_options(request, arena);
    options.unroll = step_instance_count(program) <= MOST_UNROLLED;
    EngineResult engine = {0};
    const StepProgram *slowest;
    TRY(simulate_stages(request, &programs, &cost, &options, arena, &slowest, &engine, error));
    *program = *slowest;
    *timeline = engine.timeline;
    *rank = rank_in_stage(program, engine.representative);
    for (int64_t i = 0; i < timeline->span_count; i++) {
        timeline->spans[i].rank = rank_in_stage(program, timeline->spans[i].rank);
    }
    return STATUS_OK;
}
