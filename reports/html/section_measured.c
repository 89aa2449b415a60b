// Predicted against measured, with intervals; where nothing was measured, how to change that.

#include <math.h>

#include "reports/format.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/schemas.h"

static void write_agreement(const Validation *validation, FILE *out) {
    const Agreement *agreement = &validation->agreement;
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
                      format_layout(best, FORMAT_BUFFER), agreement->regret);
    }
    fputs("</p>\n", out);
}

static void write_unmeasured(const void *what, FILE *out) {
    const Validation *validation = what;
    for (int i = 0; i < validation->row_count; i++) {
        const ValidateRow *row = &validation->rows[i];
        if (row->reason) {
            fprintf(out, "%s %s: %s\n", format_layout(&row->prediction->plan.mesh, FORMAT_BUFFER), row->state,
                    row->reason);
        }
    }
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
    if (report->failed_count == 0) {
        return;
    }
    fputs("<details id=\"failed-runs\"><summary>", out);
    markup_format(out, "%d run%s of this model did not end well", report->failed_count,
                  report->failed_count == 1 ? "" : "s");
    fputs("</summary>\n", out);
    table_records("table-failed", "Runs that failed, with their diagnosis", &schema_runs, report->failed,
                  report->failed_count, out);
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
    table_records("table-measured", "Predicted against measured steps", &schema_measured_rows, validation->rows,
                  validation->row_count, out);
    markup_lines(write_unmeasured, validation, out);
    write_kinds(validation, out);
    write_failed(report, out);
}
