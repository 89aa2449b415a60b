// The document and the lines of `ndtune calibrate`.

#include <math.h>

#include "reports/calibration.h"
#include "reports/json_objects.h"
#include "reports/schemas.h"

static json_t *parameters(const CalibrationPosterior *posterior) {
    static const char *const verdicts[VERDICT_COUNT] = {"identified", "weak", "untaught"};
    json_t *rows = json_array();
    for (int i = 0; i < posterior->count; i++) {
        const CalibrationCoordinate *at = &posterior->at[i];
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s?, s:f, s:f, s:f, s:f, s:s, s:s, s:s, s:i, s:i, s:i}",
                                              "name", at->parameter->name, "scales", at->parameter->scales, "target",
                                              at->target ? at->target->name : NULL, "log_factor", posterior->mean[i],
                                              "factor", exp(posterior->mean[i]), "prior_sd", at->prior_sd, "sd", at->sd,
                                              "prior_source", at->prior_source, "verdict", verdicts[at->verdict],
                                              "verdict_words", at->verdict_words, "runs", at->runs, "plans", at->shapes,
                                              "run_sets", at->sets));
    }
    return rows;
}

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

Status json_calibration(const CalibrationReport *report, FILE *out, Error *error) {
    const Calibration *calibration = report->calibration;
    const ClusterCalibration *about = report->child->calibration;
    json_t *runs = json_array();
    for (int i = 0; i < about->run_count; i++) {
        json_array_append_new(runs, json_string(about->runs[i]));
    }
    return json_print(json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:i, s:o, s:o}",
                                "schema", "ndtune.calibrate/1", "parent", about->parent, "parent_hash",
                                about->parent_hash, "profile", report->child->name, "path", report->path, "from",
                                report->from, "runs", runs, "parameters", parameters(&calibration->posterior), "plans",
                                record_array(&schema_calibrated, calibration->shapes, calibration->shape_count), "fit",
                                score(&calibration->fit), "held_out", score(&calibration->held_out), "misfit_sd",
                                calibration->posterior.misfit_sd, "noise_sd", calibration->posterior.noise_sd,
                                "span_runs", calibration->span_runs, "outliers", outliers(calibration), "left_out",
                                left_out(report)),
                      out, error);
}

Status csv_calibration(const CalibrationReport *report, FILE *out, Error *error) {
    return record_csv(&schema_calibrated, report->calibration->shapes, report->calibration->shape_count, out, error);
}
