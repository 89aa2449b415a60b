// What calibration changed in the profile: from which runs, how accurate on those held out, and each fitted parameter
// with its remaining uncertainty.

#include <math.h>
#include <string.h>

#include "reports/html/markup.h"
#include "reports/html/sections.h"

static void write_runs(const ClusterCalibration *calibration, FILE *out) {
    fputs("<p>", out);
    markup_format(out, "Calibrated%s%s from %s with %d run%s of %d shape%s. ", calibration->date ? " on " : "",
                  calibration->date ? calibration->date : "",
                  calibration->parent ? calibration->parent : "an unknown profile", calibration->run_count,
                  calibration->run_count == 1 ? "" : "s", calibration->shapes, calibration->shapes == 1 ? "" : "s");
    if (calibration->held_out_shapes > 0) {
        markup_format(out, "On %d held-out shape%s the median error went from %.1f %% to %.1f %%. ",
                      calibration->held_out_shapes, calibration->held_out_shapes == 1 ? "" : "s",
                      100 * calibration->held_out_before, 100 * calibration->held_out_after);
    } else {
        fputs("There were too few shapes to hold one out. ", out);
    }
    markup_format(out, "What is left of a plan's step time: %.1f %%, of a repeat: %.1f %%.",
                  100 * calibration->misfit_sd, 100 * calibration->noise_sd);
    fputs("</p>\n", out);
}

static RecordValue between(double log_factor, double sd, char text[RECORD_BYTES]) {
    static const double QUANTILE = 1.2816;  // of the normal distribution, 90 % on each side
    snprintf(text, RECORD_BYTES, "%.3f .. %.3f", exp(log_factor - QUANTILE * sd), exp(log_factor + QUANTILE * sd));
    return record_of_text(text);
}

static RecordValue verdict_of(const ClusterCalibrated *row, char text[RECORD_BYTES]) {
    const bool said = !row->one_set || (row->verdict && strstr(row->verdict, "one run set"));
    snprintf(text, RECORD_BYTES, "%s%s", row->verdict ? row->verdict : "", said ? "" : " (seen by one run set only)");
    return record_of_text(text);
}

MADE(factor, ClusterCalibrated, record_of_real(true, exp(of->log_factor)))
MADE(interval, ClusterCalibrated, between(of->log_factor, of->sd, text))
MADE(prior, ClusterCalibrated, between(0, of->prior_sd, text))
MADE(verdict, ClusterCalibrated, verdict_of(of, text))

static const RecordField calibrated_rows[] = {
    {FIELD(NULL, TEXT, ClusterCalibrated, name), COLUMN(1, "parameter")},
    {FIELD(NULL, TEXT, ClusterCalibrated, target), COLUMN(2, "of"), .missing = "the machine"},
    {BY(factor), COLUMN(3, "factor"), .right = true, .digits = 3},
    {BY(interval), COLUMN(4, "80 % interval")},
    {BY(prior), COLUMN(5, "before the runs")},
    {FIELD(NULL, INT, ClusterCalibrated, plans), COLUMN(6, "plans")},
    {BY(verdict), COLUMN(7, "verdict")},
};
static SCHEMA(calibrated_rows, ClusterCalibrated);

void section_calibration(const HtmlReport *report, FILE *out) {
    const ClusterCalibration *calibration = report->result->request->cluster.calibration;
    if (!calibration) {
        fputs("<p>Nobody calibrated this profile: its numbers are not fitted to runs of yours.</p>\n", out);
        return;
    }
    write_runs(calibration, out);
    table_records("table-calibration", "Fitted parameters, as factors over the parent's numbers",
                  &schema_calibrated_rows, calibration->parameters, calibration->count, out);
}
