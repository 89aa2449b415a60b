// ndtune explain: why the best shape beats the next one, and what would change the answer; with --from, what to change
// in a config file.

#include "autotune/check/check.h"
#include "autotune/cli/cli.h"
#include "autotune/cli/config_file.h"
#include "autotune/cli/request.h"
#include "autotune/explain/explain.h"
#include "reports/reports.h"

// The plan of the user's config file, predicted, and what to change in it.
static Status explain_from(Cli *cli, Error *error) {
    ConfigFile file;
    ImportReport report;
    const OptionValue *from = cli_value(cli, OPTION_FROM);
    TRY(config_file_read(cli, from->text, from->argument, NULL, &file, error));
    TRY(config_file_advise(cli, &file, &report, error));
    TRY(cli_answer(cli, &answer_import, &report, error));
    return check_runs(report.import, report.advice, error);
}

Status cmd_explain(Cli *cli, Error *error) {
    TRY(cli_one_world(cli, error));
    if (cli_given(cli, OPTION_FROM)) {
        return explain_from(cli, error);
    }
    static const OptionId of_from[] = {OPTION_FROM_FORMAT, OPTION_GRAD_ACCUM};
    for (size_t i = 0; i < sizeof of_from / sizeof of_from[0]; i++) {
        FAIL_WITH(
            cli_given(cli, of_from[i]),
            cli_refuse(cli, of_from[i], error, "--%s of ndtune explain goes with --from", option_row(of_from[i]).name));
    }
    if (!cli_given(cli, OPTION_WORLD) && !cli_given(cli, OPTION_MODEL)) {
        TRY(cli_open_store_to_ask(cli, error));
        TRY(last_request_take(cli, error));
    }
    TuneRequest request;
    TRY(request_build(cli, &search_defaults, &request, error));
    TuneResult result;
    TRY(cli_search(cli, &request, &result, error));
    FAIL_WITH(result.entry_count == 0, cli_say_what_fits(cli, &result, error));
    const Progress progress = cli_progress(cli);
    Explanation explanation;
    const Status status = explain_run(&result, &progress, &explanation, error);
    cli_progress_clear(cli);
    return status == STATUS_OK ? cli_answer(cli, &answer_explanation, &explanation, error) : status;
}
