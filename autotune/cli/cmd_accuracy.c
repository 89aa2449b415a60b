// ndtune accuracy: predicts measured runs and scores the predictions.

#include <stdio.h>

#include "autotune/accuracy/accuracy.h"
#include "autotune/cli/cli.h"
#include "reports/accuracy.h"

// An empty table must not look like a good score.
static void say_when_empty(const Accuracy *accuracy) {
    if (accuracy->scored == 0 && accuracy->oom.n == 0) {
        fprintf(stderr, "ndtune: none of the %d rows of %s could be scored: %s\n", accuracy->runs.count,
                accuracy->runs.path,
                accuracy->skip_count > 0 ? accuracy->skips[0].reason : "no row has a measured time");
    }
}

// The files of an option, NULL-terminated; NULL where it is not given.
static const char *const *files_of(Cli *cli, OptionId id) {
    const char **files = ARENA_ARRAY(&cli->arena, const char *, cli->options.repeated_count + 1);
    const RepeatedValue *file;
    int count = 0;
    while ((file = options_repeated(&cli->options, id, count))) {
        files[count++] = file->text;
    }
    return count > 0 ? files : NULL;
}

Status cmd_accuracy(Cli *cli, Error *error) {
    if (!cli_given(cli, OPTION_RUNS)) {
        error_set(error, STATUS_USAGE, "--runs is needed: a CSV file of measured runs");
        return error_hint(error, "ndtune accuracy --runs FILE.csv; ndtune help accuracy names the columns");
    }
    const AccuracyOptions options = {.runs_paths = files_of(cli, OPTION_RUNS),
                                     .oom_paths = files_of(cli, OPTION_OOM),
                                     .groups_paths = files_of(cli, OPTION_GROUPS),
                                     .effort = (Effort)cli_value(cli, OPTION_EFFORT)->integer,
                                     .leave_out = cli_given(cli, OPTION_LEAVE_ONE_SOURCE_OUT)};
    const Progress progress = cli_progress(cli);
    Accuracy accuracy;
    TRY(accuracy_run(&options, &progress, &cli->arena, &accuracy, error));
    cli_progress_clear(cli);
    TRY(cli_write_option(cli, OPTION_CSV, csv_accuracy_rows, &accuracy, error));
    say_when_empty(&accuracy);
    return cli_answer(cli, &answer_accuracy, &accuracy, error);
}
