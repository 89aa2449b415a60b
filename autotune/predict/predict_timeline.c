// The engine's spans, or, where lanes run one after another, the tasks' own times laid end to end. Steps of many
// instances keep the engine's sample of them (first and last iterations).

#include "autotune/predict/predict_timeline.h"

#include "autotune/predict/handicap.h"
#include "sim/engine/engine.h"

enum { MOST_UNROLLED = 2000000 };   // instances: 80 MB of spans
enum { MEMORY_MICRO_BATCHES = 2 };  // later ones repeat the second

static void lay_serial(const CostModel *cost, const StepProgram *program, Arena *arena, Timeline *timeline) {
    const TaskCost *costs = cost_program(cost, program, arena);
    *timeline = (Timeline){.origin = TIMELINE_SIMULATED, .complete = true};
    timeline->spans = ARENA_ARRAY(arena, Span, step_instance_count(program));
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const double start_s = timeline->step_s;
        timeline->step_s += costs[instance.task].seconds;
        timeline->spans[timeline->span_count++] = (Span){.task = instance.task,
                                                         .layer = instance.layer,
                                                         .micro_step = instance.micro_step,
                                                         .start_s = start_s,
                                                         .end_s = timeline->step_s};
    }
    timeline->step_s += cost->target->runtime.step_fixed_s;
}

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
    if (request->serial_lanes) {
        lay_serial(&cost, program, arena, timeline);
        return STATUS_OK;
    }
    const EngineOptions options = {.keep_spans = true,
                                   .unroll = step_instance_count(program) <= MOST_UNROLLED,
                                   .rank_slowdown = handicap_factors(request, false, arena),
                                   .link_slowdown = handicap_factors(request, true, arena)};
    EngineResult engine = {0};
    const StepProgram *slowest;
    TRY(engine_run_stages(&programs, &cost, &options, arena, &slowest, &engine, error));
    *program = *slowest;
    *timeline = engine.timeline;
    *rank = rank_in_stage(program, engine.representative);
    for (int64_t i = 0; i < timeline->span_count; i++) {
        timeline->spans[i].rank = rank_in_stage(program, timeline->spans[i].rank);
    }
    return STATUS_OK;
}
