// The tables of `ndtune calibrate`.

#include <math.h>
#include <string.h>

#include "reports/calibration.h"
#include "reports/schemas.h"
#include "reports/words.h"
#include "sim/base/text.h"

enum { PLANS_SHOWN = 40 };

static Status print_plans(const CalibrationReport *report, FILE *out, Error *error) {
    const int count = report->calibration->shape_count, shown = count < PLANS_SHOWN ? count : PLANS_SHOWN;
    TRY(record_table(&schema_calibrated, report->calibration->shapes, shown, out, error));
    if (count > shown) {
        fprintf(out, "... and %d more plans (--format csv has them all)\n", count - shown);
    }
    return STATUS_OK;
}

static void print_outliers(const CalibrationReport *report, FILE *out) {
    const Calibration *calibration = report->calibration;
    for (int i = 0; i < calibration->outlier_count; i++) {
        const CalibrationOutlier *outlier = &calibration->outliers[i];
        fprintf(out, "outlier: %s took %.2g times what %s; it counts little\n", outlier->id, outlier->ratio,
                outlier->against_repeats ? "its repeats took" : "the fit to the others says");
    }
}

static void print_verdict(const CalibrationReport *report, FILE *out) {
    const Calibration *calibration = report->calibration;
    const CalibrationScore *fit = &calibration->fit, *held = &calibration->held_out;
    fprintf(
        out, "step time over %d plans: median error %.1f %% before, %.1f %% after; 90th percentile %.1f %%, %.1f %%\n",
        fit->shapes, 100 * fit->before_median, 100 * fit->after_median, 100 * fit->before_p90, 100 * fit->after_p90);
    if (held->shapes > 0) {
        fprintf(out,
                "held out (each of %d plans by the fit without it): median error %.1f %% before, %.1f %% after; 90th "
                "percentile %.1f %%, %.1f %%%s\n",
                held->shapes, 100 * held->before_median, 100 * held->after_median, 100 * held->before_p90,
                100 * held->after_p90,
                held->after_median < held->before_median ? "" : ": NOT better than the profile as it was");
    } else {
        fprintf(out, "held out: too few plans to leave one out\n");
    }
    fprintf(out, "a plan's own misfit %.1f %% (sd), repeats of a plan %.1f %%\n",
            100 * calibration->posterior.misfit_sd, 100 * calibration->posterior.noise_sd);
    if (calibration->span_runs > 0) {
        fprintf(out, "spans of %d runs taught chip and links beside the step times\n", calibration->span_runs);
    }
}

Status table_calibration(const CalibrationReport *report, FILE *out, Error *error) {
    fprintf(out, "%s calibrated on %d runs of %d plans from %s\n\n", report->base->name, report->runs,
            report->calibration->shape_count, report->from);
    const CalibrationPosterior *posterior = &report->calibration->posterior;
    const RecordSchema parameters = record_about(&schema_parameters, posterior);
    TRY(record_table(&parameters, posterior->at, posterior->count, out, error));
    fputc('\n', out);
    TRY(print_plans(report, out, error));
    fputc('\n', out);
    print_verdict(report, out);
    print_outliers(report, out);
    for (int i = 0; i < report->left_out_count; i++) {
        fprintf(out, "left out: %d run%s: %s\n", report->left_out[i].runs, report->left_out[i].runs == 1 ? "" : "s",
                report->left_out[i].reason);
    }
    fprintf(out, "profile %s (parent %s, %s) written to %s; use it with --cluster %s\n", report->child->name,
            report->child->calibration->parent, report->child->calibration->parent_hash, report->path, report->path);
    return STATUS_OK;
}
