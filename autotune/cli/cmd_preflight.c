// ndtune preflight: is everything in place that a shape needs? Every rank, group and machine, in a few seconds.
// Findings are stored. Exit code 0: nothing that would stop the run; 3: a problem, with the reason.

#include "autotune/cli/cli.h"
#include "autotune/cli/executor_options.h"
#include "autotune/cli/request.h"
#include "autotune/measure/preflight.h"
#include "reports/format.h"
#include "reports/preflight.h"

static const double TIMEOUT_S = 20;

static Status prepare(Cli *cli, TuneRequest *request, MeasuredRun *run, Error *error) {
    TRY(request_build(cli, &preflight_defaults, request, error));
    TrainPlan plan;
    RunOptions options;
    FAIL_WITH(request->world < 2, cli_refuse(cli, OPTION_MESH, error, "one rank has nobody to be checked with"));
    TRY(measuring_takes(request, executor_lanes(cli), &cli->arena, &run->target, error));
    request_plan(request, &request->mesh, &plan);
    executor_options(cli, &options);
    options.timeout_s = cli_number_or(cli, OPTION_TIMEOUT, TIMEOUT_S);
    return measured_run_prepare(run, &plan, &options, error);
}

Status cmd_preflight(Cli *cli, Error *error) {
    TuneRequest request;
    Preflight preflight = {.run = {.arena = &cli->arena, .request = &request, .launch = executor_launch(cli)}};
    TRY(prepare(cli, &request, &preflight.run, error));
    const Progress progress = cli_progress(cli);
    const Status status = preflight_run(&preflight, &progress, error);
    cli_progress_clear(cli);
    TRY(status);
    preflight.stored.mesh = format_layout(&preflight.result.mesh, FORMAT_BUFFER);
    TRY(cli_answer(cli, &answer_preflight, &preflight, error));
    TRY(cli_open_store(cli, error));
    TRY(store_save_preflight(cli->store, &preflight.stored, error));
    return preflight_verdict(&preflight, error);
}
