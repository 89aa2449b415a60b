// StepRunner over exec_run. The first step warms up; the timeline is the step of median time among the rest.

#include "exec/launch/exec_runner.h"

enum { FEWEST_STEPS = 3 };

static Status runner_run(void *state, const StepProgram *program, const Progress *progress, Arena *arena,
                         Timeline *timeline, Error *error) {
    ExecRunner *runner = state;
    RunRequest request = {
        .model = program->model, .plan = program->plan, .target = program->target, .options = runner->options};
    request.options.spans = true;
    if (request.options.steps < FEWEST_STEPS) {
        request.options.steps = FEWEST_STEPS;
    }
    const ExecOptions options = {.worker_path = runner->worker_path, .progress = progress};
    TRY(exec_run(&request, &options, arena, &runner->last, error));
    *timeline = runner->last.timeline;
    return STATUS_OK;
}

StepRunner exec_runner(ExecRunner *state) {
    return (StepRunner){.name = "cpu/shm", .run = runner_run, .state = state};
}
