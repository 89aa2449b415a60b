// ndtune validate: the best shapes run for real, measured against predicted.

#include "autotune/cli/executor_options.h"
#include "autotune/cli/quote.h"
#include "autotune/cli/report_page.h"
#include "autotune/cli/request.h"
#include "autotune/measure/validate_runs.h"
#include "reports/json_objects.h"
#include "reports/validation.h"
#include "sim/base/json.h"

enum { TOP = 3, SPREAD = 2, REPEATS = 3 };

static const double COMMAND_TIMEOUT_S = 3600;

// {config} of the user's command.
static Status write_config(const Validation *validation, const TrainPlan *plan, const char *path, Error *error) {
    const TuneRequest *request = validation->request;
    json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:i}", "schema", "ndtune.config/1", "model",
                             json_model(&request->model), "mesh", json_mesh(&plan->mesh), "plan",
                             json_train_plan(request->target, plan), "steps", validation->steps);
    const Status status = root ? json_file_save(path, root, error)
                               : error_set(error, STATUS_INTERNAL, "the configuration: out of memory");
    json_decref(root);
    return status;
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

static Status run_and_print(Cli *cli, const Measuring *measuring, const TuneResult *result, Validation *validation,
                            Error *error) {
    const bool with = cli_given(cli, OPTION_WITH);
    UserCommand command = {.timeout_s = cli_number_or(cli, OPTION_TIMEOUT, COMMAND_TIMEOUT_S),
                           .configure = write_config};
    if (with) {
        command.words = cli->options.tail;
        command.word_count = cli->options.tail_count;
        command.line = quote_line(command.word_count + 1, cli->options.tail - 1, &cli->arena);
    }
    cli_warn_if_busy("steps will be slow and repeats will differ");
    if (measured_here(&measuring->like.launch, &measuring->options)) {
        cli_warn_if_bound(&validation->request->cluster);
    }
    const Status status = validate_with_runs(measuring, with ? &command : NULL, validation, error);
    cli_progress_clear(cli);
    TRY(status);
    TRY(cli_answer(cli, &answer_validation, validation, error));
    TRY(save_runs(cli, validation, error));
    const ReportPage page = {.result = result, .validation = validation, .executed = measuring->like.target};
    TRY(report_page_option(cli, &page, error));
    return validation->agreement.count > 0
               ? STATUS_OK
               : error_set(error, STATUS_ENVIRONMENT, "none of the %d shapes could be measured", validation->row_count);
}

Status cmd_validate(Cli *cli, Error *error) {
    TuneRequest request;
    const Target *executed;
    TRY(request_executed(cli, &request, &executed, error));
    TuneResult result;
    TRY(cli_search(cli, &request, &result, error));
    FAIL_WITH(result.entry_count == 0, cli_nothing_feasible(&result, error));
    const Measuring measuring = executor_measuring(cli, &request, executed);
    Validation validation = {.source = cli_given(cli, OPTION_WITH) ? "command" : "executor",
                             .steps = measuring.options.steps,
                             .warm_up = measuring.like.warm_up,
                             .repeats = cli_integer_or(cli, OPTION_REPEATS, REPEATS)};
    TRY(executor_check_warm_up(cli, &measuring, error));
    validate_choose(&result, cli_integer_or(cli, OPTION_TOP, TOP), cli_integer_or(cli, OPTION_SPREAD, SPREAD),
                    &cli->arena, &validation);
    return run_and_print(cli, &measuring, &result, &validation, error);
}
