// ndtune plan: which mesh shape to run.

#include <stdio.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/request.h"
#include "autotune/search.h"
#include "reports/reports.h"

static Status print_result(Cli *cli, const TuneResult *result, Error *error) {
    switch (cli_format(cli)) {
    case FORMAT_JSON:
        return json_plan(result, stdout, error);
    case FORMAT_CSV:
        return csv_plan(result, stdout, error);
    case FORMAT_TABLE:
        break;
    }
    const int rows = cli_given(cli, OPTION_TOP) ? (int)cli_value(cli, OPTION_TOP)->integer : TABLE_DEFAULT_ROWS;
    return table_plan(result, rows, stdout, error);
}

// Nothing fits: the reason of the shape that came closest to being possible, memory before the other rules.
static Status nothing_feasible(const TuneResult *result, Error *error) {
    const Rejection *strongest = &result->rejected[0];
    double least = 0;
    for (int i = 0; i < result->candidate_count; i++) {
        const Candidate *candidate = &result->candidates[i];
        if (candidate->reserved_bytes > 0 && (least <= 0 || candidate->reserved_bytes < least)) {
            least = candidate->reserved_bytes;
        }
    }
    for (int i = 0; i < result->candidate_count && least > 0; i++) {
        const Candidate *candidate = &result->candidates[i];
        if (candidate->reserved_bytes == least) {
            char mesh[MESH_TEXT_BYTES];
            return error_set(error, STATUS_INFEASIBLE, "none of the %d shapes can run; the nearest, %s, %s",
                             result->search.shapes, mesh_text(&candidate->plan.mesh, mesh), candidate->reason);
        }
    }
    char mesh[MESH_TEXT_BYTES];
    return error_set(error, STATUS_INFEASIBLE, "none of the %d shapes can run; %s: %s", result->search.shapes,
                     mesh_text(&strongest->plan.mesh, mesh), strongest->reason);
}

Status cmd_plan(Cli *cli, Error *error) {
    static const RequestDefaults defaults = {.cluster = "dgx-h100", .target = "accelerate"};
    TuneRequest request;
    TRY(request_build(cli, &defaults, &request, error));
    Store *store = NULL;
    TRY(cli_open_store(cli, &store, error));
    const PredictionCache cache = store_cache(store);
    const Progress progress = cli_progress(cli);
    TuneResult result;
    Status status =
        search_run(&request, cli_given(cli, OPTION_NO_CACHE) ? NULL : &cache, &progress, &cli->arena, &result, error);
    cli_progress_clear(cli);
    if (status == STATUS_OK) {
        status = print_result(cli, &result, error);
    }
    if (status == STATUS_OK) {
        status = store_save_result(store, &result, error);
    }
    if (status == STATUS_OK && result.entry_count == 0) {
        status = nothing_feasible(&result, error);
    }
    store_close(store);
    return status;
}
