// The scores for people: step time by target and cluster and by source, the one-constant baseline beside each; then
// memory, verdicts, rankings, and what was left out and why.

#include <limits.h>
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

static const char *class_of(const ScoreRow *row) {
    return row->class;
}

// What names a row of scores.
typedef struct Label {
    const char *column;  // NULL = the end
    const char *(*of)(const ScoreRow *row);
} Label;

enum { MOST_LABELS = 3 };

static void step_rows(Grid *grid, const Label *labels, const ScoreRow *rows, int count) {
    for (int i = 0; i < count; i++) {
        grid_row(grid);
        for (const Label *label = labels; label->column; label++) {
            grid_cell(grid, "%.*s", label == labels ? SOURCE_WIDTH : INT_MAX, label->of(&rows[i]));
        }
        step_cells(grid, &rows[i].score);
    }
}

static Grid *step_grid(const Label *labels) {
    static const GridColumn scores[] = {{"rows", true}, {"median", true},      {"90th", true},
                                        {"bias", true}, {"in interval", true}, {"one MFU: median", true},
                                        {"90th", true}, {"MFU", true}};
    GridColumn columns[MOST_LABELS + sizeof scores / sizeof *scores];
    int count = 0;
    for (; labels[count].column; count++) {
        columns[count] = (GridColumn){labels[count].column, false};
    }
    memcpy(columns + count, scores, sizeof scores);
    return grid_new(columns, count + (int)(sizeof scores / sizeof *scores));
}

static Status print_steps(const Accuracy *accuracy, FILE *out, Error *error) {
    static const Label labels[] = {{"target", target_of}, {"cluster", cluster_of}, {NULL, NULL}};
    const ScoreTable *tables[] = {&accuracy->step_by, &accuracy->step_by_target};
    const ScoreRow all = {.score = accuracy->step};
    Grid *grid = step_grid(labels);
    for (int t = 0; t < 2; t++) {
        step_rows(grid, labels, tables[t]->rows, tables[t]->count);
    }
    step_rows(grid, labels, &all, 1);
    return grid_print(grid, out, error);
}

static Status print_table(const Label *labels, const ScoreTable *table, FILE *out, Error *error) {
    Grid *grid = step_grid(labels);
    step_rows(grid, labels, table->rows, table->count);
    return grid_print(grid, out, error);
}

static Status print_sources(const Accuracy *accuracy, FILE *out, Error *error) {
    static const Label labels[] = {{"source", source_of}, {NULL, NULL}};
    return print_table(labels, &accuracy->step_by_source, out, error);
}

static Status print_halves(const Accuracy *accuracy, FILE *out, Error *error) {
    static const Label labels[] = {{"target", target_of}, {"half", half_of}, {NULL, NULL}};
    return print_table(labels, &accuracy->step_by_half, out, error);
}

// Nothing where all rows are of one class: the first table is theirs.
static Status print_classes(const Accuracy *accuracy, FILE *out, Error *error) {
    static const Label labels[] = {{"class", class_of}, {"target", target_of}, {"cluster", cluster_of}, {NULL, NULL}};
    const ScoreTable *table = &accuracy->step_by_class;
    if (table->count == 0 || strcmp(table->rows[0].class, table->rows[table->count - 1].class) == 0) {
        return STATUS_OK;
    }
    fputc('\n', out);
    return print_table(labels, table, out, error);
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
