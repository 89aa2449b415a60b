// ndtune accuracy: predicts measured runs and scores the predictions.

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/accuracy/accuracy.h"
#include "autotune/cli/cli.h"
#include "reports/accuracy.h"

static Status print_accuracy(const Cli *cli, const Accuracy *accuracy, Error *error) {
    switch (cli_format(cli)) {
    case FORMAT_JSON:
        return json_accuracy(accuracy, stdout, error);
    case FORMAT_CSV:
        return csv_accuracy(accuracy, stdout, error);
    case FORMAT_TABLE:
        break;
    }
    return table_accuracy(accuracy, stdout, error);
}

static Status cannot_write(const char *path, Error *error) {
    return error_set(error, STATUS_ENVIRONMENT, "%s cannot be written: %s", path, strerror(errno));
}

// Whole or not at all: a temporary file beside it takes its place.
static Status write_rows(Cli *cli, const Accuracy *accuracy, const char *path, Error *error) {
    const char *temporary = arena_format(&cli->arena, "%s.%ld.tmp", path, (long)getpid());
    FILE *file = fopen(temporary, "w");
    if (!file) {
        return cannot_write(path, error);
    }
    Status status = csv_accuracy_rows(accuracy, file, error);
    if (fclose(file) != 0 && status == STATUS_OK) {
        status = cannot_write(path, error);
    }
    if (status == STATUS_OK && rename(temporary, path) != 0) {
        status = cannot_write(path, error);
    }
    if (status != STATUS_OK) {
        unlink(temporary);
    }
    return status;
}

Status cmd_accuracy(Cli *cli, Error *error) {
    if (!cli_given(cli, OPTION_RUNS)) {
        error_set(error, STATUS_USAGE, "--runs is needed: a CSV file of measured runs");
        return error_hint(error, "ndtune accuracy --runs FILE.csv; ndtune help accuracy names the columns");
    }
    const AccuracyOptions options = {.runs_path = cli_value(cli, OPTION_RUNS)->text,
                                     .oom_path = cli_value(cli, OPTION_OOM)->text,
                                     .groups_path = cli_value(cli, OPTION_GROUPS)->text,
                                     .effort = (Effort)cli_value(cli, OPTION_EFFORT)->integer};
    const Progress progress = cli_progress(cli);
    Accuracy accuracy;
    TRY(accuracy_run(&options, &progress, &cli->arena, &accuracy, error));
    cli_progress_clear(cli);
    if (cli_given(cli, OPTION_CSV)) {
        TRY(cli_blame(cli, OPTION_CSV, write_rows(cli, &accuracy, cli_value(cli, OPTION_CSV)->text, error)));
    }
    return print_accuracy(cli, &accuracy, error);
}
