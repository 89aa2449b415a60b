// The scores, and scores and rows for spreadsheets.

#include "reports/accuracy.h"
#include "reports/json_objects.h"
#include "reports/schemas.h"

enum { SOURCE_WIDTH = 44, STEP_ONLY = 5 };

json_t *json_baseline(const ErrorScore *score) {
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
    {.key = "baseline_constant_mfu", .nested = baseline_of},
};
const RecordSchema schema_step_scores = {scores, sizeof scores / sizeof scores[0], sizeof(ScoreRow), "step_time"};
// Memory has no interval and no constant to hold against it.
const RecordSchema schema_memory_scores = {scores, sizeof scores / sizeof scores[0] - STEP_ONLY, sizeof(ScoreRow),
                                           "memory"};

static void score_lines(Csv *csv, const char *what, const ScoreTable *table) {
    const RecordSchema schema = record_about(&schema_step_scores, what);
    record_csv_lines(&schema, table->rows, table->count, csv);
}

Status csv_accuracy(const Accuracy *accuracy, FILE *out, Error *error) {
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
    char plan[PLAN_TEXT_BYTES];
    csv_row(csv, "ssssssnss", file, run->row->id, run->row->source, run->row->target, run->row->cluster,
            run->row->model, csv_known(!run->skipped, run->request.world),
            run->skipped ? NULL : plan_text(&run->plan, plan), run->skipped);
    time_fields(csv, run);
    memory_fields(csv, run);
    csv_end_line(csv);
}

Status csv_accuracy_rows(const Accuracy *accuracy, FILE *out, Error *error) {
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
