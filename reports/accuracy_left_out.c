// Scores with each source left out of the fit, next to those as shipped; which source each fitted number depends on.

#include "reports/accuracy.h"
#include "reports/schemas.h"

enum { SOURCE_WIDTH = 44 };

static RecordValue short_text(const char *whole, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%.*s", SOURCE_WIDTH, whole ? whole : "");
    return record_of_text(whole ? text : NULL);
}

KNOWN(any_rows, LeftOutScore, of->n > 0)
MADE(source_words, LeftOutScore, short_text(of->source, text))

static const RecordField scores[] = {
    {FIELD("source", TEXT, LeftOutScore, source), .optional = true},
    {BY(source_words), COLUMN(1, "source"), .missing = "all", .optional = true},
    {FIELD("target", TEXT, LeftOutScore, target), COLUMN(2, "target"), .optional = true},
    {FIELD("accelerator", TEXT, LeftOutScore, accelerator), COLUMN(3, "accelerator"), .optional = true},
    {FIELD("n", INT, LeftOutScore, n), COLUMN(4, "rows")},
    {FIELD("median_abs_error", REAL, LeftOutScore, median_abs), COLUMN(5, "median"), .known = any_rows,
     .unit = AS_PERCENT},
    {FIELD("p90_abs_error", REAL, LeftOutScore, p90_abs), COLUMN(6, "90th"), .known = any_rows, .unit = AS_PERCENT},
    {FIELD("median_bias", REAL, LeftOutScore, bias), COLUMN(7, "bias"), .known = any_rows, .unit = AS_CHANGE},
    {FIELD("in_interval", REAL, LeftOutScore, in_interval), COLUMN(8, "in interval"), .known = any_rows,
     .unit = AS_PERCENT},
    {FIELD("left_out_median_abs_error", REAL, LeftOutScore, left_median_abs), COLUMN(9, "left out: median"),
     .known = any_rows, .unit = AS_PERCENT},
    {FIELD("left_out_p90_abs_error", REAL, LeftOutScore, left_p90_abs), COLUMN(10, "90th"), .known = any_rows,
     .unit = AS_PERCENT},
    {FIELD("left_out_median_bias", REAL, LeftOutScore, left_bias), COLUMN(11, "bias"), .known = any_rows,
     .unit = AS_CHANGE},
    {FIELD("left_out_in_interval", REAL, LeftOutScore, left_in_interval), COLUMN(12, "in interval"), .known = any_rows,
     .unit = AS_PERCENT},
    {FIELD("left_out_width_of_80", REAL, LeftOutScore, left_width), COLUMN(13, "80 % by times"), .known = any_rows,
     .digits = 2},
};
const RecordSchema schema_left_out = {scores, sizeof scores / sizeof scores[0], sizeof(LeftOutScore), NULL};

KNOWN(moves, LeftOutParameter, of->n > 0)
MADE(rests_words, LeftOutParameter, short_text(of->rests_on, text))

static const RecordField fitted[] = {
    {FIELD("number", TEXT, LeftOutParameter, name), COLUMN(1, "fitted number, over what ships")},
    {FIELD("without_any_run", REAL, LeftOutParameter, without), COLUMN(2, "without any run"), .digits = 2},
    {FIELD("fitted_on_all", REAL, LeftOutParameter, fitted), COLUMN(3, "on all"), .known = moves, .digits = 2},
    {FIELD("furthest", REAL, LeftOutParameter, left), COLUMN(4, "furthest"), .known = moves, .digits = 2},
    {FIELD("without_source", TEXT, LeftOutParameter, rests_on)},
    {BY(rests_words), COLUMN(5, "without the source")},
    {FIELD("n", INT, LeftOutParameter, n), COLUMN(6, "rows that move")},
    {FIELD("median_abs_error", REAL, LeftOutParameter, median_abs), COLUMN(7, "median"), .known = moves,
     .unit = AS_PERCENT},
    {FIELD("p90_abs_error", REAL, LeftOutParameter, p90_abs), COLUMN(8, "90th"), .known = moves, .unit = AS_PERCENT},
    {FIELD("without_median_abs_error", REAL, LeftOutParameter, without_median_abs), COLUMN(9, "without it: median"),
     .known = moves, .unit = AS_PERCENT},
    {FIELD("without_p90_abs_error", REAL, LeftOutParameter, without_p90_abs), COLUMN(10, "90th"), .known = moves,
     .unit = AS_PERCENT},
    {FIELD("basis", TEXT, LeftOutParameter, basis), COLUMN(11, "without any run it rests on")},
};
SCHEMA(fitted, LeftOutParameter);

Status table_left_out(const Accuracy *accuracy, FILE *out, Error *error) {
    const LeftOut *of = &accuracy->left_out;
    if (!accuracy->options.leave_out) {
        return STATUS_OK;
    }
    fputs(
        "\nStep time with each source left out: what was fitted, fitted again on the other sources (linear around what "
        "ships)\n",
        out);
    TRY(record_table(&schema_left_out, of->sources, of->source_count, out, error));
    fputc('\n', out);
    TRY(record_table(&schema_left_out, of->classes, of->class_count, out, error));
    fputc('\n', out);
    TRY(record_table(&schema_left_out, &of->all, 1, out, error));
    fputc('\n', out);
    return record_table(&schema_fitted, of->parameters, of->parameter_count, out, error);
}

json_t *json_left_out(const LeftOut *of) {
    return json_pack("{s:o, s:o, s:o, s:o}", "all", record_object(&schema_left_out, &of->all), "by_source",
                     record_array(&schema_left_out, of->sources, of->source_count), "by_accelerator",
                     record_array(&schema_left_out, of->classes, of->class_count), "fitted",
                     record_array(&schema_fitted, of->parameters, of->parameter_count));
}

static ScoreRow left_score(const LeftOutScore *of) {
    return (ScoreRow){.target = of->target,
                      .source = of->source,
                      .score = {.n = of->n,
                                .median_abs = of->left_median_abs,
                                .p90_abs = of->left_p90_abs,
                                .bias = of->left_bias,
                                .in_interval = of->left_in_interval}};
}

void csv_left_out(const Accuracy *accuracy, Csv *csv) {
    const LeftOut *of = &accuracy->left_out;
    const RecordSchema schema = record_about(&schema_step_scores, "step_time_left_out");
    for (int i = 0; accuracy->options.leave_out && i <= of->source_count; i++) {
        const ScoreRow row = left_score(i > 0 ? &of->sources[i - 1] : &of->all);
        record_csv_lines(&schema, &row, 1, csv);
    }
}
