// Ranks, groups of ranks and what is wrong with them; a line a rank of each group in CSV.

#include "reports/preflight.h"

#include "reports/csv_lines.h"
#include "reports/json_objects.h"
#include "reports/record.h"

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
    {FIELD("bad", FLAG, StoredFinding, bad)},
    {FIELD("sentence", TEXT, StoredFinding, sentence)},
};
static SCHEMA(findings, StoredFinding);

static Status print_table(const void *answer, FILE *out, Error *error) {
    const Preflight *preflight = answer;
    const PreflightResult *result = &preflight->result;
    const StoredPreflight *stored = &preflight->stored;
    const RecordSchema of_ranks = record_about(&schema_ranks, result), of_groups = record_about(&schema_groups, result);
    TRY(record_table(&of_ranks, result->ranks, result->world, out, error));
    fputc('\n', out);
    TRY(record_table(&of_groups, stored->groups, stored->group_count, out, error));
    fputc('\n', out);
    for (int i = 0; i < stored->finding_count; i++) {
        fprintf(out, "%s: %s\n", stored->findings[i].bad ? "wrong" : "note", stored->findings[i].sentence);
    }
    fprintf(out, "%d ranks, %d checks of groups: %s\n", result->world, stored->group_count,
            stored->ready ? "ready" : "not ready");
    return STATUS_OK;
}

static Status print_json(const void *answer, FILE *out, Error *error) {
    const Preflight *preflight = answer;
    const PreflightResult *result = &preflight->result;
    const StoredPreflight *stored = &preflight->stored;
    const RecordSchema of_ranks = record_about(&schema_ranks, result);
    return json_print(json_pack("{s:s, s:o, s:b, s:o, s:o, s:o}", "schema", "ndtune.preflight/1", "mesh",
                                json_mesh(&result->mesh), "ready", stored->ready, "ranks",
                                record_array(&of_ranks, result->ranks, result->world), "groups",
                                record_array(&schema_groups, stored->groups, stored->group_count), "findings",
                                record_array(&schema_findings, stored->findings, stored->finding_count)),
                      out, error);
}

static Status print_csv(const void *answer, FILE *out, Error *error) {
    const Preflight *preflight = answer;
    const PreflightResult *result = &preflight->result;
    Csv csv = {.out = out};
    csv_header(&csv, "axes,collective,payload_bytes,rank,host,measured_s,predicted_s,wrong_elements");
    for (int g = 0; g < result->group_count; g++) {
        const PreflightGroups *of = &result->groups[g];
        for (int rank = 0; rank < result->world; rank++) {
            csv_row(&csv, "ssndsnnn.", preflight->stored.groups[g].axes, of->collective, of->payload_bytes, rank,
                    result->ranks[rank].host, of->seconds[rank], csv_known(of->predicted_s > 0, of->predicted_s),
                    of->wrong[rank]);
        }
    }
    return csv_finish(&csv, error);
}

const Answer answer_preflight = {.table = print_table, .json = print_json, .csv = print_csv};
