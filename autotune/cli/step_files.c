// Simulates the step again with spans recorded, and writes it.

#include "autotune/cli/step_files.h"

#include "autotune/predict/predict_timeline.h"

static Status span_files(Cli *cli, const TuneRequest *request, const TrainPlan *plan, const MeasuredSteps *measured,
                         Arena *arena, Error *error) {
    StepProgram program;
    Timeline simulated;
    int rank = 0;
    TRY(predict_timeline(request, plan, arena, &program, &simulated, &rank, error));
    TraceFile file = {.request = request, .command = cli->line, .step_count = 1, .arena = arena};
    file.steps[0] = (TraceStep){&program, &simulated};
    if (measured->count > 0) {
        file.steps[file.step_count++] = measured->of[program.stage < measured->count ? program.stage : 0];
    }
    TRY(cli_write_option(cli, OPTION_TRACE, trace_chrome, &file, error));
    return cli_write_option(cli, OPTION_SPANS, csv_spans, &file, error);
}

static Status snapshot_file(Cli *cli, const TuneRequest *request, const TrainPlan *whole, Arena *arena, Error *error) {
    StepProgram program;
    Timeline simulated;
    const TrainPlan plan = memory_step_plan(whole);
    int rank = 0;
    TRY(predict_timeline(request, &plan, arena, &program, &simulated, &rank, error));
    const MemorySnapshot snapshot = {.program = &program, .timeline = &simulated, .rank = rank, .arena = arena};
    return cli_write_option(cli, OPTION_MEMORY_SNAPSHOT, memory_snapshot, &snapshot, error);
}

Status step_files_write(Cli *cli, const TuneRequest *request, const TrainPlan *plan, const MeasuredSteps *measured,
                        Error *error) {
    Arena arena = {0};
    Status status = STATUS_OK;
    if (cli_given(cli, OPTION_TRACE) || cli_given(cli, OPTION_SPANS)) {
        status = span_files(cli, request, plan, measured, &arena, error);
    }
    if (status == STATUS_OK && cli_given(cli, OPTION_MEMORY_SNAPSHOT)) {
        arena_reset(&arena);
        status = snapshot_file(cli, request, plan, &arena, error);
    }
    arena_free(&arena);
    return status;
}
