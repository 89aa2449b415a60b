// The JSON and CSV of validate. What is unknown is null, never 0.

#include <math.h>

#include "reports/csv_lines.h"
#include "reports/json_objects.h"
#include "reports/schemas.h"
#include "reports/validation.h"

static const char *const why_names[] = {"top", "spread"};

static json_t *parts_object(double compute_s, const double exposed_s[AXIS_COUNT], double optimizer_s,
                            double overhead_s) {
    json_t *exposed = json_object();
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        json_object_set_new(exposed, axis_names[axis], json_real(exposed_s[axis]));
    }
    return json_pack("{s:f, s:o, s:f, s:f}", "compute_s", compute_s, "exposed_communication_s", exposed, "optimizer_s",
                     optimizer_s, "overhead_s", overhead_s);
}

static json_t *runs_array(const ValidateRow *row) {
    json_t *runs = json_array();
    for (int i = 0; i < row->run_count; i++) {
        const RunRecord *run = &row->runs[i];
        json_t *steps = json_array();
        for (int step = 0; step < run->steps; step++) {
            json_array_append_new(steps, json_known(true, run->step_times_s[step]));
        }
        json_array_append_new(runs, json_pack("{s:f, s:o, s:i, s:b}", "median_s", run->measured_step_s, "step_time_s",
                                              steps, "warm_up", run->warm_up, "known", i < row->recalled));
    }
    return runs;
}

static json_t *row_object(const Target *target, const ValidateRow *row) {
    const Prediction *prediction = row->prediction;
    const RunRecord *run = row->run_count > 0 ? &row->runs[row->run_count - 1] : NULL;
    const bool measured = row->measured_s > 0;
    json_t *object = json_pack(
        "{s:i, s:s, s:o, s:o, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:s, s:s?, s:o, s:o}", "place", row->place,
        "chosen", why_names[row->why], "mesh", json_mesh(&prediction->plan.mesh), "plan",
        json_train_plan(target, &prediction->plan), "predicted_step_time_s", prediction->step_s, "predicted_low_s",
        prediction->step_low_s, "predicted_high_s", prediction->step_high_s, "measured_step_time_s",
        json_known(measured, row->measured_s), "steady_step_time_s", json_known(measured, row->steady_s),
        "measured_low_s", json_known(measured, row->low_s), "measured_high_s", json_known(measured, row->high_s),
        "noise", json_known(measured, row->noise), "state", row->state ? row->state : "not run", "reason", row->reason,
        "runs", runs_array(row), "predicted_time",
        parts_object(prediction->compute_s, prediction->exposed_s, prediction->optimizer_s, prediction->overhead_s));
    if (object) {
        const bool parts = run && run->task_count > 0;
        json_object_set_new(object, "measured_time",
                            parts ? parts_object(row->parts.compute_s, row->parts.exposed_s, row->parts.optimizer_s,
                                                 row->parts.overhead_s)
                                  : json_null());
        json_object_set_new(object, "peak_bytes", parts ? json_integer((json_int_t)run->peak_bytes) : json_null());
        json_object_set_new(object, "planned_peak_bytes",
                            parts ? json_integer((json_int_t)run->planned_peak_bytes) : json_null());
        json_object_set_new(object, "tasks",
                            record_array(&schema_tasks, parts ? run->tasks : NULL, parts ? run->task_count : 0));
    }
    return object;
}

static json_t *mesh_of(const Validation *validation, int row) {
    return row < 0 ? json_null() : json_mesh(&validation->rows[row].prediction->plan.mesh);
}

static json_t *agreement_object(const Validation *validation) {
    const Agreement *agreement = &validation->agreement;
    const bool any = agreement->count > 0;
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o}", "measured", agreement->count,
                     "best_predicted", mesh_of(validation, agreement->best_predicted), "best_measured",
                     mesh_of(validation, agreement->best_measured), "regret", json_known(any, agreement->regret),
                     "kendall_tau", json_known(any, agreement->kendall_tau), "median_abs_error",
                     json_known(any, agreement->median_abs_error), "median_bias",
                     json_known(any, agreement->median_bias), "constant_rate_median_abs_error",
                     json_known(any, agreement->constant_median_abs_error), "in_interval", validation->in_interval,
                     "noise", json_known(any, validation->noise));
}

Status json_validation(const Validation *validation, FILE *out, Error *error) {
    json_t *rows = json_array();
    for (int i = 0; i < validation->row_count; i++) {
        json_array_append_new(rows, row_object(validation->request->target, &validation->rows[i]));
    }
    return json_print(json_pack("{s:s, s:o, s:s, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "schema", "ndtune.validate/1",
                                "request", json_request(validation->request), "source", validation->source, "shapes",
                                validation->shapes, "steps", validation->steps, "warm_up", validation->warm_up,
                                "repeats", validation->repeats, "rows", rows, "kinds",
                                record_array(&schema_kinds, validation->kinds, validation->kind_count), "agreement",
                                agreement_object(validation)),
                      out, error);
}

Status csv_validation(const Validation *validation, FILE *out, Error *error) {
    Csv csv = {.out = out};
    csv_header(&csv, "place,chosen" AXES_COLUMNS ",plan,predicted_step_s,predicted_low_s,predicted_high_s,"
                     "measured_step_s,measured_low_s,measured_high_s,runs,noise,state,reason");
    for (int i = 0; i < validation->row_count; i++) {
        const ValidateRow *row = &validation->rows[i];
        const bool measured = row->measured_s > 0;
        char plan[PLAN_TEXT_BYTES];
        csv_row(&csv, "ds", row->place, why_names[row->why]);
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            csv_integer(&csv, row->prediction->plan.mesh.size[axis]);
        }
        csv_row(&csv, "snnnnnndnss.", plan_text(&row->prediction->plan, plan), row->prediction->step_s,
                row->prediction->step_low_s, row->prediction->step_high_s, csv_known(measured, row->measured_s),
                csv_known(measured, row->low_s), csv_known(measured, row->high_s), row->run_count,
                csv_known(isfinite(row->noise), row->noise), row->state ? row->state : "not run", row->reason);
    }
    return csv_finish(&csv, error);
}
