// ndtune preflight: is everything there that a shape needs? Every rank, every group, every machine, in a few seconds.
// What was found is stored. Exit code 0: nothing that would stop the run; 3: something is wrong, in words.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/measured_run.h"
#include "autotune/cli/request.h"
#include "exec/launch/preflight.h"
#include "reports/csv_lines.h"
#include "reports/grid.h"
#include "reports/json_objects.h"
#include "reports/words.h"
#include "sim/base/text.h"
#include "sim/cost/cost.h"

static const double TIMEOUT_S = 20;

typedef struct Preflight {
    Cli *cli;
    TuneRequest request;
    MeasuredRun run;
    PreflightResult result;
    PreflightFindings findings;
} Preflight;

static Status prepare(Preflight *preflight, Error *error) {
    Cli *cli = preflight->cli;
    TuneRequest *request = &preflight->request;
    TRY(request_build(cli, &preflight_defaults, request, error));
    Mesh mesh;
    TrainPlan plan;
    RunOptions options;
    TRY(request_mesh(cli, &mesh, error));
    if (mesh_world(&mesh) < 2) {
        error_set(error, STATUS_USAGE, "one rank has nobody to be checked with");
        return cli_blame(cli, OPTION_MESH, STATUS_USAGE);
    }
    preflight->run.cli = cli;
    TRY(measured_run_by_executor(&preflight->run, request, error));
    request_plan(cli, request, &mesh, &plan);
    measured_run_options(cli, &options);
    if (!cli_given(cli, OPTION_TIMEOUT)) {
        options.timeout_s = TIMEOUT_S;
    }
    return measured_run_prepare(&preflight->run, &plan, &options, error);
}

// Of two ranks: on machines of their own where a link crosses them.
static GroupPlacement link_placement(const PreflightResult *result, const PreflightGroups *links) {
    GroupPlacement placement = {.size = 2, .per_node = 2, .nodes = 1};
    for (int rank = 0; rank < result->world; rank++) {
        const int from = links->from[rank];
        if (from >= 0 && result->ranks[from].node != result->ranks[rank].node) {
            placement = (GroupPlacement){.size = 2, .per_node = 1, .nodes = 2};
        }
    }
    return placement;
}

// What the profile promises each collective, on the nodes where the ranks really stand.
static void predict(Preflight *preflight) {
    static const char *const names[] = {"all_gather", "reduce_scatter", "all_reduce", "send_recv"};
    PreflightResult *result = &preflight->result;
    int on_first = 0;
    for (int rank = 0; rank < result->world; rank++) {
        on_first += result->ranks[rank].node == 0;
    }
    const ClusterProfile profile = cost_shared_profile(&preflight->request.cluster, on_first);
    for (int g = 0; g < result->group_count; g++) {
        PreflightGroups *groups = &result->groups[g];
        const GroupPlacement placement =
            groups->from ? link_placement(result, groups) : mesh_group_placement(&result->mesh, groups->axes, on_first);
        for (int kind = 0; kind < 4; kind++) {
            const bool same = strcmp(names[kind], groups->from ? "send_recv" : groups->collective) == 0;
            if (same && (placement.nodes == 1 || profile.fabric.nics > 0)) {
                groups->predicted_s =
                    cost_collective_s(&profile, (CollectiveKind)kind, &placement, groups->payload_bytes, NULL);
            }
        }
    }
}

// What is said and stored of all groups of some axes.
static StoredGroups summary(const Preflight *preflight, int index) {
    const PreflightResult *result = &preflight->result;
    const PreflightGroups *groups = &result->groups[index];
    StoredGroups sum = {.axes = mesh_axes_words(groups->axes, &preflight->cli->arena),
                        .collective = groups->collective,
                        .ranks = mesh_group_size(&result->mesh, groups->axes),
                        .payload_bytes = groups->payload_bytes,
                        .predicted_s = groups->predicted_s};
    for (int rank = 0; rank < result->world; rank++) {
        sum.measured_s = groups->seconds[rank] > sum.measured_s ? groups->seconds[rank] : sum.measured_s;
        sum.wrong_elements += groups->wrong[rank];
    }
    return sum;
}

// ---------------------------------------------------------------------------------------------- table

static Status print_ranks(const PreflightResult *result, Error *error) {
    static const GridColumn columns[] = {{"rank", true}, {"host", false},       {"cores", true},
                                         {"GEMM", true}, {"memory free", true}, {"clock", true}};
    Grid *grid = grid_new(columns, 6);
    for (int rank = 0; rank < result->world; rank++) {
        const PreflightRank *row = &result->ranks[rank];
        char memory[TEXT_UNIT_BYTES];
        grid_row(grid);
        grid_cell(grid, "%d", rank);
        grid_cell(grid, "%s", row->host);
        grid_cell(grid, "%d", row->cores);
        grid_cell(grid, "%.1f GFLOP/s", row->flop_per_s / 1e9);
        grid_cell(grid, "%s", text_bytes(memory, row->memory_bytes));
        grid_cell(grid, "%+.3f ms", 1e3 * row->clock_offset_s);
    }
    return grid_print(grid, stdout, error);
}

static Status print_groups(const Preflight *preflight, Error *error) {
    static const GridColumn columns[] = {{"axes", false},    {"groups", true}, {"collective", false}, {"size", true},
                                         {"measured", true}, {"rate", true},   {"predicted", true},   {"sums", false}};
    Grid *grid = grid_new(columns, 8);
    for (int g = 0; g < preflight->result.group_count; g++) {
        const StoredGroups groups = summary(preflight, g);
        char text[TEXT_UNIT_BYTES];
        grid_row(grid);
        grid_cell(grid, "%s", groups.axes);
        grid_cell(grid, "%d", preflight->result.world / groups.ranks);
        grid_cell(grid, "%s", groups.collective);
        grid_cell(grid, "%s", text_bytes(text, groups.payload_bytes));
        grid_cell(grid, "%s", text_seconds(text, groups.measured_s));
        grid_cell(grid, "%.2f GB/s", groups.payload_bytes / groups.measured_s / 1e9);
        grid_cell(grid, "%s", groups.predicted_s > 0 ? text_seconds(text, groups.predicted_s) : "-");
        grid_cell(grid, "%s", groups.wrong_elements > 0 ? "wrong" : "exact");
    }
    return grid_print(grid, stdout, error);
}

static Status print_table(const Preflight *preflight, Error *error) {
    TRY(print_ranks(&preflight->result, error));
    printf("\n");
    TRY(print_groups(preflight, error));
    printf("\n");
    for (int i = 0; i < preflight->findings.count; i++) {
        const PreflightFinding *finding = &preflight->findings.rows[i];
        printf("%s: %s\n", finding->bad ? "wrong" : "note", finding->sentence);
    }
    printf("%d ranks, %d checks of groups: %s\n", preflight->result.world, preflight->result.group_count,
           preflight->findings.bad > 0 ? "not ready" : "ready");
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- json, csv

static json_t *ranks_array(const PreflightResult *result) {
    json_t *rows = json_array();
    for (int rank = 0; rank < result->world; rank++) {
        const PreflightRank *row = &result->ranks[rank];
        json_array_append_new(rows, json_pack("{s:i, s:s, s:i, s:f, s:f, s:f}", "rank", rank, "host", row->host,
                                              "cores", row->cores, "flop_per_s", row->flop_per_s, "memory_bytes",
                                              row->memory_bytes, "clock_offset_s", row->clock_offset_s));
    }
    return rows;
}

static json_t *groups_array(const Preflight *preflight) {
    json_t *rows = json_array();
    for (int g = 0; g < preflight->result.group_count; g++) {
        const StoredGroups groups = summary(preflight, g);
        json_array_append_new(rows, json_pack("{s:s, s:s, s:i, s:f, s:f, s:o, s:f}", "axes", groups.axes, "collective",
                                              groups.collective, "ranks", groups.ranks, "payload_bytes",
                                              groups.payload_bytes, "measured_s", groups.measured_s, "predicted_s",
                                              groups.predicted_s > 0 ? json_real(groups.predicted_s) : json_null(),
                                              "wrong_elements", groups.wrong_elements));
    }
    return rows;
}

static Status print_json(const Preflight *preflight, Error *error) {
    json_t *findings = json_array();
    for (int i = 0; i < preflight->findings.count; i++) {
        const PreflightFinding *finding = &preflight->findings.rows[i];
        json_array_append_new(findings, json_pack("{s:b, s:s}", "bad", finding->bad, "sentence", finding->sentence));
    }
    return json_print(json_pack("{s:s, s:o, s:b, s:o, s:o, s:o}", "schema", "ndtune.preflight/1", "mesh",
                                json_mesh(&preflight->result.mesh), "ready", preflight->findings.bad == 0, "ranks",
                                ranks_array(&preflight->result), "groups", groups_array(preflight), "findings",
                                findings),
                      stdout, error);
}

static Status print_csv(const Preflight *preflight, Error *error) {
    const PreflightResult *result = &preflight->result;
    Csv csv = {.out = stdout};
    csv_header(&csv, "axes,collective,payload_bytes,rank,host,measured_s,predicted_s,wrong_elements");
    for (int g = 0; g < result->group_count; g++) {
        const PreflightGroups *groups = &result->groups[g];
        for (int rank = 0; rank < result->world; rank++) {
            csv_text(&csv, mesh_axes_words(groups->axes, &preflight->cli->arena));
            csv_text(&csv, groups->collective);
            csv_number(&csv, true, groups->payload_bytes);
            csv_integer(&csv, rank);
            csv_text(&csv, result->ranks[rank].host);
            csv_number(&csv, true, groups->seconds[rank]);
            csv_number(&csv, groups->predicted_s > 0, groups->predicted_s);
            csv_number(&csv, true, groups->wrong[rank]);
            csv_end_line(&csv);
        }
    }
    return csv_finish(&csv, error);
}

static Status print_preflight(const Preflight *preflight, Error *error) {
    switch (cli_format(preflight->cli)) {
    case FORMAT_JSON:
        return print_json(preflight, error);
    case FORMAT_CSV:
        return print_csv(preflight, error);
    case FORMAT_TABLE:
        break;
    }
    return print_table(preflight, error);
}

// ---------------------------------------------------------------------------------------------- the store

static const char *hosts_of(const PreflightResult *result, Arena *arena) {
    const char *hosts = "";
    for (int rank = 0; rank < result->world; rank++) {
        const char *host = result->ranks[rank].host;
        bool named = false;
        for (int before = 0; before < rank && !named; before++) {
            named = strcmp(result->ranks[before].host, host) == 0;
        }
        hosts = named ? hosts : arena_format(arena, "%s%s%s", hosts, hosts[0] ? ", " : "", host);
    }
    return hosts;
}

static Status save(const Preflight *preflight, Error *error) {
    Cli *cli = preflight->cli;
    const PreflightResult *result = &preflight->result;
    const PreflightFindings *found = &preflight->findings;
    StoredFinding *findings = ARENA_ARRAY(&cli->arena, StoredFinding, found->count);
    StoredGroups *groups = ARENA_ARRAY(&cli->arena, StoredGroups, result->group_count);
    char mesh[WORDS_BYTES];
    for (int i = 0; i < found->count; i++) {
        findings[i] = (StoredFinding){found->rows[i].bad, found->rows[i].sentence};
    }
    for (int g = 0; g < result->group_count; g++) {
        groups[g] = summary(preflight, g);
    }
    const StoredPreflight stored = {.command = cli->line,
                                    .cluster = preflight->request.cluster.name,
                                    .hosts = hosts_of(result, &cli->arena),
                                    .device = preflight->run.record.device,
                                    .transport = preflight->run.record.transport,
                                    .mesh = words_layout(&result->mesh, mesh),
                                    .world = result->world,
                                    .ready = found->bad == 0,
                                    .findings = findings,
                                    .groups = groups,
                                    .finding_count = found->count,
                                    .group_count = result->group_count};
    Store *store = NULL;
    TRY(cli_open_store(cli, &store, error));
    const Status status = store_save_preflight(store, &stored, error);
    store_close(store);
    return status;
}

Status cmd_preflight(Cli *cli, Error *error) {
    Preflight preflight = {.cli = cli};
    TRY(prepare(&preflight, error));
    const Progress progress = cli_progress(cli);
    const ExecOptions options = {.progress = &progress, .launch = measured_run_launch(cli)};
    const Status status = exec_preflight(&preflight.run.run, &options, &cli->arena, &preflight.result, error);
    cli_progress_clear(cli);
    TRY(status);
    predict(&preflight);
    preflight_findings(&preflight.result, &cli->arena, &preflight.findings);
    TRY(print_preflight(&preflight, error));
    TRY(save(&preflight, error));
    if (preflight.findings.bad == 0) {
        return STATUS_OK;
    }
    const char *first = "";
    for (int i = 0; i < preflight.findings.count && !first[0]; i++) {
        first = preflight.findings.rows[i].bad ? preflight.findings.rows[i].sentence : "";
    }
    return error_set(error, STATUS_ENVIRONMENT, "not ready: %s", first);
}
