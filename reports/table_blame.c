// ndtune blame for people: the verdict, where every rank stands, what the dumps do not tell.

#include "reports/blame.h"
#include "reports/colour.h"
#include "reports/csv_lines.h"
#include "reports/grid.h"
#include "sim/base/text.h"

static void add_rank(const BlameReport *report, Grid *grid, int rank, bool hosts, bool layers) {
    const VerdictPlace *place = &report->verdict->stands[rank];
    const Dump *dump = report->job->ranks[rank].dump;
    char text[TEXT_UNIT_BYTES] = "";
    const bool at = place->group >= 0;
    const JobGroup *group = at ? &report->job->groups[place->group] : NULL;
    grid_row(grid);
    grid_cell(grid, "%s%d", blame_is_blamed(report, rank) ? "* " : "  ", rank);
    if (hosts) {
        grid_cell(grid, "%s", dump && dump->host ? dump->host : "");
    }
    grid_cell(grid, "%s%s%s", blame_state(report, rank), at ? " " : "", at ? dump_op_rows[place->op].words : "");
    grid_cell(grid, "%s", at && place->bytes > 0 ? text_bytes(text, (double)place->bytes) : "");
    group && group->parent >= 0 ? grid_cell(grid, "%s %d to %d", blame_group_name(group), group->from, group->to)
                                : grid_cell(grid, "%s", group ? blame_group_name(group) : "");
    at ? grid_cell(grid, "%lld", (long long)place->seq) : grid_cell(grid, "%s", "");
    grid_cell(grid, "%s", place->waited_s >= 0 ? text_seconds(text, place->waited_s) : "");
    if (layers) {
        grid_cell(grid, "%s", place->layer ? place->layer : "");
    }
}

static Status print_stands(const BlameReport *report, FILE *out, Error *error) {
    bool hosts = false, layers = false;
    for (int rank = 0; rank < report->job->world; rank++) {
        const Dump *dump = report->job->ranks[rank].dump;
        hosts |= dump && dump->host;
        layers |= report->verdict->stands[rank].layer != NULL;
    }
    GridColumn columns[8] = {{"  rank", false}};
    int count = 1;
    if (hosts) {
        columns[count++] = (GridColumn){"host", false};
    }
    columns[count++] = (GridColumn){"stands", false};
    columns[count++] = (GridColumn){"size", true};
    columns[count++] = (GridColumn){"group", false};
    columns[count++] = (GridColumn){"number", true};
    columns[count++] = (GridColumn){"waits", true};
    if (layers) {
        columns[count++] = (GridColumn){"where in the step", false};
    }
    Grid *grid = grid_new(columns, count);
    for (int rank = 0; rank < report->job->world; rank++) {
        add_rank(report, grid, rank, hosts, layers);
    }
    return grid_print(grid, out, error);
}

static void print_list(const char *heading, const char *const *sentences, int count, FILE *out) {
    if (count > 0) {
        fprintf(out, "\n%s\n", heading);
    }
    for (int i = 0; i < count; i++) {
        fprintf(out, "  %s\n", sentences[i]);
    }
}

Status table_blame(const BlameReport *report, FILE *out, Error *error) {
    const Verdict *verdict = report->verdict;
    const Job *job = report->job;
    Arena arena = {0};
    const bool bad = verdict->kind != VERDICT_HEALTHY;
    fprintf(out, "%d of %d ranks left a dump in %s, %d process groups\n", job->dump_count, job->world, job->folder,
            job->process_groups);
    if (report->program) {
        fprintf(out, "%d of %d collectives are as in the step of %s\n", report->matched, report->compared,
                report->program);
    }
    fprintf(out, "\n%s%s%s%s\n\n", colour(out, bad ? COLOUR_BAD : COLOUR_GOOD), bad ? "Blamed: " : "",
            blame_sentence(report, &arena), colour(out, COLOUR_END));
    arena_free(&arena);
    TRY(print_stands(report, out, error));
    print_list("What these dumps do not tell", verdict->unknown, verdict->unknown_count, out);
    print_list("Left out", job->notes, job->note_count, out);
    if (bad && !report->program) {
        fputs("\nWith --mesh, --model and --target of the job its layers and tasks are named.\n", out);
    } else if (bad && report->matched * 2 < report->compared) {
        fputs("\nThe recorded collectives are not those of that step: are shape, model and target the job's?\n", out);
    }
    return STATUS_OK;
}

Status csv_blame(const BlameReport *report, FILE *out, Error *error) {
    Csv csv = {.out = out};
    csv_header(&csv, "rank,host,blamed,stands,collective,bytes,group,number,waited_s,layer,caller");
    for (int rank = 0; rank < report->job->world; rank++) {
        const VerdictPlace *place = &report->verdict->stands[rank];
        const Dump *dump = report->job->ranks[rank].dump;
        const bool at = place->group >= 0;
        csv_row(&csv, "dssssnsnnss.", rank, dump ? dump->host : NULL, blame_is_blamed(report, rank) ? "yes" : "no",
                blame_state(report, rank), at ? dump_op_rows[place->op].words : NULL,
                csv_known(at && place->bytes >= 0, (double)place->bytes),
                at ? report->job->groups[place->group].name : NULL, csv_known(at, (double)place->seq),
                csv_known(place->waited_s >= 0, place->waited_s), place->layer, place->caller);
    }
    return csv_finish(&csv, error);
}
