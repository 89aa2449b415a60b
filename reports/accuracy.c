// The scores of `ndtune accuracy`, for people and programs. Scores of empty sets are null.

#include "reports/accuracy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/json_objects.h"
#include "reports/schemas.h"

enum { SOURCE_WIDTH = 44, STEP_ONLY = 6 };

static json_t *json_baseline(const ErrorScore *score) {
    const bool known = score->n > 0;
    return json_pack("{s:o, s:o, s:o}", "mfu", json_known(known, score->baseline_mfu), "median_abs_error",
                     json_known(known, score->baseline_median_abs), "p90_abs_error",
                     json_known(known, score->baseline_p90_abs));
}

static RecordValue short_source(const ScoreRow *row, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%.*s", SOURCE_WIDTH, row->source ? row->source : "");
    return record_of_text(row->source ? text : NULL);
}

NESTED_IN(baseline_of, ScoreRow, void, json_baseline(&of->score))
KNOWN(any, ScoreRow, of->score.n > 0)
KNOWN(is_step, ScoreRow, of->score.n > 0 && of->score.baseline_mfu > 0)
MADE(source, ScoreRow, short_source(of, text))
MADE_IN(what, ScoreRow, char, record_of_text(in))

static const RecordField scores[] = {
    {.key = "what", BY(what), .no_json = true},
    {FIELD("target", TEXT, ScoreRow, target), COLUMN(2, "target"), .missing = "all", .optional = true},
    {FIELD("cluster", TEXT, ScoreRow, cluster), COLUMN(3, "cluster"), .missing = "all clusters", .optional = true},
    {FIELD("source", TEXT, ScoreRow, source), .optional = true},
    {FIELD("software", TEXT, ScoreRow, software), COLUMN(5, "software"), .optional = true, .no_csv = true},
    {FIELD("kind", TEXT, ScoreRow, kind), COLUMN(6, "measured"), .optional = true},
    {FIELD("half", TEXT, ScoreRow, half), COLUMN(5, "half"), .optional = true, .no_csv = true},
    {FIELD("class", TEXT, ScoreRow, class), COLUMN(1, "class"), .optional = true, .no_csv = true},
    {BY(source), COLUMN(4, "source"), .optional = true},
    {FIELD("n", INT, ScoreRow, score.n), COLUMN(7, "rows")},
    {FIELD("median_abs_error", REAL, ScoreRow, score.median_abs), COLUMN(8, "median"), .known = any,
     .unit = AS_PERCENT},
    {FIELD("p90_abs_error", REAL, ScoreRow, score.p90_abs), COLUMN(9, "90th"), .known = any, .unit = AS_PERCENT},
    {FIELD("median_bias", REAL, ScoreRow, score.bias), COLUMN(10, "bias"), .known = any, .unit = AS_CHANGE},
    {FIELD("in_interval", REAL, ScoreRow, score.in_interval), COLUMN(11, "in interval"), .known = is_step,
     .unit = AS_PERCENT},
    {FIELD("baseline_mfu", REAL, ScoreRow, score.baseline_mfu), COLUMN(14, "MFU"), .known = is_step, .unit = AS_PERCENT,
     .no_json = true},
    {FIELD("baseline_median_abs_error", REAL, ScoreRow, score.baseline_median_abs), COLUMN(12, "one MFU: median"),
     .known = is_step, .unit = AS_PERCENT, .no_json = true},
    {FIELD("baseline_p90_abs_error", REAL, ScoreRow, score.baseline_p90_abs), COLUMN(13, "90th"), .known = is_step,
     .unit = AS_PERCENT, .no_json = true},
    {FIELD("scaled_median_abs_error", REAL, ScoreRow, score.scaled_median_abs), COLUMN(15, "scaled"), .known = is_step,
     .unit = AS_PERCENT},
    {.key = "baseline_constant_mfu", .nested = baseline_of},
};
const RecordSchema schema_step_scores = {scores, sizeof scores / sizeof scores[0], sizeof(ScoreRow), "step_time"};
// Memory has no interval and no baseline constant.
const RecordSchema schema_memory_scores = {scores, sizeof scores / sizeof scores[0] - STEP_ONLY, sizeof(ScoreRow),
                                           "memory"};

static void score_lines(Csv *csv, const char *what, const ScoreTable *table) {
    const RecordSchema schema = record_about(&schema_step_scores, what);
    record_csv_lines(&schema, table->rows, table->count, csv);
}

static Status csv_accuracy(const void *answer, FILE *out, Error *error) {
    const Accuracy *accuracy = answer;
    Csv csv = {.out = out};
    ScoreRow step = {.score = accuracy->step}, memory = {.score = accuracy->memory};
    record_csv_header(&schema_step_scores, &csv);
    score_lines(&csv, "step_time", &(ScoreTable){&step, 1});
    score_lines(&csv, "step_time", &accuracy->step_by_target);
    score_lines(&csv, "step_time", &accuracy->step_by);
    score_lines(&csv, "step_time", &accuracy->step_by_source);
    score_lines(&csv, "memory", &(ScoreTable){&memory, 1});
    score_lines(&csv, "memory", &accuracy->memory_by_kind);
    score_lines(&csv, "memory", &accuracy->memory_by);
    csv_left_out(accuracy, &csv);
    return csv_finish(&csv, error);
}

static const char row_header[] =
    "file,id,source,target,cluster,model,world,plan,skipped,measured_step_s,predicted_step_s,step_low_s,step_high_s,"
    "step_error,compute_s" AXES_EXPOSED_COLUMNS ",optimizer_s,overhead_s,"
    "measured_mfu,mem_kind,measured_bytes,predicted_bytes,memory_error,peak_bytes,reserved_bytes,limit_bytes,fits,"
    "peak_phase,top_buffer";

static void time_fields(Csv *csv, const RunCase *run) {
    const Prediction *prediction = &run->prediction;
    const bool both = accuracy_has_step(run), known = !run->skipped && prediction->step_s > 0;
    csv_row(csv, "nnnnnn", csv_known(run->measured_step_s > 0, run->measured_step_s),
            csv_known(known, prediction->step_s), csv_known(known, prediction->step_low_s),
            csv_known(known, prediction->step_high_s), both ? accuracy_step_error(run) : NAN,
            csv_known(known, prediction->compute_s));
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        csv_number(csv, known, prediction->exposed_s[axis]);
    }
    csv_row(csv, "nnn", csv_known(known, prediction->optimizer_s), csv_known(known, prediction->overhead_s),
            both ? accuracy_measured_mfu(run) : NAN);
}

static void memory_fields(Csv *csv, const RunCase *run) {
    const MemoryBreakdown *memory = &run->prediction.memory;
    MemoryKind kind = MEMORY_KIND_UNKNOWN;
    double measured = 0, predicted = 0;
    const bool both = accuracy_memory(run, &kind, &measured, &predicted);
    csv_row(csv, "snnnnnnsss", both ? memory_kind_names[kind] : NULL, csv_known(both, measured),
            csv_known(both, predicted), both ? predicted / measured - 1 : NAN,
            csv_known(!run->skipped, memory->peak_bytes), csv_known(!run->skipped, memory->reserved_bytes),
            csv_known(!run->skipped, run->request.memory_limit_bytes),
            run->skipped           ? NULL
            : run->prediction.fits ? "1"
                                   : "0",
            memory->peak_phase, memory->top_name);
}

static void row_line(Csv *csv, const char *file, const RunCase *run) {
    csv_row(csv, "ssssssnss", file, run->row->id, run->row->source, run->row->target,
            run->skipped ? run->row->cluster : run->request.cluster.name, run->row->model,
            csv_known(!run->skipped, run->request.world), run->skipped ? NULL : plan_text(&run->plan, PLAN_BUFFER),
            run->skipped);
    time_fields(csv, run);
    memory_fields(csv, run);
    csv_end_line(csv);
}

Status csv_accuracy_rows(const void *answer, FILE *out, Error *error) {
    const Accuracy *accuracy = answer;
    Csv csv = {.out = out};
    csv_header(&csv, row_header);
    for (int i = 0; i < accuracy->runs.count; i++) {
        row_line(&csv, "runs", &accuracy->cases[i]);
    }
    for (int i = 0; i < accuracy->failures.count; i++) {
        row_line(&csv, "oom", &accuracy->failure_cases[i]);
    }
    return csv_finish(&csv, error);
}

static json_t *table_array(const ScoreTable *table, const RecordSchema *schema) {
    return record_array(schema, table->rows, table->count);
}

static json_t *step_object(const Accuracy *accuracy) {
    const RecordSchema *schema = &schema_step_scores;
    json_t *object = record_object(schema, &(ScoreRow){.score = accuracy->step});
    json_object_del(object, "baseline_constant_mfu");  // a top-level key of its own
    json_object_set_new(object, "by", table_array(&accuracy->step_by, schema));
    json_object_set_new(object, "by_target", table_array(&accuracy->step_by_target, schema));
    json_object_set_new(object, "by_source", table_array(&accuracy->step_by_source, schema));
    json_object_set_new(object, "by_source_and_cluster", table_array(&accuracy->step_by_machine, schema));
    json_object_set_new(object, "by_class", table_array(&accuracy->step_by_class, schema));
    json_object_set_new(object, "by_software", table_array(&accuracy->step_by_software, schema));
    json_object_set_new(object, "by_half", table_array(&accuracy->step_by_half, schema));
    json_object_set_new(object, "measured", record_object(schema, &(ScoreRow){.score = accuracy->step_measured}));
    return object;
}

static json_t *memory_object(const Accuracy *accuracy) {
    const RecordSchema *schema = &schema_memory_scores;
    json_t *object = record_object(schema, &(ScoreRow){.score = accuracy->memory});
    json_object_set_new(object, "by", table_array(&accuracy->memory_by, schema));
    json_object_set_new(object, "by_kind", table_array(&accuracy->memory_by_kind, schema));
    return object;
}

static json_t *oom_object(const OomScore *oom) {
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "n", oom->n, "called_infeasible", oom->called_infeasible,
                     "certain", oom->certain, "certain_called_infeasible", oom->certain_called_infeasible,
                     "feasible_rows", oom->feasible_rows, "called_feasible", oom->called_feasible);
}

static json_t *ranking_measured(const RankingScore *ranking) {
    const bool known = ranking->groups > 0;
    return json_pack("{s:i, s:o, s:o}", "groups", ranking->groups, "median_regret",
                     json_known(known, ranking->median_regret), "p90_regret", json_known(known, ranking->p90_regret));
}

static json_t *ranked_groups(const RankingScore *ranking) {
    json_t *array = json_array();
    for (int i = 0; i < ranking->groups; i++) {
        const RankedGroup *group = &ranking->each[i];
        json_array_append_new(array, json_pack("{s:s, s:i, s:f, s:o, s:s, s:s}", "group", group->name, "plans",
                                               group->plans, "regret", group->regret, "kendall_tau",
                                               json_known(isfinite(group->kendall_tau), group->kendall_tau), "picked",
                                               group->picked, "best", group->best));
    }
    return array;
}

static json_t *ranking_object(const Accuracy *accuracy) {
    const RankingScore *ranking = &accuracy->ranking;
    const bool known = ranking->groups > 0;
    return json_pack("{s:i, s:i, s:o, s:o, s:o, s:s?, s:o, s:o, s:o, s:i, s:o, s:o}", "groups", ranking->groups,
                     "not_scored", ranking->not_scored, "median_regret", json_known(known, ranking->median_regret),
                     "p90_regret", json_known(known, ranking->p90_regret), "worst_regret",
                     json_known(known, ranking->worst_regret), "worst_group", ranking->worst_group,
                     "median_kendall_tau", json_known(known, ranking->median_kendall_tau), "baseline_median_regret",
                     json_known(known, ranking->baseline_median_regret), "baseline_p90_regret",
                     json_known(known, ranking->baseline_p90_regret), "unknown_ids", ranking->unknown_ids, "measured",
                     ranking_measured(&accuracy->ranking_measured), "by_group", ranked_groups(ranking));
}

static json_t *skipped_array(const RunCase *cases, int count) {
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        if (cases[i].skipped) {
            json_array_append_new(array, json_pack("{s:s, s:s}", "id", cases[i].row->id, "reason", cases[i].skipped));
        }
    }
    return array;
}

static json_t *losses_array(const Accuracy *accuracy) {
    int count = 0;
    const RunLoss *losses = run_case_losses(&count);
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(array, json_pack("{s:s, s:s, s:i}", "column", losses[i].column, "what", losses[i].what,
                                               "rows", accuracy->loss_rows[i]));
    }
    return array;
}

static Status json_accuracy(const void *answer, FILE *out, Error *error) {
    const Accuracy *accuracy = answer;
    static const char *const efforts[EFFORT_COUNT] = {"simulate", "estimate", "exhaustive"};
    json_t *root = json_pack("{s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
                             "ndtune.accuracy/1", "engine_version", tune_engine_version(), "effort",
                             efforts[accuracy->options.effort], "rows", accuracy->runs.count, "scored",
                             accuracy->scored, "skipped", skipped_array(accuracy->cases, accuracy->runs.count),
                             "failures_skipped", skipped_array(accuracy->failure_cases, accuracy->failures.count),
                             "missing_columns", json_strings(accuracy->runs.missing, accuracy->runs.missing_count),
                             "not_expressed", losses_array(accuracy), "step_time", step_object(accuracy), "memory",
                             memory_object(accuracy), "baseline_constant_mfu", json_baseline(&accuracy->step));
    if (root) {
        json_object_set_new(root, "oom", oom_object(&accuracy->oom));
        json_object_set_new(root, "ranking", ranking_object(accuracy));
        if (accuracy->options.leave_out) {
            json_object_set_new(root, "left_out", json_left_out(&accuracy->left_out));
        }
    }
    return json_print(root, out, error);
}

enum { MAX_SKIPS = 30 };

// The two tables and the overall row, as one.
static Status print_scores(const RecordSchema *schema, const ScoreTable *first, const ScoreTable *second,
                           const ScoreRow *all, FILE *out, Error *error) {
    const int split = first->count, count = split + second->count + 1;
    ScoreRow *rows = calloc((size_t)count, sizeof *rows);
    FAIL_IF(!rows, error, STATUS_ENVIRONMENT, "no memory for a table");
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

static bool names_sources(const ScoreTable *by_source) {
    return by_source->count > 1 || (by_source->count == 1 && by_source->rows->source && by_source->rows->source[0]);
}

// Where a constant that was fitted to the very rows is nearer than the model.
static void print_beaten(const ScoreTable *table, FILE *out) {
    int judged = 0, beaten = 0, beaten_scaled = 0;
    for (int i = 0; i < table->count; i++) {
        judged += accuracy_is_judged(&table->rows[i]);
        beaten += accuracy_is_beaten(&table->rows[i]);
        beaten_scaled += accuracy_is_beaten_scaled(&table->rows[i]);
    }
    if (judged == 0) {
        return;
    }
    fprintf(
        out,
        "\nSources with five rows and more on one cluster: nearer in the median than the best constant MFU of these "
        "rows in %d of %d, scaled by a factor of theirs in %d\n",
        judged - beaten, judged, judged - beaten_scaled);
    for (int i = 0; i < table->count; i++) {
        const ScoreRow *row = &table->rows[i];
        if (accuracy_is_beaten(row)) {
            fprintf(out, "  %5d rows  %.1f %%, one MFU %.1f %%, scaled %.1f %%: %.*s on %s\n", row->score.n,
                    100 * row->score.median_abs, 100 * row->score.baseline_median_abs,
                    100 * row->score.scaled_median_abs, SOURCE_WIDTH, row->source ? row->source : "(no source)",
                    row->cluster);
        }
    }
}

static double share(int part, int whole) {
    return whole > 0 ? 100.0 * part / whole : 0;
}

static void print_verdicts(const Accuracy *accuracy, FILE *out) {
    const OomScore *oom = &accuracy->oom;
    if (oom->n == 0 && oom->feasible_rows == 0) {
        return;
    }
    fprintf(out, "\nOut of memory\n");
    if (accuracy->options.oom_paths || oom->n > 0) {
        fprintf(out, "  failures called infeasible: %d of %d (%.1f %%); certain ones %d of %d (%.1f %%)\n",
                oom->called_infeasible, oom->n, share(oom->called_infeasible, oom->n), oom->certain_called_infeasible,
                oom->certain, share(oom->certain_called_infeasible, oom->certain));
    }
    fprintf(out, "  runs called feasible: %d of %d whose memory size is known (%.1f %%)\n", oom->called_feasible,
            oom->feasible_rows, share(oom->called_feasible, oom->feasible_rows));
}

// Where some rows are no measurements.
static void print_measured(const Accuracy *accuracy, FILE *out) {
    const ErrorScore *score = &accuracy->step_measured;
    const int computed = accuracy->step.n - score->n;
    if (computed > 0 && score->n > 0) {
        fprintf(out,
                "\n%d of these rows are what a simulator of their source computed. The %d that were measured: median "
                "%.1f %%, 90th %.1f %%, bias %+.1f %%, in interval %.1f %%\n",
                computed, score->n, 100 * score->median_abs, 100 * score->p90_abs, 100 * score->bias,
                100 * score->in_interval);
    }
}

static void print_ranking(const Accuracy *accuracy, FILE *out) {
    const RankingScore *ranking = &accuracy->ranking, *measured = &accuracy->ranking_measured;
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
    if (measured->groups > 0 && measured->groups < ranking->groups) {
        fprintf(out, "  regret over the %d groups of measured runs: median %.3f, 90th percentile %.3f\n",
                measured->groups, measured->median_regret, measured->p90_regret);
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

static Status table_accuracy(const void *answer, FILE *out, Error *error) {
    const Accuracy *accuracy = answer;
    fprintf(out, "%s: %d rows, %d scored, %d not; errors are predicted / measured - 1, times by %s\n\n",
            accuracy->runs.path, accuracy->runs.count, accuracy->scored, accuracy->runs.count - accuracy->scored,
            accuracy->options.effort == EFFORT_ESTIMATE ? "estimate" : "simulation");
    fprintf(out, "Step time; beside it, one constant MFU fitted to the rows of the line\n");
    TRY(print_scores(&schema_step_scores, &accuracy->step_by, &accuracy->step_by_target,
                     &(ScoreRow){.score = accuracy->step}, out, error));
    print_measured(accuracy, out);
    if (names_sources(&accuracy->step_by_source)) {
        TRY(print_steps(&accuracy->step_by_source, out, error));
    }
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
    print_beaten(&accuracy->step_by_machine, out);
    if (accuracy->memory_by.count > 0) {
        fprintf(out, "\nPeak memory (what nobody named is held against what its framework logs, else live bytes)\n");
        TRY(print_scores(&schema_memory_scores, &accuracy->memory_by, &accuracy->memory_by_kind,
                         &(ScoreRow){.kind = "known kinds", .score = accuracy->memory}, out, error));
    }
    print_verdicts(accuracy, out);
    print_ranking(accuracy, out);
    print_losses(accuracy, out);
    print_skips(accuracy, out);
    return table_left_out(accuracy, out, error);
}

const Answer answer_accuracy = {.table = table_accuracy, .json = json_accuracy, .csv = csv_accuracy};
