// ndtune predict: one shape in full. A plan that is not legal or does not fit is still described, with exit code 2.

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "autotune/calibrate/calibrate.h"
#include "autotune/cli/cli.h"
#include "autotune/cli/report_page.h"
#include "autotune/cli/request.h"
#include "autotune/cli/step_files.h"
#include "autotune/predict/host_interval.h"
#include "autotune/validate/step_log_file.h"
#include "reports/reports.h"
#include "sim/base/text.h"

static Status write_html(Cli *cli, const TuneRequest *request, const OnePlan *one, Error *error) {
    if (!cli_given(cli, OPTION_HTML)) {
        return STATUS_OK;
    }
    TuneResult result;
    one_plan_result(request, one, &cli->arena, &result);
    TRY(cli_open_store_to_ask(cli, error));
    return report_page_option(cli, &(ReportPage){.result = &result, .one_plan = true}, error);
}

// "5.2s", "950 ms"
static bool parse_time(const char *text, double *seconds) {
    char number[32], unit[4], rest;
    if (sscanf(text, "%31[0-9.eE+-] %3[a-z]%c", number, unit, &rest) != 2 || !text_parse_double(number, seconds)) {
        return false;
    }
    *seconds *= strcmp(unit, "ms") == 0 ? 1e-3 : 1;
    return strcmp(unit, "ms") == 0 || strcmp(unit, "s") == 0 || strcmp(unit, "sec") == 0;
}

// The step time of --measured: seconds, or the median of a log.
static Status measured_step(Cli *cli, const TrainPlan *plan, double *step_s, Error *error) {
    const char *text = cli_value(cli, OPTION_MEASURED)->text;
    char *end = NULL;
    const bool beyond = text[0] == '\0' || (strtod(text, &end), *end == '\0');  // nan, inf, 1e309
    if (!text_parse_double(text, step_s) && !parse_time(text, step_s) && !beyond) {
        return cli_blame(cli, OPTION_MEASURED,
                         step_log_file_time(arena_format(&cli->arena, "--measured %s", text), text, plan,
                                            cli_integer_or(cli, OPTION_WARM_UP, STEP_LOG_WARM_UP), &cli->arena, step_s,
                                            error));
    }
    return *step_s > 0 && *step_s < DBL_MAX
               ? STATUS_OK
               : cli_refuse(cli, OPTION_MEASURED, error, "--measured takes seconds above 0 or a log, not \"%s\"", text);
}

static Status compare_measured(Cli *cli, PredictionReport *report, Error *error) {
    if (!cli_given(cli, OPTION_MEASURED)) {
        return STATUS_OK;
    }
    Diagnosis *diagnosis = ARENA_NEW(&cli->arena, Diagnosis);
    const Progress progress = cli_progress(cli);
    double step_s = 0;
    TRY(measured_step(cli, &report->prediction->plan, &step_s, error));
    const Status status = diagnose(report->request, report->prediction, step_s, &progress, diagnosis, error);
    cli_progress_clear(cli);
    report->diagnosis = diagnosis;
    return status;
}

Status cmd_predict(Cli *cli, Error *error) {
    TuneRequest request;
    TrainPlan plan;
    OnePlan one;
    TRY(request_build(cli, &predict_defaults, &request, error));
    request_plan(&request, &request.mesh, &plan);
    TRY(cli_predict(cli, &request, &plan, false, &one, error));
    PredictionReport report = {
        .request = &request, .prediction = &one.prediction, .legal = one.legal, .reason = one.reason};
    if (one.legal) {
        TRY(host_intervals(&request, &one.prediction, 1, error));
        TRY(calibrated_intervals(&request, &one.prediction, 1, error));
        TRY(store_save_prediction(cli->store, &request, &one.prediction, error));
        TRY(compare_measured(cli, &report, error));
    }
    TRY(cli_answer(cli, &answer_prediction, &report, error));
    TRY(write_html(cli, &request, &one, error));
    TRY(one.legal ? step_files_write(cli, &request, &plan, &(MeasuredSteps){.count = 0}, error) : STATUS_OK);
    if (one.reason && one.legal) {
        error_set(error, STATUS_INFEASIBLE, "this plan %s", one.reason);
        return error_hint(error, "ndtune plan --world %d, with the same model and batch, says what fits",
                          mesh_world(&plan.mesh));
    }
    return !one.reason ? STATUS_OK : error_set(error, STATUS_INFEASIBLE, "this plan is not legal: %s", one.reason);
}
