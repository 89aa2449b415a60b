// Saving a run of the executor: what ran, how it ended, its loss curve, the measured spans of its last step and the
// totals per task beside the prediction. Arrays of numbers are kept as JSON text, so that SQLite's json functions can
// read them.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "autotune/store/store_internal.h"

enum { SPANS_KEPT = 200000 };  // of a run; beyond it only the totals are kept

typedef struct SaveRun {
    const RunRecord *run;
    int64_t run_id;
} SaveRun;

// "[1.5,2.25]"; a number that JSON has no word for becomes null.
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

static void bind_numbers(sqlite3_stmt *statement, int *place, const double *values, int count) {
    char *text = number_array(values, count);
    bind_text(statement, place, text ? text : "[]");
    free(text);
}

static void bind_positive(sqlite3_stmt *statement, int *place, double value) {
    if (value > 0) {
        bind_double(statement, place, value);
    } else {
        bind_text(statement, place, NULL);
    }
}

// Without spans nobody knows where the step went.
static bool has_parts(const RunRecord *run) {
    return run->timeline.span_count > 0;
}

// The columns of schema 3.
static void put_measured(sqlite3_stmt *statement, int *place, const RunRecord *run) {
    const StepParts *parts = &run->parts;
    bind_text(statement, place, run->source);
    bind_hash(statement, place, run->measurement_hash);
    bind_int(statement, place, run->warm_up);
    bind_int(statement, place, plan_tokens_per_step(&run->prediction.plan));
    bind_positive(statement, place, run->measured_step_s);
    bind_positive(statement, place, run->prediction.step_low_s);
    bind_positive(statement, place, run->prediction.step_high_s);
    const double terms[] = {parts->compute_s, parts->optimizer_s, parts->overhead_s};
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        if (has_parts(run)) {
            bind_double(statement, place, terms[i]);
        } else {
            bind_text(statement, place, NULL);
        }
    }
}

static Status put_run(Store *store, const RunRecord *run, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(
        store,
        "INSERT INTO runs (host, command, model, plan, content_hash, target, cluster, device, transport, lanes, seed, "
        "steps, state, failure, losses, grad_norms, step_times_s, peak_bytes, planned_peak_bytes, "
        "predicted_step_s, source, measurement_hash, warm_up, tokens_per_step, measured_step_s, predicted_low_s, "
        "predicted_high_s, compute_s, optimizer_s, overhead_s, chip, device_bytes, executor, core_type) "
        "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?, ?,?,?,?,?,?,?, ?,?,?, ?,?,?,?)",
        &statement, error));
    char plan[PLAN_TEXT_BYTES], target[64];
    store_target_text(run->request->target, target, sizeof target);
    int place = 1;
    bind_text(statement, &place, run->host);
    bind_text(statement, &place, run->request->command);
    bind_text(statement, &place, run->request->model.name);
    bind_text(statement, &place, plan_text(&run->prediction.plan, plan));
    bind_hash(statement, &place, run->prediction.content_hash);
    bind_text(statement, &place, target);
    bind_text(statement, &place, run->request->cluster.name);
    bind_text(statement, &place, run->device);
    bind_text(statement, &place, run->transport);
    bind_text(statement, &place, run->lanes);
    bind_int(statement, &place, run->seed);
    bind_int(statement, &place, run->steps);
    bind_text(statement, &place, run->state);
    bind_text(statement, &place, run->failure);
    bind_numbers(statement, &place, run->losses, run->steps);
    bind_numbers(statement, &place, run->grad_norms, run->steps);
    bind_numbers(statement, &place, run->step_times_s, run->steps);
    bind_int(statement, &place, run->peak_bytes);
    bind_int(statement, &place, run->planned_peak_bytes);
    bind_double(statement, &place, run->prediction.step_s);
    put_measured(statement, &place, run);
    bind_text(statement, &place, run->chip);
    if (run->chip) {
        bind_int(statement, &place, run->device_bytes);
    } else {
        bind_text(statement, &place, NULL);
    }
    bind_text(statement, &place, run->executor);
    bind_text(statement, &place, run->core_type);
    const Status status = store_step(store, statement, error);
    sqlite3_finalize(statement);
    return status;
}

static Status put_exposed(Store *store, const RunRecord *run, int64_t run_id, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store, "INSERT INTO run_exposed VALUES (?,?,?)", &statement, error));
    int place = 1;
    bind_int(statement, &place, run_id);
    const Status status = store_put_exposed(store, statement, run->parts.exposed_s, error);
    sqlite3_finalize(statement);
    return status;
}

static Status put_spans(Store *store, const RunRecord *run, int64_t run_id, Error *error) {
    if (run->timeline.span_count > SPANS_KEPT) {
        return STATUS_OK;
    }
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store, "INSERT INTO spans VALUES (?,?,?,?,?,?,?)", &statement, error));
    Status status = STATUS_OK;
    for (int64_t i = 0; i < run->timeline.span_count && status == STATUS_OK; i++) {
        const Span *span = &run->timeline.spans[i];
        int place = 1;
        bind_int(statement, &place, run_id);
        bind_int(statement, &place, span->rank);
        bind_text(statement, &place, run->program->tasks[span->task].name);
        bind_int(statement, &place, span->layer);
        bind_int(statement, &place, span->micro_step);
        bind_double(statement, &place, span->start_s);
        bind_double(statement, &place, span->end_s);
        status = store_step(store, statement, error);
    }
    sqlite3_finalize(statement);
    return status;
}

static Status put_totals(Store *store, const RunRecord *run, int64_t run_id, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store, "INSERT INTO task_totals VALUES (?,?,?,?,?,?,?)", &statement, error));
    Status status = STATUS_OK;
    for (int i = 0; i < run->task_count && status == STATUS_OK; i++) {
        const RunTask *task = &run->tasks[i];
        int place = 1;
        bind_int(statement, &place, run_id);
        bind_text(statement, &place, task->name);
        bind_text(statement, &place, task->kind);
        bind_text(statement, &place, task->lane);
        bind_int(statement, &place, task->count);
        bind_double(statement, &place, task->measured_s);
        bind_double(statement, &place, task->predicted_s);
        status = store_step(store, statement, error);
    }
    sqlite3_finalize(statement);
    return status;
}

Status store_put_run(Store *store, const RunRecord *run, int64_t *run_id, Error *error) {
    TRY(put_run(store, run, error));
    *run_id = sqlite3_last_insert_rowid(store->db);
    if (has_parts(run)) {
        TRY(put_exposed(store, run, *run_id, error));
    }
    TRY(put_spans(store, run, *run_id, error));
    TRY(put_totals(store, run, *run_id, error));
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
