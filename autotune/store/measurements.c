// Reads runs back: repeats of a measurement, and one run in full.

#include <jansson.h>
#include <math.h>

#include "autotune/store/store_internal.h"

// "[1.5,null]" as numbers, null as NAN.
const double *store_numbers_at(sqlite3_stmt *row, int column, int count, Arena *arena) {
    double *numbers = ARENA_ARRAY(arena, double, count > 0 ? count : 1);
    const unsigned char *text = sqlite3_column_text(row, column);
    json_t *array = text ? json_loads((const char *)text, 0, NULL) : NULL;
    for (int i = 0; i < count; i++) {
        const json_t *value = json_array_get(array, (size_t)i);
        numbers[i] = json_is_number(value) ? json_number_value(value) : NAN;
    }
    json_decref(array);
    return numbers;
}

#define RUN_COLUMNS                                                                                                    \
    "id, source, host, device, transport, lanes, seed, steps, warm_up, state, failure, losses, grad_norms, "           \
    "step_times_s, peak_bytes, planned_peak_bytes, measured_step_s, compute_s, optimizer_s, overhead_s, core_type, "   \
    "CAST(strftime('%s', started_at) AS REAL)"

static int64_t read_record(sqlite3_stmt *row, Arena *arena, RunRecord *run) {
    int64_t id;
    StepParts *parts = &run->parts;
    *run = (RunRecord){0};
    store_take(row, arena, "IsssssIddss---IInnnnsn", &id, &run->source, &run->host, &run->device, &run->transport,
               &run->lanes, &run->seed, &run->steps, &run->warm_up, &run->state, &run->failure, &run->peak_bytes,
               &run->planned_peak_bytes, &run->measured_step_s, &parts->compute_s, &parts->optimizer_s,
               &parts->overhead_s, &run->core_type, &run->at_s);
    run->losses = store_numbers_at(row, 11, run->steps, arena);
    run->grad_norms = store_numbers_at(row, 12, run->steps, arena);
    run->step_times_s = store_numbers_at(row, 13, run->steps, arena);
    return id;
}

static void read_task(sqlite3_stmt *row, Arena *arena, void *into) {
    RunTask *of = into;
    store_take(row, arena, "sssInn", &of->name, &of->kind, &of->lane, &of->count, &of->measured_s, &of->predicted_s);
}

static void read_stage(sqlite3_stmt *row, Arena *arena, void *into) {
    RunStage *of = into;
    store_take(row, arena, "ddnnII", &of->stage, &of->layers, &of->bubble_share, &of->predicted_bubble_share,
               &of->peak_bytes, &of->planned_peak_bytes);
    of->bubble_share = sqlite3_column_type(row, 2) == SQLITE_NULL ? NAN : of->bubble_share;
    of->predicted_bubble_share = sqlite3_column_type(row, 3) == SQLITE_NULL ? NAN : of->predicted_bubble_share;
}

static Status read_parts(Store *store, int64_t run_id, Arena *arena, RunRecord *run, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error, "SELECT axis, seconds FROM run_exposed WHERE run_id = ?", "I", run_id));
    TRY(store_read_end(store, statement, store_read_exposed(statement, run->parts.exposed_s), error));
    TRY(store_ask(store, &statement, error,
                  "SELECT task, kind, lane, count, measured_s, predicted_s FROM task_totals WHERE run_id = ? "
                  "ORDER BY rowid",
                  "I", run_id));
    TRY(store_read_all(store, statement, sizeof(RunTask), read_task, arena, &run->tasks, &run->task_count, error));
    TRY(store_ask(store, &statement, error,
                  "SELECT stage, layers, bubble_share, predicted_bubble_share, peak_bytes, planned_peak_bytes "
                  "FROM run_stages WHERE run_id = ? ORDER BY stage",
                  "I", run_id));
    return store_read_all(store, statement, sizeof(RunStage), read_stage, arena, &run->stages, &run->stage_count,
                          error);
}

static Status read_runs(Store *store, const char *sql, uint64_t key, int most, Arena *arena, RunRecord *runs,
                        int *count, Error *error) {
    *count = 0;
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error, sql, "hd", key, most));
    Status status = STATUS_OK;
    int code = SQLITE_ROW;
    while (status == STATUS_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        const int64_t id = read_record(statement, arena, &runs[*count]);
        status = read_parts(store, id, arena, &runs[(*count)++], error);
    }
    const Status end = store_read_end(store, statement, code, error);
    return status == STATUS_OK ? end : status;
}

#define GOOD_RUNS(key)                                                                                                 \
    "SELECT " RUN_COLUMNS " FROM runs WHERE " key " = ? AND state = 'ok' AND measured_step_s > 0 ORDER BY id DESC "    \
    "LIMIT ?"

Status store_measurements(Store *store, uint64_t measurement_hash, int most, Arena *arena, RunRecord *runs, int *count,
                          Error *error) {
    return read_runs(store, GOOD_RUNS("measurement_hash"), measurement_hash, most, arena, runs, count, error);
}

Status store_runs_of(Store *store, uint64_t content_hash, int most, Arena *arena, RunRecord *runs, int *count,
                     Error *error) {
    return read_runs(store, GOOD_RUNS("content_hash"), content_hash, most, arena, runs, count, error);
}

Status store_run_in_full(Store *store, int64_t id, Arena *arena, StoredRun *about, RunRecord *run, bool *found,
                         Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error,
                  "SELECT " RUN_COLUMNS ", started_at, model, plan, predicted_step_s, command, cluster, target "
                  "FROM runs WHERE id = ?",
                  "I", id));
    const int code = sqlite3_step(statement);
    *found = code == SQLITE_ROW;
    Status status = STATUS_OK;
    if (*found) {
        read_record(statement, arena, run);
        *about = (StoredRun){.id = id,
                             .source = run->source,
                             .host = run->host,
                             .device = run->device,
                             .transport = run->transport,
                             .state = run->state,
                             .failure = run->failure,
                             .steps = run->steps,
                             .measured_step_s = run->measured_step_s};
        store_take(statement, arena, "----------------------sssnsss", &about->started_at, &about->model, &about->plan,
                   &about->predicted_step_s, &about->command, &about->cluster, &about->target);
        status = read_parts(store, id, arena, run, error);
    }
    const Status end = store_read_end(store, statement, code, error);
    return status == STATUS_OK ? end : status;
}

Status store_last_request(Store *store, const char *but_target, Arena *arena, const char **command, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error,
                  "SELECT command FROM requests WHERE ?1 IS NULL OR target NOT LIKE ?1 || '@%' "
                  "ORDER BY last_asked_at DESC, id DESC LIMIT 1",
                  "s", but_target));
    const int code = sqlite3_step(statement);
    *command = code == SQLITE_ROW ? text_at(statement, 0, arena) : NULL;
    return store_read_end(store, statement, code, error);
}
