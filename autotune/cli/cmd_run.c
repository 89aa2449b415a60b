// ndtune run: one shape through the executor, measured against predicted. The run is stored however it ends.

#include <stdio.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/executor_options.h"
#include "autotune/cli/request.h"
#include "autotune/cli/step_files.h"
#include "reports/reports.h"

static Status prepare(Cli *cli, TuneRequest *request, MeasuredRun *run, Error *error) {
    TRY(request_build(cli, &run_defaults, request, error));
    TrainPlan plan;
    RunOptions options;
    const Target *asked = request->target;
    TRY(measuring_takes(request, executor_lanes(cli), &cli->arena, &run->target, error));
    if (asked->repeats_keys && request->model.kv_heads < request->model.heads) {
        fprintf(stderr, "ndtune: %s@%s repeats keys and values for every query head, the executor's kernels do not\n",
                asked->name, asked->version);
    }
    request_plan(request, &request->mesh, &plan);
    executor_options(cli, &options);
    return measured_run_prepare(run, &plan, &options, error);
}

static void say_vocabulary(const MeasuredRun *run) {
    const int tp = run->run.plan.mesh.size[AXIS_TP];
    const char *note = target_vocab_note(run->target, &run->run.model, tp, run->arena);
    if (note) {
        fprintf(stderr, "ndtune: %s\n", note);
    }
}

// Of every stage; of none where no spans were kept or the stages are not known.
static MeasuredSteps recorded_steps(const MeasuredRun *run) {
    const RunResult *result = &run->result;
    const bool known = result->timeline.span_count > 0 && run->stages.count == result->stage_count;
    const int count = known ? result->stage_count : 0;
    TraceStep *steps = ARENA_ARRAY(run->arena, TraceStep, count);
    for (int stage = 0; stage < count; stage++) {
        steps[stage] = (TraceStep){&run->stages.of[stage], &result->stages[stage].timeline};
    }
    return (MeasuredSteps){steps, count};
}

static Status say_and_write(Cli *cli, MeasuredRun *run, Error *error) {
    const RunRecord *record = &run->record;
    TRY(cli_answer(cli, &answer_run, record, error));
    if (cli_format(cli) == FORMAT_TABLE && cli_given(cli, OPTION_EXPLAIN)) {
        table_run_story(record, stdout);
    }
    const MeasuredSteps measured = recorded_steps(run);
    return step_files_write(cli, run->request, &record->prediction.plan, &measured, error);
}

static Status run_and_save(Cli *cli, const Measuring *measuring, MeasuredRun *run, Error *error) {
    say_vocabulary(run);
    TRY(measured_run_predict(run, error));
    TRY(measuring_find_prices(measuring, run, error));
    const Status status = measuring_execute(measuring, run, NULL, error);
    cli_progress_clear(cli);
    Error store_error = {0};
    const Status saved = store_save_run(cli->store, &run->record, NULL, &store_error);
    TRY(status);
    TRY(say_and_write(cli, run, error));
    if (saved != STATUS_OK) {
        *error = store_error;
    }
    return saved;
}

Status cmd_run(Cli *cli, Error *error) {
    TuneRequest request;
    MeasuredRun run = {.arena = &cli->arena, .request = &request, .launch = executor_launch(cli), .warm_up = 1};
    TRY(prepare(cli, &request, &run, error));
    TRY(cli_open_store(cli, error));
    const Measuring measuring = executor_measuring(cli, &request, run.target);
    return run_and_save(cli, &measuring, &run, error);
}
