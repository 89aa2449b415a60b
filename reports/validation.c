// What validate found, for people and programs. What is unknown is null, never 0.

#include "reports/validation.h"

#include <math.h>
#include <string.h>

#include "reports/format.h"
#include "reports/grid.h"
#include "reports/json_objects.h"
#include "reports/run_tables.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

static const char *const why_names[] = {"top", "spread"};

static json_t *parts_object(double compute_s, const double exposed_s[AXIS_COUNT], double optimizer_s,
                            double overhead_s) {
    return json_pack("{s:f, s:o, s:f, s:f}", "compute_s", compute_s, "exposed_communication_s",
                     json_exposed(true, exposed_s), "optimizer_s", optimizer_s, "overhead_s", overhead_s);
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

// Of the last run, where it has its tasks.
static const RunRecord *told_by(const ValidateRow *row) {
    const RunRecord *run = row->run_count > 0 ? &row->runs[row->run_count - 1] : NULL;
    return run && run->task_count > 0 ? run : NULL;
}

static json_t *measured_parts(const ValidateRow *row) {
    const StepParts *parts = &row->parts;
    return told_by(row) ? parts_object(parts->compute_s, parts->exposed_s, parts->optimizer_s, parts->overhead_s)
                        : json_null();
}

static json_t *tasks_array(const RunRecord *run) {
    return record_array(&schema_tasks, run ? run->tasks : NULL, run ? run->task_count : 0);
}

static RecordValue choices_of(const TrainPlan *plan, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "zero %d%s%s", plan->zero, plan->reshard == RESHARD_NEVER ? ", reshard never" : "",
             plan->recompute == RECOMPUTE_NONE ? "" : ", recompute");
    return record_of_text(text);
}

static RecordValue runs_of(const ValidateRow *row, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%d%s", row->run_count, row->recalled > 0 ? " *" : "");
    return record_of_text(text);
}

static bool is_inside(const ValidateRow *row) {
    return row->measured_s >= row->prediction->step_low_s && row->measured_s <= row->prediction->step_high_s;
}

KNOWN(is_measured, ValidateRow, of->measured_s > 0)
KNOWN(is_told, ValidateRow, told_by(of))
MADE(why, ValidateRow, record_of_text(why_names[of->why]))
MADE(batch, ValidateRow, record_of_product(of->prediction->plan.micro_batch, of->prediction->plan.grad_accum, text))
MADE(choices, ValidateRow, choices_of(&of->prediction->plan, text))
MADE(plan, ValidateRow, record_of_text(plan_text(&of->prediction->plan, text)))
MADE(interval, ValidateRow, record_of_text(format_interval(of->prediction, text)))
MADE(measured, ValidateRow, record_of_text(format_between(of->measured_s, of->low_s, of->high_s, text)))
MADE(ratio, ValidateRow, record_of_real(true, of->prediction->step_s / of->measured_s))
MADE(inside, ValidateRow, record_of_text(is_inside(of) ? "inside" : "outside"))
MADE(runs, ValidateRow, runs_of(of, text))
MADE(state, ValidateRow, record_of_text(of->state ? of->state : "not run"))
MADE(peak, ValidateRow, record_of_whole(told_by(of) ? (int64_t)told_by(of)->peak_bytes : 0))
MADE(planned_peak, ValidateRow, record_of_whole(told_by(of) ? (int64_t)told_by(of)->planned_peak_bytes : 0))
NESTED_IN(plan_of, ValidateRow, Validation, json_train_plan(in->request->target, &of->prediction->plan))
NESTED_IN(runs_in, ValidateRow, Validation, runs_array(of))
NESTED_IN(predicted_time, ValidateRow, Validation,
          parts_object(of->prediction->compute_s, of->prediction->exposed_s, of->prediction->optimizer_s,
                       of->prediction->overhead_s))
NESTED_IN(measured_time, ValidateRow, Validation, measured_parts(of))
NESTED_IN(tasks, ValidateRow, Validation, tasks_array(told_by(of)))

static const RecordField measured_rows[] = {
    {FIELD("place", INT, ValidateRow, place), COLUMN(1, "place")},
    {.key = "chosen", BY(why)},
    {FIELD_OF("mesh", MESH, ValidateRow, prediction, Prediction, plan.mesh), COLUMN(2, "mesh")},
    {.key = "plan", .nested = plan_of},
    {.key = "plan", BY(plan), .no_json = true},
    {FIELD_OF("predicted_step_time_s", REAL, ValidateRow, prediction, Prediction, step_s), .csv = "predicted_step_s"},
    {FIELD_OF("predicted_low_s", REAL, ValidateRow, prediction, Prediction, step_low_s)},
    {FIELD_OF("predicted_high_s", REAL, ValidateRow, prediction, Prediction, step_high_s)},
    {FIELD("measured_step_time_s", ABOVE, ValidateRow, measured_s), .csv = "measured_step_s"},
    {FIELD("steady_step_time_s", REAL, ValidateRow, steady_s), .known = is_measured, .no_csv = true},
    {FIELD("measured_low_s", REAL, ValidateRow, low_s), .known = is_measured},
    {FIELD("measured_high_s", REAL, ValidateRow, high_s), .known = is_measured},
    {FIELD("runs", INT, ValidateRow, run_count), .no_json = true},
    {FIELD("noise", REAL, ValidateRow, noise), COLUMN(9, "noise"), .unit = AS_PERCENT},
    {.key = "state", BY(state), COLUMN(10, "state")},
    {FIELD("reason", TEXT, ValidateRow, reason)},
    {.key = "runs", .nested = runs_in},
    {.key = "predicted_time", .nested = predicted_time},
    {.key = "measured_time", .nested = measured_time},
    {.key = "peak_bytes", BY(peak), .known = is_told, .no_csv = true},
    {.key = "planned_peak_bytes", BY(planned_peak), .known = is_told, .no_csv = true},
    {.key = "tasks", .nested = tasks},
    {BY(batch), COLUMN(3, "micro x accum"), .right = true},
    {BY(choices), COLUMN(4, "choices")},
    {BY(interval), COLUMN(5, "predicted (80 % interval)"), .right = true},
    {BY(measured), COLUMN(6, "measured (90 % interval)"), .known = is_measured, .right = true},
    {BY(ratio), COLUMN(7, "predicted / measured"), .known = is_measured, .unit = AS_RATIO},
    {BY(inside), COLUMN(8, "interval"), .place = IN_PAGE, .known = is_measured},
    {BY(runs), COLUMN(8, "runs"), .right = true},
};
SCHEMA(measured_rows, ValidateRow);

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

static Status json_validation(const void *answer, FILE *out, Error *error) {
    const Validation *validation = answer;
    const RecordSchema rows = record_about(&schema_measured_rows, validation);
    return json_print(json_pack("{s:s, s:o, s:s, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "schema", "ndtune.validate/1",
                                "request", json_request(validation->request), "source", validation->source, "shapes",
                                validation->shapes, "steps", validation->steps, "warm_up", validation->warm_up,
                                "repeats", validation->repeats, "rows",
                                record_array(&rows, validation->rows, validation->row_count), "kinds",
                                record_array(&schema_kinds, validation->kinds, validation->kind_count), "agreement",
                                agreement_object(validation)),
                      out, error);
}

static Status csv_validation(const void *answer, FILE *out, Error *error) {
    const Validation *validation = answer;
    return record_csv(&schema_measured_rows, validation->rows, validation->row_count, out, error);
}

static void print_notes(const Validation *validation, FILE *out) {
    bool recalled = false;
    for (int i = 0; i < validation->row_count; i++) {
        recalled = recalled || validation->rows[i].recalled > 0;
    }
    if (recalled) {
        fprintf(out, "* some or all of the runs are known from the store (--no-cache measures again)\n");
    }
    for (int i = 0; i < validation->row_count; i++) {
        const ValidateRow *row = &validation->rows[i];
        if (row->reason) {
            fprintf(out, "%s %s: %s\n", format_mesh(&row->prediction->plan.mesh, FORMAT_BUFFER), row->state,
                    row->reason);
        }
    }
}

static double communication(const double exposed_s[AXIS_COUNT]) {
    double sum = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        sum += exposed_s[axis];
    }
    return sum;
}

// "1.20 ms | 1.31 ms"
static void pair_cell(Grid *grid, double predicted_s, double measured_s) {
    grid_cell(grid, "%s | %s", text_seconds(UNIT_BUFFER, predicted_s), text_seconds(UNIT_BUFFER, measured_s));
}

static Status print_parts(const Validation *validation, FILE *out, Error *error) {
    static const GridColumn columns[] = {{"mesh", false},     {"compute", true},  {"exposed communication", true},
                                         {"optimizer", true}, {"overhead", true}, {"peak memory", true}};
    fprintf(out, "\nWhere the step goes, predicted | measured\n");
    Grid *grid = grid_new(columns, 6);
    for (int i = 0; i < validation->row_count; i++) {
        const ValidateRow *row = &validation->rows[i];
        if (row->run_count == 0) {
            continue;
        }
        const Prediction *prediction = row->prediction;
        const RunRecord *run = &row->runs[row->run_count - 1];
        grid_row(grid);
        grid_cell(grid, "%s", format_mesh(&prediction->plan.mesh, FORMAT_BUFFER));
        pair_cell(grid, prediction->compute_s, row->parts.compute_s);
        pair_cell(grid, communication(prediction->exposed_s), communication(row->parts.exposed_s));
        pair_cell(grid, prediction->optimizer_s, row->parts.optimizer_s);
        pair_cell(grid, prediction->overhead_s, row->parts.overhead_s);
        grid_cell(grid, "%s | %s", text_bytes(UNIT_BUFFER, (double)run->planned_peak_bytes),
                  text_bytes(UNIT_BUFFER, (double)run->peak_bytes));
    }
    return grid_print(grid, out, error);
}

static Status print_kinds(const Validation *validation, FILE *out, Error *error) {
    bool collectives = false;
    fprintf(out, "\nTasks of one step, summed over the measured shapes\n");
    for (int i = 0; i < validation->kind_count; i++) {
        collectives = collectives || strcmp(validation->kinds[i].lane, "compute") != 0;
    }
    TRY(record_table(&schema_kinds, validation->kinds, validation->kind_count, out, error));
    if (collectives) {
        table_waiting(out);
    }
    return STATUS_OK;
}

static void print_agreement(const Validation *validation, FILE *out) {
    const Agreement *agreement = &validation->agreement;
    if (agreement->count == 0) {
        fprintf(out, "\nNothing was measured.\n");
        return;
    }
    const ValidateRow *measured = &validation->rows[agreement->best_measured];
    const ValidateRow *predicted = &validation->rows[agreement->best_predicted];
    fprintf(out, "\nbest measured: %s; best predicted: %s; regret %.3f\n",
            format_mesh(&measured->prediction->plan.mesh, FORMAT_BUFFER),
            format_mesh(&predicted->prediction->plan.mesh, FORMAT_BUFFER), agreement->regret);
    if (isfinite(agreement->kendall_tau)) {
        fprintf(out, "order: Kendall's tau %.2f over %d shapes\n", agreement->kendall_tau, agreement->count);
    }
    fprintf(out, "step time: median error %.0f %%, median bias %+.0f %%, %d of %d within the predicted interval\n",
            100 * agreement->median_abs_error, 100 * agreement->median_bias, validation->in_interval, agreement->count);
    format_far_off(1, 1 + agreement->median_bias, validation->request->cluster.name, &validation->core_use, out);
    if (isfinite(agreement->constant_median_abs_error)) {
        fprintf(out, "one constant rate, fitted to these very runs, errs by %.0f %%\n",
                100 * agreement->constant_median_abs_error);
    }
    if (isfinite(validation->noise)) {
        fprintf(out, "repeats of one shape differ by %.1f %% (median)%s\n", 100 * validation->noise,
                agreement->regret - 1 > 0 && agreement->regret - 1 <= validation->noise
                    ? ": the regret lies within that noise"
                    : "");
    }
}

static Status table_validation(const void *answer, FILE *out, Error *error) {
    const Validation *validation = answer;
    const TuneRequest *request = validation->request;
    fprintf(out,
            "%s on %d ranks, %s, predicted on profile %s; %d of %d shapes, %d run%s of %d steps%s, %d to warm up\n\n",
            request->model.name, request->world,
            strcmp(validation->source, "command") == 0 ? "run by your command" : "run by the executor",
            request->cluster.name, validation->row_count, validation->shapes, validation->repeats,
            validation->repeats > 1 ? "s" : "", validation->steps, validation->repeats > 1 ? " each" : "",
            validation->warm_up);
    TRY(record_table(&schema_measured_rows, validation->rows, validation->row_count, out, error));
    print_notes(validation, out);
    if (validation->kind_count > 0) {
        TRY(print_parts(validation, out, error));
        TRY(print_kinds(validation, out, error));
    }
    print_agreement(validation, out);
    format_assumptions(request, out);
    return STATUS_OK;
}

const Answer answer_validation = {.table = table_validation, .json = json_validation, .csv = csv_validation};
