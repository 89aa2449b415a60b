// The section "calibration" of a profile that was fitted to runs: the parent, the runs used, the value of each log
// factor and its uncertainty. Written by ndtune calibrate, read back exactly; `tune` and the intervals of
// predictions use the covariance.

#include "sim/cluster/cluster_fields.h"

enum { MAX_PARAMETERS = 64, MAX_RUNS = 100000 };
static const double LOG_HIGH = 20;  // of a factor and its sd

static Status read_runs(const JsonReader *at, Arena *arena, ClusterCalibration *calibration, Error *error) {
    const json_t *runs = json_object_get(at->object, "runs");
    const size_t count = json_array_size(runs);
    JSON_FAIL_IF(count == 0 || count > MAX_RUNS, at, "runs", error, "must be a list of 1 to %d run ids", MAX_RUNS);
    const char **ids = ARENA_ARRAY(arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(runs, i);
        JSON_FAIL_IF(!json_is_string(id), at, "runs", error, "entry %zu must be text", i + 1);
        ids[i] = arena_text(arena, json_string_value(id));
    }
    calibration->runs = ids;
    calibration->run_count = (int)count;
    return STATUS_OK;
}

static Status read_parameter(const JsonReader *at, Arena *arena, ClusterCalibrated *row, Error *error) {
    static const char *const keys[] = {"name", "target", "log_factor", "sd", "prior_sd", "plans", "one_set", "verdict"};
    int64_t plans = 0;
    TRY(json_get_text(at, "name", arena, &row->name, error));
    TRY(json_get_text_or(at, "target", NULL, arena, &row->target, error));
    TRY(json_get_double(at, "log_factor", -LOG_HIGH, LOG_HIGH, &row->log_factor, error));
    TRY(json_get_double(at, "sd", 0, LOG_HIGH, &row->sd, error));
    TRY(json_get_double(at, "prior_sd", 0, LOG_HIGH, &row->prior_sd, error));
    TRY(json_get_int(at, "plans", 0, MAX_RUNS, &plans, error));
    TRY(json_get_bool(at, "one_set", &row->one_set, error));
    TRY(json_get_text(at, "verdict", arena, &row->verdict, error));
    row->plans = (int)plans;
    return json_reader_finish(at, keys, sizeof keys / sizeof keys[0], error);
}

static Status read_parameters(const JsonReader *at, Arena *arena, ClusterCalibration *calibration, Error *error) {
    const json_t *rows = json_object_get(at->object, "parameters");
    const size_t count = json_array_size(rows);
    JSON_FAIL_IF(count == 0 || count > MAX_PARAMETERS, at, "parameters", error, "must be a list of 1 to %d objects",
                 MAX_PARAMETERS);
    ClusterCalibrated *parameters = ARENA_ARRAY(arena, ClusterCalibrated, count);
    for (size_t i = 0; i < count; i++) {
        const JsonReader row = {.origin = at->origin,
                                .path = arena_format(arena, "calibration.parameters[%zu]", i),
                                .object = json_array_get(rows, i)};
        JSON_FAIL_IF(!json_is_object(row.object), &row, "", error, "must be an object");
        TRY(read_parameter(&row, arena, &parameters[i], error));
    }
    calibration->parameters = parameters;
    calibration->count = (int)count;
    return STATUS_OK;
}

static Status read_covariance(const JsonReader *at, Arena *arena, ClusterCalibration *calibration, Error *error) {
    const json_t *rows = json_object_get(at->object, "covariance");
    const size_t n = (size_t)calibration->count;
    double *covariance = ARENA_ARRAY(arena, double, n *n);
    bool good = json_array_size(rows) == n;
    for (size_t i = 0; i < n && good; i++) {
        const json_t *row = json_array_get(rows, i);
        good = json_array_size(row) == n;
        for (size_t j = 0; j < n && good; j++) {
            good = json_is_number(json_array_get(row, j));
            covariance[i * n + j] = json_number_value(json_array_get(row, j));
            good = good && (j >= i || covariance[i * n + j] == covariance[j * n + i]);
        }
        good = good && covariance[i * n + i] >= 0;
    }
    calibration->covariance = covariance;
    return good ? STATUS_OK
                : json_error(at, "covariance", error,
                             "must be %d rows of %d numbers, symmetric, none on the diagonal below 0",
                             calibration->count, calibration->count);
}

static Status read_held_out(const JsonReader *at, Arena *arena, ClusterCalibration *calibration, Error *error) {
    static const char *const keys[] = {"plans", "median_before", "median_after"};
    JsonReader held;
    int64_t plans = 0;
    TRY(json_get_object(at, "held_out", arena, &held, error));
    TRY(json_get_int(&held, "plans", 0, MAX_RUNS, &plans, error));
    TRY(json_get_double(&held, "median_before", 0, 1e9, &calibration->held_out_before, error));
    TRY(json_get_double(&held, "median_after", 0, 1e9, &calibration->held_out_after, error));
    calibration->held_out_shapes = (int)plans;
    return json_reader_finish(&held, keys, sizeof keys / sizeof keys[0], error);
}

Status cluster_calibration_read(const JsonReader *root, Arena *arena, ClusterProfile *profile, Error *error) {
    static const char *const keys[] = {"parent",    "parent_hash", "date",     "runs",       "plans",
                                       "misfit_sd", "noise_sd",    "held_out", "parameters", "covariance"};
    json_t *section = json_object_get(root->object, "calibration");
    if (!section || json_is_null(section)) {
        return STATUS_OK;
    }
    JsonReader at;
    ClusterCalibration *calibration = ARENA_NEW(arena, ClusterCalibration);
    int64_t plans = 0;
    TRY(json_get_object(root, "calibration", arena, &at, error));
    TRY(json_get_text(&at, "parent", arena, &calibration->parent, error));
    TRY(json_get_text(&at, "parent_hash", arena, &calibration->parent_hash, error));
    TRY(json_get_text(&at, "date", arena, &calibration->date, error));
    TRY(json_get_int(&at, "plans", 0, MAX_RUNS, &plans, error));
    TRY(json_get_double(&at, "misfit_sd", 0, LOG_HIGH, &calibration->misfit_sd, error));
    TRY(json_get_double(&at, "noise_sd", 0, LOG_HIGH, &calibration->noise_sd, error));
    calibration->shapes = (int)plans;
    TRY(read_runs(&at, arena, calibration, error));
    TRY(read_held_out(&at, arena, calibration, error));
    TRY(read_parameters(&at, arena, calibration, error));
    TRY(read_covariance(&at, arena, calibration, error));
    TRY(json_reader_finish(&at, keys, sizeof keys / sizeof keys[0], error));
    profile->calibration = calibration;
    return STATUS_OK;
}

static json_t *parameter_json(const ClusterCalibrated *row) {
    return json_pack("{s:s, s:s?, s:f, s:f, s:f, s:i, s:b, s:s}", "name", row->name, "target", row->target,
                     "log_factor", row->log_factor, "sd", row->sd, "prior_sd", row->prior_sd, "plans", row->plans,
                     "one_set", row->one_set ? 1 : 0, "verdict", row->verdict);
}

json_t *cluster_calibration_json(const ClusterCalibration *calibration) {
    json_t *runs = json_array(), *parameters = json_array(), *covariance = json_array();
    for (int i = 0; i < calibration->run_count; i++) {
        json_array_append_new(runs, json_string(calibration->runs[i]));
    }
    for (int i = 0; i < calibration->count; i++) {
        json_t *row = json_array();
        for (int j = 0; j < calibration->count; j++) {
            json_array_append_new(row, json_real(calibration->covariance[i * calibration->count + j]));
        }
        json_array_append_new(covariance, row);
        json_array_append_new(parameters, parameter_json(&calibration->parameters[i]));
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:i, s:f, s:f, s:{s:i, s:f, s:f}, s:o, s:o}", "parent", calibration->parent,
                     "parent_hash", calibration->parent_hash, "date", calibration->date, "runs", runs, "plans",
                     calibration->shapes, "misfit_sd", calibration->misfit_sd, "noise_sd", calibration->noise_sd,
                     "held_out", "plans", calibration->held_out_shapes, "median_before", calibration->held_out_before,
                     "median_after", calibration->held_out_after, "parameters", parameters, "covariance", covariance);
}
