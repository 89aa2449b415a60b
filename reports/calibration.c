// Results of calibrate, for people and programs.

#include "reports/calibration.h"

#include <math.h>

#include "reports/json_objects.h"
#include "reports/schemas.h"

static const double Z_80 = 1.2815515655446004;  // normal quantile of 0.9

static RecordValue factor_between(double log_factor, double sd, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%.3g (%.3g .. %.3g)", exp(log_factor), exp(log_factor - Z_80 * sd),
             exp(log_factor + Z_80 * sd));
    return record_of_text(text);
}

static RecordValue sd_change(const CalibrationCoordinate *at, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%.2g -> %.2g", at->prior_sd, at->sd);
    return record_of_text(text);
}

static const char *const verdicts[VERDICT_COUNT] = {"identified", "weak", "untaught"};

MADE_IN(log_factor, CalibrationCoordinate, CalibrationPosterior, record_of_real(true, in->mean[of - in->at]))
MADE_IN(factor, CalibrationCoordinate, CalibrationPosterior, record_of_real(true, exp(in->mean[of - in->at])))
MADE(target, CalibrationCoordinate, record_of_text(of->target ? of->target->name : NULL))
MADE(verdict, CalibrationCoordinate, record_of_text(verdicts[of->verdict]))
MADE(prior, CalibrationCoordinate, factor_between(0, of->prior_sd, text))
MADE_IN(posterior, CalibrationCoordinate, CalibrationPosterior, factor_between(in->mean[of - in->at], of->sd, text))
MADE(sds, CalibrationCoordinate, sd_change(of, text))

static const RecordField parameters[] = {
    {FIELD_OF("name", TEXT, CalibrationCoordinate, parameter, CalibrationParameter, name), COLUMN(1, "parameter")},
    {FIELD_OF("scales", TEXT, CalibrationCoordinate, parameter, CalibrationParameter, scales)},
    {.key = "target", BY(target), COLUMN(2, "of"), .missing = "the machine"},
    {.key = "log_factor", BY(log_factor)},
    {.key = "factor", BY(factor)},
    {FIELD("prior_sd", REAL, CalibrationCoordinate, prior_sd)},
    {FIELD("sd", REAL, CalibrationCoordinate, sd)},
    {FIELD("prior_source", TEXT, CalibrationCoordinate, prior_source)},
    {.key = "verdict", BY(verdict)},
    {FIELD("verdict_words", TEXT, CalibrationCoordinate, verdict_words), COLUMN(6, "what the runs tell")},
    {FIELD("runs", INT, CalibrationCoordinate, runs)},
    {FIELD("plans", INT, CalibrationCoordinate, shapes)},
    {FIELD("run_sets", INT, CalibrationCoordinate, sets)},
    {BY(prior), COLUMN(3, "prior factor (80 %)"), .right = true},
    {BY(posterior), COLUMN(4, "factor (80 %)"), .right = true},
    {BY(sds), COLUMN(5, "sd of its log"), .right = true},
};
SCHEMA(parameters, CalibrationCoordinate);

static json_t *score(const CalibrationScore *of) {
    return json_pack("{s:i, s:f, s:f, s:f, s:f}", "plans", of->shapes, "median_before", of->before_median,
                     "median_after", of->after_median, "p90_before", of->before_p90, "p90_after", of->after_p90);
}

static json_t *outliers(const Calibration *calibration) {
    json_t *rows = json_array();
    for (int i = 0; i < calibration->outlier_count; i++) {
        const CalibrationOutlier *outlier = &calibration->outliers[i];
        json_array_append_new(rows, json_pack("{s:s, s:f, s:s}", "run", outlier->id, "ratio", outlier->ratio, "against",
                                              outlier->against_repeats ? "repeats" : "fit"));
    }
    return rows;
}

static json_t *left_out(const CalibrationReport *report) {
    json_t *rows = json_array();
    for (int i = 0; i < report->left_out_count; i++) {
        json_array_append_new(
            rows, json_pack("{s:s, s:i}", "reason", report->left_out[i].reason, "runs", report->left_out[i].runs));
    }
    return rows;
}

static Status json_calibration(const void *answer, FILE *out, Error *error) {
    const CalibrationReport *report = answer;
    const Calibration *calibration = report->calibration;
    const ClusterCalibration *about = report->child->calibration;
    const RecordSchema coordinates = record_about(&schema_parameters, &calibration->posterior);
    return json_print(
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:i, s:o, s:o}", "schema",
                  "ndtune.calibrate/1", "parent", about->parent, "parent_hash", about->parent_hash, "profile",
                  report->child->name, "path", report->path, "from", report->from, "runs",
                  json_strings(about->runs, about->run_count), "parameters",
                  record_array(&coordinates, calibration->posterior.at, calibration->posterior.count), "plans",
                  record_array(&schema_calibrated, calibration->shapes, calibration->shape_count), "fit",
                  score(&calibration->fit), "held_out", score(&calibration->held_out), "misfit_sd",
                  calibration->posterior.misfit_sd, "noise_sd", calibration->posterior.noise_sd, "span_runs",
                  calibration->span_runs, "outliers", outliers(calibration), "left_out", left_out(report)),
        out, error);
}

static Status csv_calibration(const void *answer, FILE *out, Error *error) {
    const CalibrationReport *report = answer;
    return record_csv(&schema_calibrated, report->calibration->shapes, report->calibration->shape_count, out, error);
}

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

static Status table_calibration(const void *answer, FILE *out, Error *error) {
    const CalibrationReport *report = answer;
    fprintf(out, "%s calibrated on %d runs of %d plans from %s\n\n", report->base->name, report->runs,
            report->calibration->shape_count, report->from);
    const CalibrationPosterior *posterior = &report->calibration->posterior;
    const RecordSchema coordinates = record_about(&schema_parameters, posterior);
    TRY(record_table(&coordinates, posterior->at, posterior->count, out, error));
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

const Answer answer_calibration = {.table = table_calibration, .json = json_calibration, .csv = csv_calibration};
