// ndtune models: the built-in models.

#include <stdio.h>

#include "autotune/cli/cli.h"
#include "reports/reports.h"

Status cmd_models(Cli *cli, Error *error) {
    switch (cli_format(cli)) {
    case FORMAT_JSON:
        return json_models(stdout, error);
    case FORMAT_CSV:
        return csv_models(stdout, error);
    case FORMAT_TABLE:
        break;
    }
    return table_models(stdout, error);
}
