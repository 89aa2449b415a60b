// ndtune runs: what was asked and what was run, from the store.

#include <stdio.h>

#include "autotune/cli/cli.h"
#include "reports/reports.h"

Status cmd_runs(Cli *cli, Error *error) {
    Store *store = NULL;
    TRY(cli_open_store(cli, &store, error));
    const int rows = cli_given(cli, OPTION_TOP) ? (int)cli_value(cli, OPTION_TOP)->integer : TABLE_DEFAULT_ROWS;
    StoredList list;
    const Status status = store_list(store, rows, &cli->arena, &list, error);
    store_close(store);
    TRY(status);
    switch (cli_format(cli)) {
    case FORMAT_JSON:
        return json_stored(&list, stdout, error);
    case FORMAT_CSV:
        return csv_stored(&list, stdout, error);
    case FORMAT_TABLE:
        break;
    }
    return table_stored(&list, stdout, error);
}
