// Saves a run of the executor: what ran, how it ended, its loss curve, the measured spans of its last step, the totals
// per task and the stages of a pipeline along with the prediction. Arrays of numbers are kept as JSON text, so that
// SQLite's json functions can read them.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "autotune/store/store_internal.h"

enum { SPANS_KEPT = 200000 };  // per run; beyond it only the totals are kept

typedef struct SaveRun {
    const RunRecord *run;
    int64_t run_id;
} SaveRun;

// "[1.5,2.25]"; a number that JSON cannot represent becomes null.
static char *number_array(const double *values, int count) {
    const size_t bytes = (size_t)count * 26 + 3;  // "%.17g" and a comma
    char *text = malloc(bytes);
    if (!text) {
        return NULL;
    }
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (int i = 0; i < count; i++) {
        const char *comma = i > 0 ? "," : "";
        if (isfinite(values[i])) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%.17g", comma, values[i]);
        } else {
            used += (size_t)snprintf(text + used, bytes - used, "%snull", comma);
        }
    }
    snprintf(text + used, bytes - used, "]");
    return text;
}

// Without spans the breakdown of the step is unknown.
static bool has_parts(const RunRecord *run) {
    return run->timeline.span_count > 0;
}

static double known(bool told, double value) {
    return told ? value : NAN;  // SQL NULL
}

static Status put_run(Store *store, const RunRecord *run, Error *error) {
    const StepParts *parts = &run->parts;
    const Prediction *of = &run->prediction;
    const bool told = has_parts(run);
    char plan[PLAN_TEXT_BYTES], target[64];
    char *losses = number_array(run->losses, run->steps), *norms = number_array(run->grad_norms, run->steps),
         *times = number_array(run->step_times_s, run->steps);
    store_target_text(run->request->target, target, sizeof target);
    const Status status = store_write(
        store, error,
        "INSERT INTO runs (host, command, model, plan, content_hash, target, cluster, device, transport, lanes, seed, "
        "steps, state, failure, losses, grad_norms, step_times_s, peak_bytes, planned_peak_bytes, "
        "predicted_step_s, source, measurement_hash, warm_up, tokens_per_step, measured_step_s, predicted_low_s, "
        "predicted_high_s, compute_s, optimizer_s, overhead_s, chip, device_bytes, executor, core_type) "
        "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?, ?,?,?,?,?,?,?, ?,?,?, ?,?,?,?)",
        "sssshsssssIdsssssIInshdIpppnnnsnss", run->host, run->request->command, run->request->model.name,
        plan_text(&of->plan, plan), of->content_hash, target, run->request->cluster.name, run->device, run->transport,
        run->lanes, run->seed, run->steps, run->state, run->failure, losses ? losses : "[]", norms ? norms : "[]",
        times ? times : "[]", run->peak_bytes, run->planned_peak_bytes, of->step_s, run->source, run->measurement_hash,
        run->warm_up, (int64_t)plan_tokens_per_step(&of->plan), run->measured_step_s, of->step_low_s, of->step_high_s,
        known(told, parts->compute_s), known(told, parts->optimizer_s), known(told, parts->overhead_s), run->chip,
        known(run->chip, (double)run->device_bytes), run->executor, run->core_type);
    free(losses);
    free(norms);
    free(times);
    return status;
}

static Status put_exposed(Store *store, const RunRecord *run, int64_t run_id, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error, "INSERT INTO run_exposed VALUES (?,?,?)", "I", run_id));
    const Status status = store_put_exposed(store, statement, run->parts.exposed_s, error);
    sqlite3_finalize(statement);
    return status;
}

static Status put_span(Store *store, sqlite3_stmt *row, const void *what, int64_t run_id, int i, Error *error) {
    const RunRecord *run = what;
    const Span *span = &run->timeline.spans[i];
    return store_put(store, row, error, "Idsddnn", run_id, (int)span->rank, run->program->tasks[span->task].name,
                     (int)span->layer, (int)span->micro_step, span->start_s, span->end_s);
}

static Status put_total(Store *store, sqlite3_stmt *row, const void *what, int64_t run_id, int i, Error *error) {
    const RunTask *task = &((const RunRecord *)what)->tasks[i];
    return store_put(store, row, error, "IsssInn", run_id, task->name, task->kind, task->lane, task->count,
                     task->measured_s, task->predicted_s);
}

static Status put_stage(Store *store, sqlite3_stmt *row, const void *what, int64_t run_id, int i, Error *error) {
    const RunStage *stage = &((const RunRecord *)what)->stages[i];
    return store_put(store, row, error, "IddnnII", run_id, stage->stage, stage->layers, stage->bubble_share,
                     stage->predicted_bubble_share, stage->peak_bytes, stage->planned_peak_bytes);
}

Status store_put_run(Store *store, const RunRecord *run, int64_t *run_id, Error *error) {
    TRY(put_run(store, run, error));
    *run_id = sqlite3_last_insert_rowid(store->db);
    if (has_parts(run)) {
        TRY(put_exposed(store, run, *run_id, error));
    }
    const int64_t spans = run->timeline.span_count <= SPANS_KEPT ? run->timeline.span_count : 0;
    TRY(store_put_rows(store, "INSERT INTO spans VALUES (?,?,?,?,?,?,?)", put_span, run, *run_id, spans, error));
    TRY(store_put_rows(store, "INSERT INTO task_totals VALUES (?,?,?,?,?,?,?)", put_total, run, *run_id,
                       run->task_count, error));
    TRY(store_put_rows(store, "INSERT INTO run_stages VALUES (?,?,?,?,?,?,?)", put_stage, run, *run_id,
                       run->stage_count, error));
    return store_put_prices(store, run->prices, run->price_count, error);
}

static Status save_run(Store *store, void *context, Error *error) {
    SaveRun *save = context;
    return store_put_run(store, save->run, &save->run_id, error);
}

Status store_save_run(Store *store, const RunRecord *run, int64_t *run_id, Error *error) {
    SaveRun save = {.run = run};
    TRY(store_transaction(store, save_run, &save, error));
    if (run_id) {
        *run_id = save.run_id;
    }
    return STATUS_OK;
}
