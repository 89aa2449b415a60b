// Adapts engine_run to StepRunner: one steady step, with its spans.

#include "sim/engine/engine_runner.h"

static Status run_engine(void *state, const StepProgram *program, const Progress *progress, Arena *arena,
                         Timeline *timeline, Error *error) {
    const EngineRunner *runner = state;
    EngineOptions options = runner->options;
    options.keep_spans = true;
    EngineResult result;
    if (!progress_update(progress, "simulating", 0, 1)) {
        return error_set(error, STATUS_ENVIRONMENT, "cancelled");
    }
    TRY(engine_run(program, &runner->cost, &options, arena, &result, error));
    *timeline = result.timeline;
    progress_update(progress, "simulating", 1, 1);
    return STATUS_OK;
}

StepRunner engine_runner(EngineRunner *runner) {
    return (StepRunner){.name = "engine", .run = run_engine, .state = runner};
}
