// A measured step compared with its prediction, as text for ndtune predict --measured.

#include <math.h>

#include "reports/format.h"
#include "reports/grid.h"
#include "reports/json_objects.h"
#include "reports/reports.h"
#include "sim/base/text.h"

static void print_verdict(const Diagnosis *diagnosis, FILE *out) {
    const Prediction *prediction = diagnosis->prediction;
    const double more = diagnosis->measured_s / prediction->step_s - 1;
    fprintf(out, "\nMeasured\n  %s, %.0f %% %s than the predicted %s,\n  %s\n",
            text_seconds(UNIT_BUFFER, diagnosis->measured_s), 100 * fabs(more), more < 0 ? "less" : "more",
            format_interval(prediction, FORMAT_BUFFER),
            diagnosis->within ? "inside the interval: the prediction cannot tell it from a sound run"
            : more < 0        ? "below the interval: faster than ndtune expects of this plan"
                              : "beyond the interval: something is slower than it should be");
    if (diagnosis->micro_step) {
        fprintf(out, "  a step has %d micro-batches: is it the time of one of them?\n", prediction->plan.grad_accum);
    } else if (diagnosis->micro_batches > 0 && !diagnosis->within) {
        fprintf(out,
                "  about %d times as long: has a step of the run %d micro-batches (--grad-accum, --global-batch)?\n",
                diagnosis->micro_batches, diagnosis->micro_batches);
    } else if (more < 0 && !diagnosis->within) {
        fprintf(out,
                "  is it a whole optimizer step of this batch and shape? ndtune calibrate learns from such runs\n");
    }
}

static void add_cause(Grid *grid, const Cause *cause) {
    const double slowness = cause->slowness > 0 ? cause->slowness : cause->largest;
    grid_row(grid);
    grid_cell(grid, "  %s", cause->name);
    if (cause->of_rate) {
        grid_cell(grid, "%.3g %% of the rate", 100 / slowness);
    } else {
        grid_cell(grid, "%.3g times as long", slowness);
    }
    grid_cell(grid, "%s%s", cause->slowness > 0 ? "" : "not alone: ", text_seconds(UNIT_BUFFER, cause->step_s));
    grid_cell(grid, "%s", cause->look);
}

Status table_diagnosis(const Diagnosis *diagnosis, FILE *out, Error *error) {
    static const GridColumn columns[] = {{"  cause", false}, {"that bad", true}, {"step", true}, {"look at", false}};
    print_verdict(diagnosis, out);
    if (diagnosis->cause_count == 0) {
        return STATUS_OK;
    }
    fprintf(out, "  One cause alone that would make up the difference, the least deviation first\n");
    Grid *grid = grid_new(columns, 4);
    for (int i = 0; i < diagnosis->cause_count; i++) {
        add_cause(grid, &diagnosis->causes[i]);
    }
    const double lost = diagnosis->measured_s - diagnosis->prediction->step_s;
    grid_row(grid);
    grid_cell(grid, "  outside the step");
    grid_cell(grid, "%s per step", text_seconds(UNIT_BUFFER, lost));
    grid_cell(grid, "%s", text_seconds(UNIT_BUFFER, diagnosis->measured_s));
    grid_cell(grid, "data loading, logging, checkpoints: time steps without them");
    TRY(grid_print(grid, out, error));
    for (int i = 0; i < diagnosis->suspect_count; i++) {
        fprintf(out, "  %s would take %s: is that what really runs?\n", diagnosis->suspects[i].choice,
                text_seconds(UNIT_BUFFER, diagnosis->suspects[i].step_s));
    }
    return STATUS_OK;
}

json_t *json_diagnosis(const Diagnosis *diagnosis) {
    json_t *causes = json_array(), *suspects = json_array();
    for (int i = 0; i < diagnosis->cause_count; i++) {
        const Cause *cause = &diagnosis->causes[i];
        json_array_append_new(causes, json_pack("{s:s, s:b, s:o, s:f, s:s}", "cause", cause->name, "explains",
                                                cause->slowness > 0, "slowness",
                                                json_real(cause->slowness > 0 ? cause->slowness : cause->largest),
                                                "step_time_s", cause->step_s, "look", cause->look));
    }
    for (int i = 0; i < diagnosis->suspect_count; i++) {
        json_array_append_new(suspects, json_pack("{s:s, s:f}", "choice", diagnosis->suspects[i].choice, "step_time_s",
                                                  diagnosis->suspects[i].step_s));
    }
    return json_pack("{s:f, s:f, s:b, s:b, s:o, s:o, s:o}", "step_time_s", diagnosis->measured_s, "over_predicted",
                     diagnosis->measured_s / diagnosis->prediction->step_s - 1, "in_interval", diagnosis->within,
                     "one_micro_batch", diagnosis->micro_step, "micro_batches",
                     diagnosis->micro_batches > 0 ? json_integer(diagnosis->micro_batches) : json_null(), "causes",
                     causes, "suspects", suspects);
}
