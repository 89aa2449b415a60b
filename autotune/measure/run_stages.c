// Simulates every stage as the run itself was done, and compares the two.

#include "autotune/measure/run_stages.h"

#include "autotune/predict/simulate.h"
#include "autotune/predict/stage_waits.h"

static Status simulate(const MeasuredRun *run, EngineResult *engine, Error *error) {
    const CostModel cost = {.profile = &run->request->cluster, .target = run->request->target};
    EngineOptions options = simulate_options(run->request, run->arena);
    options.unroll = true;
    const StepProgram *busiest;
    return simulate_stages(run->request, &run->stages, &cost, &options, run->arena, &busiest, engine, error);
}

Status run_stages_take(MeasuredRun *run, Error *error) {
    StepPrograms *programs = &run->stages;
    TRY(step_lower_stages(&run->run.model, &run->run.plan, run->target, run->arena, programs, error));
    if (programs->count < 2) {
        return STATUS_OK;
    }
    EngineResult engine = {0};
    TRY(simulate(run, &engine, error));
    RunStage *stages = ARENA_ARRAY(run->arena, RunStage, programs->count);
    for (int i = 0; i < programs->count; i++) {
        const StageResult *measured = &run->result.stages[i];
        const StepProgram *program = &programs->of[i];
        stages[i] = (RunStage){.stage = i,
                               .layers = program->layers,
                               .bubble_share = stage_bubble_share(program, &measured->timeline, run->arena),
                               .predicted_bubble_share = stage_bubble_share(program, &engine.stages[i], run->arena),
                               .peak_bytes = measured->peak_bytes,
                               .planned_peak_bytes = measured->planned_peak_bytes};
    }
    run->record.stages = stages;
    run->record.stage_count = programs->count;
    return STATUS_OK;
}
