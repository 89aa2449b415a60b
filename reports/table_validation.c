// The tables of `ndtune validate`.

#include <math.h>
#include <string.h>

#include "reports/grid.h"
#include "reports/run_tables.h"
#include "reports/schemas.h"
#include "reports/validation.h"
#include "reports/words.h"
#include "sim/base/text.h"

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
        char mesh[WORDS_BYTES];
        if (row->reason) {
            fprintf(out, "%s %s: %s\n", words_mesh(&row->prediction->plan.mesh, mesh), row->state, row->reason);
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
    char predicted[TEXT_UNIT_BYTES], measured[TEXT_UNIT_BYTES];
    grid_cell(grid, "%s | %s", text_seconds(predicted, predicted_s), text_seconds(measured, measured_s));
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
        char words[WORDS_BYTES], peak[TEXT_UNIT_BYTES], planned[TEXT_UNIT_BYTES];
        grid_row(grid);
        grid_cell(grid, "%s", words_mesh(&prediction->plan.mesh, words));
        pair_cell(grid, prediction->compute_s, row->parts.compute_s);
        pair_cell(grid, communication(prediction->exposed_s), communication(row->parts.exposed_s));
        pair_cell(grid, prediction->optimizer_s, row->parts.optimizer_s);
        pair_cell(grid, prediction->overhead_s, row->parts.overhead_s);
        grid_cell(grid, "%s | %s", text_bytes(planned, (double)run->planned_peak_bytes),
                  text_bytes(peak, (double)run->peak_bytes));
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
    char best[WORDS_BYTES], chosen[WORDS_BYTES];
    const ValidateRow *measured = &validation->rows[agreement->best_measured];
    const ValidateRow *predicted = &validation->rows[agreement->best_predicted];
    fprintf(out, "\nbest measured: %s; best predicted: %s; regret %.3f\n",
            words_mesh(&measured->prediction->plan.mesh, best), words_mesh(&predicted->prediction->plan.mesh, chosen),
            agreement->regret);
    if (isfinite(agreement->kendall_tau)) {
        fprintf(out, "order: Kendall's tau %.2f over %d shapes\n", agreement->kendall_tau, agreement->count);
    }
    fprintf(out, "step time: median error %.0f %%, median bias %+.0f %%, %d of %d within the predicted interval\n",
            100 * agreement->median_abs_error, 100 * agreement->median_bias, validation->in_interval, agreement->count);
    words_far_off(1, 1 + agreement->median_bias, validation->request->cluster.name, &validation->core_use, out);
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

Status table_validation(const Validation *validation, FILE *out, Error *error) {
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
    words_assumptions(request, out);
    return STATUS_OK;
}
