// ndtune preflight: is everything in place that a shape needs? Every rank, group and machine, in a few seconds.
// Findings are stored. Exit code 0: nothing that would stop the run; 3: a problem, with the reason.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/executor_options.h"
#include "autotune/cli/request.h"
#include "exec/launch/preflight.h"
#include "reports/csv_lines.h"
#include "reports/format.h"
#include "reports/json_objects.h"
#include "reports/record.h"
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
    TrainPlan plan;
    RunOptions options;
    if (request->world < 2) {
        return cli_refuse(cli, OPTION_MESH, error, "one rank has nobody to be checked with");
    }
    MeasuredRun *run = &preflight->run;
    *run = (MeasuredRun){.arena = &cli->arena, .request = request, .launch = executor_launch(cli)};
    TRY(measuring_takes(request, executor_lanes(cli), &cli->arena, &run->target, error));
    request_plan(request, &request->mesh, &plan);
    executor_options(cli, &options);
    if (!cli_given(cli, OPTION_TIMEOUT)) {
        options.timeout_s = TIMEOUT_S;
    }
    return measured_run_prepare(run, &plan, &options, error);
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

// ---------------------------------------------------------------------------------------------- records

static RecordValue in_unit(const char *format, double value, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, format, value);
    return record_of_text(text);
}

MADE_IN(rank_number, PreflightRank, PreflightResult, record_of_whole(of - in->ranks))
MADE(gemm_rate, PreflightRank, in_unit("%.1f GFLOP/s", of->flop_per_s / 1e9, text))
MADE(clock_offset, PreflightRank, in_unit("%+.3f ms", 1e3 * of->clock_offset_s, text))

static const RecordField ranks[] = {
    {.key = "rank", BY(rank_number), COLUMN(1, "rank"), .right = true},
    {FIELD("host", TEXT, PreflightRank, host), COLUMN(2, "host")},
    {FIELD("cores", INT, PreflightRank, cores), COLUMN(3, "cores")},
    {FIELD("flop_per_s", REAL, PreflightRank, flop_per_s)},
    {FIELD("memory_bytes", REAL, PreflightRank, memory_bytes), COLUMN(5, "memory free"), .unit = AS_BYTES},
    {FIELD("clock_offset_s", REAL, PreflightRank, clock_offset_s)},
    {BY(gemm_rate), COLUMN(4, "GEMM"), .right = true},
    {BY(clock_offset), COLUMN(6, "clock"), .right = true},
};
static SCHEMA(ranks, PreflightRank);

MADE_IN(copies, StoredGroups, PreflightResult, record_of_whole(in->world / of->ranks))
MADE(rate, StoredGroups, in_unit("%.2f GB/s", of->payload_bytes / of->measured_s / 1e9, text))
MADE(sums, StoredGroups, record_of_text(of->wrong_elements > 0 ? "wrong" : "exact"))

static const RecordField groups[] = {
    {FIELD("axes", TEXT, StoredGroups, axes), COLUMN(1, "axes")},
    {FIELD("collective", TEXT, StoredGroups, collective), COLUMN(3, "collective")},
    {FIELD("ranks", INT, StoredGroups, ranks)},
    {FIELD("payload_bytes", REAL, StoredGroups, payload_bytes), COLUMN(4, "size"), .unit = AS_BYTES},
    {FIELD("measured_s", REAL, StoredGroups, measured_s), COLUMN(5, "measured"), .unit = AS_SECONDS},
    {FIELD("predicted_s", ABOVE, StoredGroups, predicted_s), COLUMN(7, "predicted"), .unit = AS_SECONDS},
    {FIELD("wrong_elements", REAL, StoredGroups, wrong_elements)},
    {BY(copies), COLUMN(2, "groups"), .right = true},
    {BY(rate), COLUMN(6, "rate"), .right = true},
    {BY(sums), COLUMN(8, "sums")},
};
static SCHEMA(groups, StoredGroups);

static const RecordField findings[] = {
    {FIELD("bad", FLAG, PreflightFinding, bad)},
    {FIELD("sentence", TEXT, PreflightFinding, sentence)},
};
static SCHEMA(findings, PreflightFinding);

static const StoredGroups *summaries(const Preflight *preflight) {
    const int count = preflight->result.group_count;
    StoredGroups *all = ARENA_ARRAY(&preflight->cli->arena, StoredGroups, count);
    for (int g = 0; g < count; g++) {
        all[g] = summary(preflight, g);
    }
    return all;
}

static Status print_table(const void *answer, FILE *out, Error *error) {
    const Preflight *preflight = answer;
    const PreflightResult *result = &preflight->result;
    const RecordSchema of_ranks = record_about(&schema_ranks, result), of_groups = record_about(&schema_groups, result);
    TRY(record_table(&of_ranks, result->ranks, result->world, out, error));
    fputc('\n', out);
    TRY(record_table(&of_groups, summaries(preflight), result->group_count, out, error));
    fputc('\n', out);
    for (int i = 0; i < preflight->findings.count; i++) {
        const PreflightFinding *finding = &preflight->findings.rows[i];
        fprintf(out, "%s: %s\n", finding->bad ? "wrong" : "note", finding->sentence);
    }
    fprintf(out, "%d ranks, %d checks of groups: %s\n", result->world, result->group_count,
            preflight->findings.bad > 0 ? "not ready" : "ready");
    return STATUS_OK;
}

static Status print_json(const void *answer, FILE *out, Error *error) {
    const Preflight *preflight = answer;
    const PreflightResult *result = &preflight->result;
    const PreflightFindings *found = &preflight->findings;
    const RecordSchema of_ranks = record_about(&schema_ranks, result);
    return json_print(json_pack("{s:s, s:o, s:b, s:o, s:o, s:o}", "schema", "ndtune.preflight/1", "mesh",
                                json_mesh(&result->mesh), "ready", found->bad == 0, "ranks",
                                record_array(&of_ranks, result->ranks, result->world), "groups",
                                record_array(&schema_groups, summaries(preflight), result->group_count), "findings",
                                record_array(&schema_findings, found->rows, found->count)),
                      out, error);
}

// A line a rank of each group, which no other format has.
static Status print_csv(const void *answer, FILE *out, Error *error) {
    const Preflight *preflight = answer;
    const PreflightResult *result = &preflight->result;
    Csv csv = {.out = out};
    csv_header(&csv, "axes,collective,payload_bytes,rank,host,measured_s,predicted_s,wrong_elements");
    for (int g = 0; g < result->group_count; g++) {
        const PreflightGroups *of = &result->groups[g];
        for (int rank = 0; rank < result->world; rank++) {
            csv_row(&csv, "ssndsnnn.", mesh_axes_words(of->axes, &preflight->cli->arena), of->collective,
                    of->payload_bytes, rank, result->ranks[rank].host, of->seconds[rank],
                    csv_known(of->predicted_s > 0, of->predicted_s), of->wrong[rank]);
        }
    }
    return csv_finish(&csv, error);
}

static const Answer answer_preflight = {.table = print_table, .json = print_json, .csv = print_csv};

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
    StoredFinding *rows = ARENA_ARRAY(&cli->arena, StoredFinding, found->count);
    char mesh[FORMAT_BYTES];
    for (int i = 0; i < found->count; i++) {
        rows[i] = (StoredFinding){found->rows[i].bad, found->rows[i].sentence};
    }
    const StoredPreflight stored = {.command = cli->line,
                                    .cluster = preflight->request.cluster.name,
                                    .hosts = hosts_of(result, &cli->arena),
                                    .device = preflight->run.record.device,
                                    .transport = preflight->run.record.transport,
                                    .mesh = format_layout(&result->mesh, mesh),
                                    .world = result->world,
                                    .ready = found->bad == 0,
                                    .findings = rows,
                                    .groups = summaries(preflight),
                                    .finding_count = found->count,
                                    .group_count = result->group_count};
    TRY(cli_open_store(cli, error));
    return store_save_preflight(cli->store, &stored, error);
}

Status cmd_preflight(Cli *cli, Error *error) {
    Preflight preflight = {.cli = cli};
    TRY(prepare(&preflight, error));
    const Progress progress = cli_progress(cli);
    const ExecOptions options = {.progress = &progress, .launch = executor_launch(cli)};
    const Status status = exec_preflight(&preflight.run.run, &options, &cli->arena, &preflight.result, error);
    cli_progress_clear(cli);
    TRY(status);
    predict(&preflight);
    preflight_findings(&preflight.result, &cli->arena, &preflight.findings);
    TRY(cli_answer(cli, &answer_preflight, &preflight, error));
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
