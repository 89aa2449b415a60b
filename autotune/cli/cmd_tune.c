// ndtune tune: simulate, run the most informative shape about which one wins, calibrate, repeat.

#include <stdio.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/executor_options.h"
#include "autotune/cli/report_page.h"
#include "autotune/cli/request.h"
#include "autotune/cli/tune_recall.h"
#include "autotune/measure/tune_session.h"
#include "reports/tuning.h"

enum { SEED = 1, RUNS_PER_SHAPE = 3 };  // as many as validate's repeats

static const double PROBABILITY = 0.95, WITHIN_PERCENT = 1;

static void report(void *context, const Tuning *tuning, const TuneStep *step) {
    Cli *cli = context;
    cli_progress_clear(cli);
    if (cli_format(cli) == FORMAT_TABLE) {
        table_tuning_step(tuning, step, stdout);
    }
}

// What was learnt from the runs, as a profile for the next plan.
static Status save_profile(Cli *cli, const TuneSession *session, Error *error) {
    if (!cli_given(cli, OPTION_OUT)) {
        return STATUS_OK;
    }
    const char *path = cli_value(cli, OPTION_OUT)->text, *text;
    ClusterProfile profile;
    TRY(calibrated_model_profile(&session->model, cli_today(cli), &cli->arena, &profile, error));
    TRY(cli_write_profile(cli, path, &profile, &text, error));
    fprintf(stderr, "calibrated profile: %s\n", path);
    return STATUS_OK;
}

// Why, in the words of the last run, or of the first shape that the executor refuses.
static Status none_measured(const Tuning *tuning, Error *error) {
    const char *why = tune_last(tuning)->run.failure;
    for (int i = 0; i < tuning->shape_count && !why; i++) {
        why = tuning->shapes[i].out;
    }
    error_set(error, STATUS_ENVIRONMENT, "no run ended well: %s", why ? why : "none was made");
    return tuning->step_count > 0
               ? error_hint(error, "shapes that failed stay out of this session; --no-cache begins a new one")
               : STATUS_ENVIRONMENT;
}

static Status run_and_print(Cli *cli, TuneSession *session, const TuneResult *result, Tuning *tuning, Error *error) {
    cli_warn_if_busy("steps will be slow and repeats will differ");
    if (cli_format(cli) == FORMAT_TABLE) {
        table_tuning_begin(tuning, stdout);
    }
    const Status ended = tune_session_run(session, tuning, error);
    cli_progress_clear(cli);
    if (ended != STATUS_OK && *cli->interrupted && cli_given(cli, OPTION_NO_CACHE)) {
        error_hint(error, "--no-cache begins anew: leave it out to go on");
    }
    TRY(ended);
    TRY(cli_answer(cli, &answer_tuning, tuning, error));
    TRY(save_profile(cli, session, error));
    const ReportPage page = {.result = result, .tuning = tuning, .executed = session->measuring->like.target};
    TRY(report_page_option(cli, &page, error));
    return tuning->step_count > tuning->failures ? STATUS_OK : none_measured(tuning, error);
}

static TuneOptions options_of(const Cli *cli, const TuneResult *result) {
    const int top = cli_integer_or(cli, OPTION_TOP, 0);
    const int shapes = top > 0 && top < result->entry_count ? top : result->entry_count;
    return (TuneOptions){.top = top,
                         .probability = cli_number_or(cli, OPTION_PROBABILITY, PROBABILITY),
                         .tolerance = cli_number_or(cli, OPTION_WITHIN, WITHIN_PERCENT) / 100,
                         .max_runs = cli_integer_or(cli, OPTION_MAX_RUNS, RUNS_PER_SHAPE * shapes),
                         .max_time_s = cli_number_or(cli, OPTION_MAX_TIME, 0),
                         .seed = cli_given(cli, OPTION_SEED) ? (uint64_t)cli_value(cli, OPTION_SEED)->integer : SEED};
}

static Status check_options(Cli *cli, const Measuring *measuring, Error *error) {
    FAIL_WITH(measuring->like.request->objective == OBJECTIVE_MEMORY,
              cli_refuse(cli, OPTION_OBJECTIVE, error,
                         "tune finds the fastest shape; memory needs no runs: ndtune plan --objective memory"));
    const double wanted = cli_number_or(cli, OPTION_PROBABILITY, PROBABILITY);
    if (cli_integer_or(cli, OPTION_MAX_RUNS, 1) == 0 && cli_number_or(cli, OPTION_MAX_TIME, 0) <= 0 &&
        wanted > 1 - 1.0 / OUTLOOK_DRAWS) {
        cli_refuse(cli, OPTION_MAX_RUNS, error, "a session without bounds never reaches probability %g", wanted);
        return error_hint(error, "give --max-runs or --max-time, or less of --probability");
    }
    return executor_check_warm_up(cli, measuring, error);
}

Status cmd_tune(Cli *cli, Error *error) {
    TuneRequest request;
    const Target *executed;
    TRY(request_executed(cli, &request, &executed, error));
    const Measuring measuring = executor_measuring(cli, &request, executed);
    TRY(check_options(cli, &measuring, error));
    TRY(cli_check_output(cli, OPTION_OUT, error));
    TRY(cli_check_output(cli, OPTION_HTML, error));
    TuneResult result;
    TRY(cli_search(cli, &request, &result, error));
    FAIL_WITH(result.entry_count == 0, cli_nothing_feasible(&result, error));
    Tuning tuning;
    TuneSession session = {.measuring = &measuring, .report = report};
    const TuneOptions options = options_of(cli, &result);
    TRY(tune_session_begin(&session, &result, &options, &tuning, error));
    const Status status = run_and_print(cli, &session, &result, &tuning, error);
    calibrated_model_free(&session.model);
    return status;
}

Status tune_recall(Cli *cli, const TuneResult *result, const Target *executed, const Tuning **tuning, Error *error) {
    const Measuring measuring = executor_measuring(cli, result->request, executed);
    const TuneOptions options = options_of(cli, result);
    return tune_session_recall(&measuring, result, &options, tuning, error);
}
