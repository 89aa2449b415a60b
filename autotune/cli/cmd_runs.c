// ndtune runs: past requests and runs, from the store; with a number, that run in full.

#include "autotune/cli/cli.h"
#include "reports/reports.h"
#include "sim/base/text.h"

static Status one_run(Cli *cli, Error *error) {
    int64_t id;
    cli->blame = cli->options.word_argument[0];
    FAIL_IF(!text_parse_int(cli->options.words[0], &id), error, STATUS_USAGE, "a run is named by its number, not %s",
            cli->options.words[0]);
    StoredRun about;
    RunRecord run;
    bool found = false;
    TRY(store_run_in_full(cli->store, id, &cli->arena, &about, &run, &found, error));
    if (!found) {
        error_set(error, STATUS_USAGE, "the store has no run %lld", (long long)id);
        return error_hint(error, "ndtune runs lists them");
    }
    cli->blame = -1;
    return cli_answer(cli, &answer_stored_run, &(StoredRunReport){&about, &run}, error);
}

static Status all_runs(Cli *cli, Error *error) {
    const int rows = cli_integer_or(cli, OPTION_TOP, TABLE_DEFAULT_ROWS);
    StoredList list;
    TRY(store_list(cli->store, rows, &cli->arena, &list, error));
    return cli_answer(cli, &answer_stored, &list, error);
}

Status cmd_runs(Cli *cli, Error *error) {
    TRY(cli_open_existing_store(cli, error));
    return cli->options.word_count > 0 ? one_run(cli, error) : all_runs(cli, error);
}
