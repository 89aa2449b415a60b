// Predicted against measured, with intervals; where nothing was measured, how to change that.

#include <math.h>
#include <string.h>

#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/schemas.h"
#include "reports/words.h"
#include "sim/base/text.h"

static void write_agreement(const Validation *validation, FILE *out) {
    const Agreement *agreement = &validation->agreement;
    char mesh[WORDS_BYTES];
    fputs("<p>", out);
    markup_format(out, "%d plan%s ran for real (%s). ", agreement->count, agreement->count == 1 ? "" : "s",
                  validation->source);
    markup_format(out, "Median error %.1f %%, bias %+.1f %%; %d of %d within the predicted interval. ",
                  100 * agreement->median_abs_error, 100 * agreement->median_bias, validation->in_interval,
                  agreement->count);
    if (isfinite(agreement->constant_median_abs_error)) {
        markup_format(out, "One constant rate, fitted to these very runs, errs by %.1f %%. ",
                      100 * agreement->constant_median_abs_error);
    }
    if (isfinite(agreement->kendall_tau)) {
        markup_format(out, "Kendall's tau of the two rankings %.2f (1 = the same order). ", agreement->kendall_tau);
    }
    if (isfinite(validation->noise)) {
        markup_format(out, "Repeats of the same plan differ by %.1f %%. ", 100 * validation->noise);
    }
    if (agreement->best_measured >= 0) {
        const Mesh *best = &validation->rows[agreement->best_measured].prediction->plan.mesh;
        markup_format(out, "Fastest measured: %s; what was predicted best takes %.2f times its time per token.",
                      words_layout(best, mesh), agreement->regret);
    }
    fputs("</p>\n", out);
}

static void write_row(MarkupTable *table, const ValidateRow *row) {
    const Prediction *prediction = row->prediction;
    char text[WORDS_BYTES], low[TEXT_UNIT_BYTES], high[TEXT_UNIT_BYTES], middle[TEXT_UNIT_BYTES];
    table_row(table, NULL);
    table_cell(table, "%d", row->place);
    table_cell(table, "%s", words_layout(&prediction->plan.mesh, text));
    table_cell(table, "%s", words_interval(prediction, text));
    if (row->measured_s <= 0) {
        table_rest(table, "%s: %s", row->state ? row->state : "not run", row->reason ? row->reason : "no reason known");
        return;
    }
    table_cell(table, "%s (%s .. %s)", text_seconds(middle, row->measured_s), text_seconds(low, row->low_s),
               text_seconds(high, row->high_s));
    table_cell(table, "%+.1f %%", 100 * (prediction->step_s / row->measured_s - 1));
    table_cell(table, "%s",
               row->measured_s >= prediction->step_low_s && row->measured_s <= prediction->step_high_s ? "inside"
                                                                                                       : "outside");
    table_cell(table, "%d", row->run_count);
}

static void write_kinds(const Validation *validation, FILE *out) {
    if (validation->kind_count > 0) {
        fputs("<details><summary>By kind of task</summary>\n", out);
        table_records("table-kinds", "Tasks of one step of each measured plan, summed", &schema_kinds,
                      validation->kinds, validation->kind_count, out);
        fputs("</details>\n", out);
    }
}

static void write_failed(const HtmlReport *report, FILE *out) {
    static const MarkupColumn columns[] = {{"run", true},   {"started", false}, {"plan", false},
                                           {"host", false}, {"state", false},   {"why", false}};
    if (report->failed_count == 0) {
        return;
    }
    fputs("<details id=\"failed-runs\"><summary>", out);
    markup_format(out, "%d run%s of this model did not end well", report->failed_count,
                  report->failed_count == 1 ? "" : "s");
    fputs("</summary>\n", out);
    MarkupTable table = table_begin("table-failed", "Runs that failed, with their diagnosis", columns, 6, out);
    for (int i = 0; i < report->failed_count; i++) {
        const StoredRun *run = &report->failed[i];
        table_row(&table, NULL);
        table_cell(&table, "%lld", (long long)run->id);
        table_cell(&table, "%s", run->started_at);
        table_cell(&table, "%.*s", (int)strcspn(run->plan, " "), run->plan);
        table_cell(&table, "%s", run->host);
        table_cell(&table, "%s", run->state);
        table_cell(&table, "%s", run->failure ? run->failure : "not said");
    }
    table_end(&table);
    fputs("</details>\n", out);
}

void section_measured(const HtmlReport *report, FILE *out) {
    const Validation *validation = report->validation;
    if (!validation || validation->row_count == 0) {
        fputs("<p>The store has no measured run of these plans: <code>ndtune validate --top 3</code> runs the best "
              "for real, and <code>ndtune validate --with TARGET -- COMMAND</code> times your own framework.</p>\n",
              out);
        write_failed(report, out);
        return;
    }
    if (validation->agreement.count > 0) {
        write_agreement(validation, out);
    }
    static const MarkupColumn columns[] = {{"place", true},
                                           {"mesh", false},
                                           {"predicted step (80 % interval)", false},
                                           {"measured step (90 % interval)", false},
                                           {"error", true},
                                           {"interval", false},
                                           {"runs", true}};
    MarkupTable table = table_begin("table-measured", "Predicted against measured steps", columns, 7, out);
    for (int i = 0; i < validation->row_count; i++) {
        write_row(&table, &validation->rows[i]);
    }
    table_end(&table);
    write_kinds(validation, out);
    write_failed(report, out);
}
