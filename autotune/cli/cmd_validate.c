// ndtune validate: the best shapes run for real, measured against predicted. Runs are stored as they end, so an
// interrupted call resumes where it stopped.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/executor_options.h"
#include "autotune/cli/report_page.h"
#include "autotune/cli/request.h"
#include "autotune/cli/validate_with.h"
#include "autotune/measure/core_clock.h"
#include "reports/validation.h"

enum { TOP = 3, SPREAD = 2, REPEATS = 3 };

typedef struct Executor {
    Cli *cli;
    MeasuredRun like;  // every run, but for its plan
    RunOptions options;
    Validation *validation;
    MeasuredRun **of_row;  // NULL until prepared
} Executor;

// The row's plan, checked, lowered and predicted task by task, once.
static Status row_prepare(Executor *executor, const ValidateRow *row, MeasuredRun **run, Error *error) {
    MeasuredRun **own = &executor->of_row[row - executor->validation->rows];
    if (*own) {
        *run = *own;
        return STATUS_OK;
    }
    MeasuredRun *made;
    TRY(measured_run_make(&executor->like, &row->prediction->plan, &executor->options, &made, error));
    *own = *run = made;
    return STATUS_OK;
}

// Known runs carry the predictions of the profile at that time; today's predictions are shown next to them.
static void predict_known(const MeasuredRun *run, RunRecord *known) {
    RunTask *tasks = (RunTask *)known->tasks;
    int at = 0;
    for (int32_t i = 0; i < run->program.task_count && at < known->task_count; i++) {
        if (run->predicted[i].count > 0) {
            tasks[at++].predicted_s = run->predicted[i].seconds;
        }
    }
}

static int recall(void *state, const ValidateRow *row, RunRecord *runs, int most) {
    Executor *executor = state;
    MeasuredRun *run;
    int count = 0;
    if (cli_given(executor->cli, OPTION_NO_CACHE) || row_prepare(executor, row, &run, NULL) != STATUS_OK ||
        store_measurements(executor->cli->store, run->record.measurement_hash, most, &executor->cli->arena, runs,
                           &count, NULL) != STATUS_OK) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        predict_known(run, &runs[i]);
    }
    return count;
}

static void say_progress(const Executor *executor, const ValidateRow *row) {
    char mesh[MESH_TEXT_BYTES];
    cli_draw(executor->cli, "shape %d of %d, run %d of %d: %s ", (int)(row - executor->validation->rows) + 1,
             executor->validation->row_count, row->run_count + 1, executor->validation->repeats,
             mesh_text(&row->prediction->plan.mesh, mesh));
}

static Status run_row(void *state, const ValidateRow *row, RunRecord *record, Error *error) {
    Executor *executor = state;
    MeasuredRun *run;
    say_progress(executor, row);
    Status status = row_prepare(executor, row, &run, error);
    if (status != STATUS_OK) {
        *record = (RunRecord){.state = status == STATUS_INFEASIBLE ? "refused" : "failed",
                              .failure = arena_text(&executor->cli->arena, error->message)};
        return status;
    }
    TRY(executor_prices(executor->cli, run, error));
    status = executor_execute(executor->cli, run, error);
    *record = run->record;
    Error store_error = {0};
    if (*executor->cli->interrupted) {
        return status;  // the user's doing, not the shape's
    }
    if (store_save_run(executor->cli->store, record, NULL, &store_error) != STATUS_OK) {
        *error = store_error;
        return STATUS_INTERNAL;
    }
    return status == STATUS_INTERNAL ? STATUS_ENVIRONMENT : status;  // a failed run is that row's reason
}

static bool cancelled(void *state) {
    const Executor *executor = state;
    return *executor->cli->interrupted;
}

// The runs as a run file, for accuracy and calibration.
static Status save_runs(Cli *cli, const Validation *validation, Error *error) {
    const char *overrides = "";
    for (int i = 0; i < cli->options.set_count; i++) {
        overrides = arena_format(&cli->arena, "%s%s%s", overrides, i > 0 ? ";" : "", cli->options.sets[i]);
    }
    const bool file = cli_given(cli, OPTION_CLUSTER);
    const ValidationRuns runs = {.validation = validation,
                                 .cluster = file ? cli_value(cli, OPTION_CLUSTER)->text : validate_defaults.cluster,
                                 .overrides = overrides};
    return cli_write_option(cli, OPTION_CSV, csv_validation_runs, &runs, error);
}

static Status run_and_print(Executor *executor, const TuneResult *result, Validation *validation, Error *error) {
    Cli *cli = executor->cli;
    executor->validation = validation;
    executor->of_row = ARENA_ARRAY(&cli->arena, MeasuredRun *, validation->row_count + 1);
    cli_warn_if_busy("steps will be slow and repeats will differ");
    const ValidateMeans means = {.recall = recall, .run = run_row, .cancelled = cancelled, .state = executor};
    const bool here = !cli_given(cli, OPTION_HOSTS) && !cli_given(cli, OPTION_HOSTFILE) && !cli_on_gpu(cli);
    if (here) {
        cli_warn_if_bound(&validation->request->cluster);
    }
    const CoreClock begin = core_clock_now();
    TRY(cli_given(cli, OPTION_WITH) ? validate_with(cli, validation, error)
                                    : validate_run(validation, &means, &cli->arena, error));
    cli_progress_clear(cli);
    validate_summarize(validation, &cli->arena);
    if (here) {
        validation->core_use = core_clock_use(&begin, validation->request->world);
    }
    TRY(cli_answer(cli, &answer_validation, validation, error));
    TRY(save_runs(cli, validation, error));
    const ReportPage page = {.result = result, .validation = validation, .executed = executor->like.target};
    TRY(report_page_option(cli, &page, error));
    return validation->agreement.count > 0
               ? STATUS_OK
               : error_set(error, STATUS_ENVIRONMENT, "none of the %d shapes could be measured", validation->row_count);
}

Status cmd_validate(Cli *cli, Error *error) {
    TuneRequest request;
    Executor executor = {.cli = cli,
                         .like = {.arena = &cli->arena, .request = &request, .launch = executor_launch(cli)}};
    executor_options_repeated(cli, &executor.options, &executor.like.warm_up);
    TRY(cli_open_store(cli, error));
    TRY(validate_with_check(cli, error));
    TRY(last_request_take(cli, error));
    TRY(request_build(cli, &validate_defaults, &request, error));
    if (cli->options.list_count > 1) {
        return cli_refuse(cli, OPTION_WORLD, error, "validate runs one world, not a list of them");
    }
    if (!cli_given(cli, OPTION_WITH)) {
        TRY(executor_takes(cli, &request, &executor.like.target, error));
    }
    TuneResult result;
    TRY(cli_search(cli, &request, &result, error));
    if (result.entry_count == 0) {
        return cli_nothing_feasible(&result, error);
    }
    Validation validation = {.source = cli_given(cli, OPTION_WITH) ? "command" : "executor",
                             .steps = executor.options.steps,
                             .warm_up = executor.like.warm_up,
                             .repeats = cli_integer_or(cli, OPTION_REPEATS, REPEATS)};
    TRY(executor_check_warm_up(cli, validation.steps, validation.warm_up, error));
    validate_choose(&result, cli_integer_or(cli, OPTION_TOP, TOP), cli_integer_or(cli, OPTION_SPREAD, SPREAD),
                    &cli->arena, &validation);
    return run_and_print(&executor, &result, &validation, error);
}
