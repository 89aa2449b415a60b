// A calibrated profile: the numbers of its parent, scaled, each with the runs that taught it; what running each target
// costs there; and the covariance, from which predictions on it get their intervals. And the way back: the posterior
// that a profile carries.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/statistics.h"
#include "autotune/calibrate/calibrate_internal.h"
#include "autotune/predict/interval.h"
#include "autotune/predict/target_on_cluster.h"
#include "sim/base/hash.h"
#include "sim/base/text.h"

static const char suffix[] = "-calibrated";

static double rounded(double value) {  // a file shows what a fit knows
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    return strtod(text, NULL);
}

static const char *runs_in_words(const CalibrationInput *input, Arena *arena) {
    enum { NAMED = 3 };
    const char *text = "";
    for (int i = 0; i < input->count && i < NAMED; i++) {
        text = arena_format(arena, "%s%s%.60s", text, i > 0 ? ", " : "", input->samples[i].id);
    }
    return input->count > NAMED ? arena_format(arena, "%s and %d more", text, input->count - NAMED) : text;
}

static const char *target_name(const Target *target, Arena *arena) {
    return target ? arena_format(arena, "%s@%s", target->name, target->version) : NULL;
}

static ClusterCalibration *section(const Calibration *calibration, const CalibrationInput *input, const char *date,
                                   Arena *arena) {
    const CalibrationPosterior *posterior = &calibration->posterior;
    const int n = posterior->count;
    Hash hash = hash_begin();
    cluster_hash(input->base, &hash);
    const char **runs = ARENA_ARRAY(arena, const char *, input->count);
    ClusterCalibrated *rows = ARENA_ARRAY(arena, ClusterCalibrated, n);
    double *covariance = ARENA_ARRAY(arena, double, n *n);
    for (int i = 0; i < input->count; i++) {
        runs[i] = input->samples[i].id;
    }
    for (int i = 0; i < n; i++) {
        const CalibrationCoordinate *at = &posterior->at[i];
        rows[i] = (ClusterCalibrated){at->parameter->name,
                                      target_name(at->target, arena),
                                      rounded(posterior->mean[i]),
                                      rounded(at->sd),
                                      rounded(at->prior_sd),
                                      at->shapes,
                                      at->sets == 1,
                                      at->verdict_words};
        for (int j = 0; j < n; j++) {
            const double value = posterior->covariance[i < j ? i * n + j : j * n + i];
            covariance[i * n + j] = rounded(value);
        }
    }
    ClusterCalibration *made = ARENA_NEW(arena, ClusterCalibration);
    *made = (ClusterCalibration){.parent = input->base->name,
                                 .parent_hash = arena_text(arena, hash_hex(hash_end(&hash), HASH_BUFFER)),
                                 .date = date,
                                 .runs = runs,
                                 .run_count = input->count,
                                 .shapes = calibration->shape_count,
                                 .misfit_sd = rounded(posterior->misfit_sd),
                                 .noise_sd = rounded(posterior->noise_sd),
                                 .held_out_shapes = calibration->held_out.shapes,
                                 .held_out_before = rounded(calibration->held_out.before_median),
                                 .held_out_after = rounded(calibration->held_out.after_median),
                                 .parameters = rows,
                                 .count = n,
                                 .covariance = covariance};
    return made;
}

// What one set of runs taught may be peculiar to it. All by one factor: runs know sums of parameters better than any of
// them, and widening some of a sum alone would undo that.
static void widen(CalibrationPosterior *posterior) {
    bool one_set = false;
    for (int i = 0; i < posterior->count; i++) {
        one_set = one_set || posterior->at[i].sets == 1;
    }
    const double factor = pow(interval_one_set(one_set), 2);
    for (int i = 0; i < posterior->count * posterior->count; i++) {
        posterior->covariance[i] *= factor;
    }
}

// What an uncalibrated reader of the profile should expect: the middle of what the posterior says of the plans that
// ran.
static Status uncertainty(const Calibration *calibration, double *spread, Error *error) {
    enum { MOST = 24 };
    double spreads[MOST];
    int count = 0;
    Arena scratch = {0};
    Status status = STATUS_OK;
    CalibrationPosterior posterior = calibration->posterior;
    widen(&posterior);
    const int stride = 1 + calibration->shape_count / MOST;
    for (int s = 0; s < calibration->shape_count && status == STATUS_OK; s += stride) {
        CalibrationSensitivity here;
        status = calibrate_sensitivity(&posterior, &calibration->shapes[s].what, &scratch, &here, error);
        spreads[count++] = hypot(calibration_log_sd(&posterior, &here), posterior.noise_sd);
    }
    arena_free(&scratch);
    *spread = fmin(2, fmax(0.001, statistics_median(spreads, count)));
    return status;
}

// Length of a profile's name without what calibrations add to it.
static size_t stem(const char *name) {
    const size_t length = strlen(name), tail = sizeof suffix - 1;
    return length > tail && strcmp(name + length - tail, suffix) == 0 ? length - tail : length;
}

bool calibration_same_machine(const char *a, const char *b) {
    return stem(a) == stem(b) && strncmp(a, b, stem(a)) == 0;
}

static const char *name_of_child(const ClusterProfile *base, Arena *arena) {
    const size_t most = sizeof base->name - sizeof suffix;
    const bool again = stem(base->name) < strlen(base->name);
    return again ? base->name : arena_format(arena, "%.*s%s", (int)most, base->name, suffix);
}

Status calibration_child(const Calibration *calibration, const CalibrationInput *input, const char *date, Arena *arena,
                         ClusterProfile *child, Error *error) {
    const CalibrationPosterior *posterior = &calibration->posterior;
    ClusterProfile as_it_was = *input->base;  // and what runners cost elsewhere, which the fit may leave as it is
    *child = *input->base;
    calibration_apply(posterior, posterior->mean, NULL, arena, child, NULL);
    bool machine = false;
    for (int t = 0; t < posterior->targets; t++) {
        Target runner = *posterior->target[t];
        ClusterProfile unused = *child;
        calibration_apply(posterior, posterior->mean, &runner, arena, &unused, &runner.runtime);
        machine = machine || target_is_executor(&runner);
        runner.runtime.relative_uncertainty = 0;  // its part is in the covariance
        FAIL_IF(!target_to_cluster(posterior->target[t], &as_it_was) || !target_to_cluster(&runner, child), error,
                STATUS_USAGE, "profile %s already holds %d calibrated targets: remove one of them", input->base->name,
                CLUSTER_MAX_TARGETS);
    }
    if (machine) {
        TRY(uncertainty(calibration, &child->relative_uncertainty, error));
    }
    const char *source = arena_format(arena, "ndtune calibrate of %s on %d runs (%s), %s", input->base->name,
                                      input->count, runs_in_words(input, arena), date);
    snprintf(child->name, sizeof child->name, "%s", name_of_child(input->base, arena));
    child->description =
        arena_format(arena, "%s; calibrated on %d runs, %s", input->base->description, input->count, date);
    child->extends = NULL;
    child->calibration = section(calibration, input, date, arena);
    cluster_record(&as_it_was, input->base, "the target's own row: no run changed it", GRADE_ESTIMATED, arena);
    cluster_record(child, &as_it_was, source, GRADE_FITTED, arena);
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- the way back

static const CalibrationParameter *parameter_named(const char *name) {
    int count = 0;
    const CalibrationParameter *rows = calibration_parameters(&count);
    return TEXT_FIND(rows, count, name, name);
}

Status calibration_of_profile(const ClusterProfile *cluster, Arena *arena, CalibrationPosterior *posterior,
                              Error *error) {
    const ClusterCalibration *known = cluster->calibration;
    *posterior =
        (CalibrationPosterior){.count = known->count, .misfit_sd = known->misfit_sd, .noise_sd = known->noise_sd};
    FAIL_IF(known->count > CALIBRATION_MAX, error, STATUS_USAGE, "profile %s: calibration: more than %d parameters",
            cluster->name, CALIBRATION_MAX);
    for (int i = 0; i < known->count; i++) {
        const ClusterCalibrated *row = &known->parameters[i];
        CalibrationCoordinate *at = &posterior->at[i];
        *at = (CalibrationCoordinate){.parameter = parameter_named(row->name),
                                      .prior_sd = row->prior_sd,
                                      .sd = row->sd,
                                      .shapes = row->plans,
                                      .sets = row->one_set ? 1 : 2,
                                      .verdict_words = row->verdict};
        FAIL_IF(!at->parameter, error, STATUS_USAGE, "profile %s: calibration: this version knows no parameter \"%s\"",
                cluster->name, row->name);
        if (row->target) {
            TRY(target_find(row->target, &at->target, error));
            at->target = target_on_cluster(at->target, cluster, arena);
        }
    }
    memcpy(posterior->covariance, known->covariance,
           (size_t)known->count * (size_t)known->count * sizeof *known->covariance);
    widen(posterior);
    return STATUS_OK;
}

Status calibrated_interval(const CalibrationPosterior *posterior, const CalibrationCase *what, double step_s,
                           Arena *scratch, double *low_s, double *high_s, Error *error) {
    CalibrationSensitivity here;
    TRY(calibrate_sensitivity(posterior, what, scratch, &here, error));
    interval_around(step_s, hypot(calibration_log_sd(posterior, &here), posterior->noise_sd), low_s, high_s);
    return STATUS_OK;
}
