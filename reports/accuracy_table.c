// The scores for people: step time by target and cluster and by source, the one-constant baseline beside each; then
// memory, verdicts, rankings, and what was left out and why.

#include <string.h>

#include "reports/accuracy.h"
#include "reports/grid.h"

enum { MAX_SKIPS = 30, SOURCE_WIDTH = 44 };

static void percent(Grid *grid, double share) {
    grid_cell(grid, "%.1f %%", 100 * share);
}

static void signed_percent(Grid *grid, double share) {
    grid_cell(grid, "%+.1f %%", 100 * share);
}

static void step_cells(Grid *grid, const ErrorScore *score) {
    grid_cell(grid, "%d", score->n);
    if (score->n == 0) {
        for (int i = 0; i < 7; i++) {
            grid_cell(grid, "-");
        }
        return;
    }
    percent(grid, score->median_abs);
    percent(grid, score->p90_abs);
    signed_percent(grid, score->bias);
    percent(grid, score->in_interval);
    percent(grid, score->baseline_median_abs);
    percent(grid, score->baseline_p90_abs);
    percent(grid, score->baseline_mfu);
}

// What names a row of scores.
typedef const char *(*LabelOf)(const ScoreRow *row);

static const char *target_of(const ScoreRow *row) {
    return row->target ? row->target : "all";
}

static const char *cluster_of(const ScoreRow *row) {
    return row->cluster ? row->cluster : "all clusters";
}

static const char *source_of(const ScoreRow *row) {
    return row->source;
}

static const char *half_of(const ScoreRow *row) {
    return row->half;
}

static void step_rows(Grid *grid, const ScoreRow *rows, int count, LabelOf first, LabelOf second) {
    for (int i = 0; i < count; i++) {
        grid_row(grid);
        grid_cell(grid, "%.*s", SOURCE_WIDTH, first(&rows[i]));
        if (second) {
            grid_cell(grid, "%s", second(&rows[i]));
        }
        step_cells(grid, &rows[i].score);
    }
}

// The second label leads where there is but one.
static Grid *step_grid(const char *first, const char *second) {
    const GridColumn columns[] = {{first, false}, {second, false}, {"rows", true},        {"median", true},
                                  {"90th", true}, {"bias", true},  {"in interval", true}, {"one MFU: median", true},
                                  {"90th", true}, {"MFU", true}};
    return first ? grid_new(columns, 10) : grid_new(columns + 1, 9);
}

static Status print_steps(const Accuracy *accuracy, FILE *out, Error *error) {
    const ScoreTable *tables[] = {&accuracy->step_by, &accuracy->step_by_target};
    const ScoreRow all = {.score = accuracy->step};
    Grid *grid = step_grid("target", "cluster");
    for (int t = 0; t < 2; t++) {
        step_rows(grid, tables[t]->rows, tables[t]->count, target_of, cluster_of);
    }
    step_rows(grid, &all, 1, target_of, cluster_of);
    return grid_print(grid, out, error);
}

static Status print_sources(const Accuracy *accuracy, FILE *out, Error *error) {
    Grid *grid = step_grid(NULL, "source");
    step_rows(grid, accuracy->step_by_source.rows, accuracy->step_by_source.count, source_of, NULL);
    return grid_print(grid, out, error);
}

static Status print_halves(const Accuracy *accuracy, FILE *out, Error *error) {
    Grid *grid = step_grid("target", "half");
    step_rows(grid, accuracy->step_by_half.rows, accuracy->step_by_half.count, target_of, half_of);
    return grid_print(grid, out, error);
}

// Nothing where all rows are of one class: the first table is theirs.
static Status print_classes(const Accuracy *accuracy, FILE *out, Error *error) {
    static const GridColumn columns[] = {{"class", false}, {"target", false},     {"cluster", false},
                                         {"rows", true},   {"median", true},      {"90th", true},
                                         {"bias", true},   {"in interval", true}, {"one MFU: median", true},
                                         {"90th", true},   {"MFU", true}};
    const ScoreTable *table = &accuracy->step_by_class;
    if (table->count == 0 || strcmp(table->rows[0].class, table->rows[table->count - 1].class) == 0) {
        return STATUS_OK;
    }
    fputc('\n', out);
    Grid *grid = grid_new(columns, 11);
    for (int i = 0; i < table->count; i++) {
        grid_row(grid);
        grid_cell(grid, "%s", table->rows[i].class);
        grid_cell(grid, "%s", table->rows[i].target);
        grid_cell(grid, "%s", table->rows[i].cluster);
        step_cells(grid, &table->rows[i].score);
    }
    return grid_print(grid, out, error);
}

static void memory_row(Grid *grid, const ScoreRow *row) {
    grid_row(grid);
    grid_cell(grid, "%s", target_of(row));
    grid_cell(grid, "%s", cluster_of(row));
    grid_cell(grid, "%s", row->kind);
    grid_cell(grid, "%d", row->score.n);
    if (row->score.n == 0) {
        for (int i = 0; i < 3; i++) {
            grid_cell(grid, "-");
        }
        return;
    }
    percent(grid, row->score.median_abs);
    percent(grid, row->score.p90_abs);
    signed_percent(grid, row->score.bias);
}

static Status print_memory(const Accuracy *accuracy, FILE *out, Error *error) {
    static const GridColumn columns[] = {{"target", false}, {"cluster", false}, {"measured", false}, {"rows", true},
                                         {"median", true},  {"90th", true},     {"bias", true}};
    Grid *grid = grid_new(columns, 7);
    for (int i = 0; i < accuracy->memory_by.count; i++) {
        memory_row(grid, &accuracy->memory_by.rows[i]);
    }
    for (int i = 0; i < accuracy->memory_by_kind.count; i++) {
        memory_row(grid, &accuracy->memory_by_kind.rows[i]);
    }
    const ScoreRow known = {.kind = "known kinds", .score = accuracy->memory};
    memory_row(grid, &known);
    return grid_print(grid, out, error);
}

static double share(int part, int whole) {
    return whole > 0 ? 100.0 * part / whole : 0;
}

static void print_verdicts(const Accuracy *accuracy, FILE *out) {
    const OomScore *oom = &accuracy->oom;
    fprintf(out, "\nOut of memory\n");
    if (accuracy->options.oom_paths) {
        fprintf(out, "  failures called infeasible: %d of %d (%.1f %%); certain ones %d of %d (%.1f %%)\n",
                oom->called_infeasible, oom->n, share(oom->called_infeasible, oom->n), oom->certain_called_infeasible,
                oom->certain, share(oom->certain_called_infeasible, oom->certain));
    }
    fprintf(out, "  runs called feasible: %d of %d whose memory size is known (%.1f %%)\n", oom->called_feasible,
            oom->feasible_rows, share(oom->called_feasible, oom->feasible_rows));
}

static void print_ranking(const Accuracy *accuracy, FILE *out) {
    const RankingScore *ranking = &accuracy->ranking;
    if (!accuracy->options.groups_paths) {
        return;
    }
    fprintf(out, "\nRanking, %d groups (%d have fewer than two scored plans)\n", ranking->groups, ranking->not_scored);
    if (ranking->groups > 0) {
        fprintf(out, "  regret: median %.3f, 90th percentile %.3f, worst %.3f%s%s; Kendall's tau: median %.2f\n",
                ranking->median_regret, ranking->p90_regret, ranking->worst_regret, ranking->worst_group ? " in " : "",
                ranking->worst_group ? ranking->worst_group : "", ranking->median_kendall_tau);
        fprintf(out, "  a plan drawn blindly: median %.3f, 90th percentile %.3f\n", ranking->baseline_median_regret,
                ranking->baseline_p90_regret);
    }
    if (ranking->unknown_ids > 0) {
        fprintf(out, "  %d ids of the groups are not in the run file\n", ranking->unknown_ids);
    }
}

static void print_losses(const Accuracy *accuracy, FILE *out) {
    int count = 0;
    const RunLoss *losses = run_case_losses(&count);
    bool headed = false;
    for (int i = 0; i < count; i++) {
        if (accuracy->loss_rows[i] > 0) {
            fputs(headed ? "" : "\nScored without what plans cannot say yet\n", out);
            fprintf(out, "  %5d rows  %s: %s\n", accuracy->loss_rows[i], losses[i].column, losses[i].what);
            headed = true;
        }
    }
}

static void print_skips(const Accuracy *accuracy, FILE *out) {
    if (accuracy->skip_count > 0) {
        fprintf(out, "\nNot scored (--format json names every row)\n");
    }
    for (int i = 0; i < accuracy->skip_count && i < MAX_SKIPS; i++) {
        const SkipReason *skip = &accuracy->skips[i];
        fprintf(out, "  %5d rows  %s\n", skip->runs + skip->failures, skip->reason);
    }
    if (accuracy->skip_count > MAX_SKIPS) {
        fprintf(out, "  and %d more reasons\n", accuracy->skip_count - MAX_SKIPS);
    }
    if (accuracy->runs.missing_count > 0) {
        fprintf(out, "\n%s lacks columns, taken as unknown:", accuracy->runs.path);
        for (int i = 0; i < accuracy->runs.missing_count; i++) {
            fprintf(out, " %s", accuracy->runs.missing[i]);
        }
        fputc('\n', out);
    }
}

Status table_accuracy(const Accuracy *accuracy, FILE *out, Error *error) {
    fprintf(out, "%s: %d rows, %d scored, %d not; errors are predicted / measured - 1, times by %s\n\n",
            accuracy->runs.path, accuracy->runs.count, accuracy->scored, accuracy->runs.count - accuracy->scored,
            accuracy->options.effort == EFFORT_ESTIMATE ? "estimate" : "simulation");
    fprintf(out, "Step time; beside it, one constant MFU fitted to the rows of the line\n");
    TRY(print_steps(accuracy, out, error));
    fputc('\n', out);
    TRY(print_sources(accuracy, out, error));
    TRY(print_classes(accuracy, out, error));
    if (accuracy->step_by_half.count > 0) {
        fputc('\n', out);
        TRY(print_halves(accuracy, out, error));
    }
    fprintf(out, "\nPeak memory (what nobody named is held against what its framework logs, else live bytes)\n");
    TRY(print_memory(accuracy, out, error));
    print_verdicts(accuracy, out);
    print_ranking(accuracy, out);
    print_losses(accuracy, out);
    print_skips(accuracy, out);
    return STATUS_OK;
}
