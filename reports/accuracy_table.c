// The scores for people: step time by target and cluster and by source, the one-constant baseline beside each; then
// memory, verdicts, rankings, and what was left out and why.

#include <stdlib.h>
#include <string.h>

#include "reports/accuracy.h"
#include "reports/schemas.h"

enum { MAX_SKIPS = 30 };

// Two tables and a row for all, as one.
static Status print_scores(const RecordSchema *schema, const ScoreTable *first, const ScoreTable *second,
                           const ScoreRow *all, FILE *out, Error *error) {
    const int split = first->count, count = split + second->count + 1;
    ScoreRow *rows = calloc((size_t)count, sizeof *rows);
    if (!rows) {
        return error_set(error, STATUS_ENVIRONMENT, "no memory for a table");
    }
    for (int i = 0; i < count; i++) {
        rows[i] = i < split ? first->rows[i] : i + 1 < count ? second->rows[i - split] : *all;
    }
    const Status status = record_table(schema, rows, count, out, error);
    free(rows);
    return status;
}

static Status print_steps(const ScoreTable *table, FILE *out, Error *error) {
    fputc('\n', out);
    return record_table(&schema_step_scores, table->rows, table->count, out, error);
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
    TRY(print_scores(&schema_step_scores, &accuracy->step_by, &accuracy->step_by_target,
                     &(ScoreRow){.score = accuracy->step}, out, error));
    TRY(print_steps(&accuracy->step_by_source, out, error));
    const ScoreTable *classes = &accuracy->step_by_class;  // the first table is theirs where all are of one
    if (classes->count > 0 && strcmp(classes->rows[0].class, classes->rows[classes->count - 1].class) != 0) {
        TRY(print_steps(classes, out, error));
    }
    if (accuracy->step_by_software.count > 0) {
        TRY(print_steps(&accuracy->step_by_software, out, error));
    }
    if (accuracy->step_by_half.count > 0) {
        TRY(print_steps(&accuracy->step_by_half, out, error));
    }
    fprintf(out, "\nPeak memory (what nobody named is held against what its framework logs, else live bytes)\n");
    TRY(print_scores(&schema_memory_scores, &accuracy->memory_by, &accuracy->memory_by_kind,
                     &(ScoreRow){.kind = "known kinds", .score = accuracy->memory}, out, error));
    print_verdicts(accuracy, out);
    print_ranking(accuracy, out);
    print_losses(accuracy, out);
    print_skips(accuracy, out);
    TRY(table_left_out(accuracy, out, error));
    return STATUS_OK;
}
