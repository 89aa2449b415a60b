// The table of `ndtune predict`: one plan in full.

#include "autotune/predict/evidence.h"
#include "reports/format.h"
#include "reports/json_objects.h"
#include "reports/reports.h"
#include "sim/base/text.h"

static void print_speed(const PredictionReport *report, FILE *out) {
    const Prediction *prediction = report->prediction;
    const TuneRequest *request = report->request;
    fprintf(out, "\nstep time     %s, 80 %% interval\n", format_interval(prediction, FORMAT_BUFFER));
    fprintf(out, "evidence      %s\n", evidence_text(request, EVIDENCE_BUFFER));
    fprintf(out, "tokens/s      %s", text_count(UNIT_BUFFER, prediction->tokens_per_s));
    fprintf(out, ", %s per accelerator\n",
            text_count(UNIT_BUFFER, prediction->tokens_per_s / mesh_world(&prediction->plan.mesh)));
    fprintf(out, "MFU           %.1f %% (HFU %.1f %%)%s, %.0f model TFLOP/s per accelerator\n", 100 * prediction->mfu,
            100 * prediction->hfu, format_peak(&prediction->plan), 1e-12 * prediction->model_flop_per_s_per_gpu);
    format_training(request, prediction, out);
    fprintf(out, "\nTime\n");
    format_time(prediction, out);
    fprintf(out, "Memory\n");
    format_memory(prediction, request, out);
}

static Status table_prediction(const void *answer, FILE *out, Error *error) {
    const PredictionReport *report = answer;
    const TuneRequest *request = report->request;
    const TrainPlan *plan = &report->prediction->plan;
    format_case(request, out);
    fprintf(out, "\n%s\n", plan_text(plan, PLAN_BUFFER));
    if (report->legal) {
        print_speed(report, out);
    }
    fprintf(out, "Batch\n");
    format_batch(request->target, plan, out);
    fprintf(out, "Network\n");
    format_network(plan, request->cluster.node.accelerators, out);
    for (int i = 0; i < report->prediction->warning_count; i++) {
        fprintf(out, "warning: %s\n", report->prediction->warnings[i]);
    }
    TRY(report->diagnosis ? table_diagnosis(report->diagnosis, out, error) : STATUS_OK);
    format_assumptions(request, out);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

static Status json_prediction(const void *answer, FILE *out, Error *error) {
    const PredictionReport *report = answer;
    json_t *object = json_prediction_object(report->request, report->prediction, report->legal, report->reason);
    if (object) {
        json_object_set_new(object, "request", json_request(report->request));
    }
    if (object && report->diagnosis) {
        json_object_set_new(object, "measured", json_diagnosis(report->diagnosis));
    }
    return json_print(object, out, error);
}

const Answer answer_prediction = {.table = table_prediction, .json = json_prediction, .csv = csv_prediction};
