// ndtune explain --from FILE: the plan of somebody's config file, predicted, and what to change in it.

#include "autotune/cli/explain_from.h"

#include <stdio.h>

#include "autotune/cli/config_file.h"

Status explain_from(Cli *cli, Error *error) {
    ConfigFile file;
    ImportReport report;
    const OptionValue *from = cli_value(cli, OPTION_FROM);
    TRY(config_file_read(cli, from->text, from->argument, &file, error));
    TRY(config_file_advise(cli, &file, &report, error));
    TRY(cli_answer(cli, &answer_import, &report, error));
    return config_file_verdict(&report, error);
}
