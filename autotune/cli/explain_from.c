// ndtune explain --from FILE: the plan of somebody's config file, predicted, and what to change in it.

#include "autotune/cli/explain_from.h"

#include <stdio.h>

#include "autotune/cli/config_file.h"

static Status print_report(const Cli *cli, const ImportReport *report, Error *error) {
    switch (cli_format(cli)) {
    case FORMAT_JSON:
        return json_import(report, stdout, error);
    case FORMAT_CSV:
        return csv_import(report, stdout, error);
    case FORMAT_TABLE:
        break;
    }
    return table_import(report, stdout, error);
}

Status explain_from(Cli *cli, Error *error) {
    ConfigFile file;
    ImportReport report;
    const OptionValue *from = cli_value(cli, OPTION_FROM);
    TRY(config_file_read(cli, from->text, from->argument, &file, error));
    TRY(config_file_advise(cli, &file, &report, error));
    TRY(print_report(cli, &report, error));
    return config_file_verdict(&report, error);
}
