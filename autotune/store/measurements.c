// Runs read back: repeats of a measurement, and one run in full.

#include <jansson.h>
#include <math.h>
#include <string.h>

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
enum { RUN_COLUMN_COUNT = 22 };

static int64_t read_record(sqlite3_stmt *row, Arena *arena, RunRecord *run) {
    const int steps = sqlite3_column_int(row, 7);
    *run = (RunRecord){.source = text_at(row, 1, arena),
                       .host = text_at(row, 2, arena),
                       .device = text_at(row, 3, arena),
                       .transport = text_at(row, 4, arena),
                       .lanes = text_at(row, 5, arena),
                       .seed = sqlite3_column_int64(row, 6),
                       .steps = steps,
                       .warm_up = sqlite3_column_int(row, 8),
                       .state = text_at(row, 9, arena),
                       .failure = text_at(row, 10, arena),
                       .losses = store_numbers_at(row, 11, steps, arena),
                       .grad_norms = store_numbers_at(row, 12, steps, arena),
                       .step_times_s = store_numbers_at(row, 13, steps, arena),
                       .peak_bytes = sqlite3_column_int64(row, 14),
                       .planned_peak_bytes = sqlite3_column_int64(row, 15),
                       .measured_step_s = sqlite3_column_double(row, 16),
                       .at_s = sqlite3_column_double(row, 21),
                       .parts = {.compute_s = sqlite3_column_double(row, 17),
                                 .optimizer_s = sqlite3_column_double(row, 18),
                                 .overhead_s = sqlite3_column_double(row, 19)},
                       .core_type = text_at(row, 20, arena)};
    return sqlite3_column_int64(row, 0);
}

static Status read_exposed(Store *store, int64_t run_id, RunRecord *run, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store, "SELECT axis, seconds FROM run_exposed WHERE run_id = ?", &statement, error));
    int place = 1;
    bind_int(statement, &place, run_id);
    return store_read_end(store, statement, store_read_exposed(statement, run->parts.exposed_s), error);
}

static Status read_parts(Store *store, int64_t run_id, Arena *arena, RunRecord *run, Error *error) {
    TRY(read_exposed(store, run_id, run, error));
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store,
                      "SELECT task, kind, lane, count, measured_s, predicted_s FROM task_totals WHERE run_id = ? "
                      "ORDER BY rowid",
                      &statement, error));
    int place = 1;
    bind_int(statement, &place, run_id);
    RunTask *tasks = NULL;
    size_t capacity = 0;
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        tasks = arena_grow(arena, tasks, (size_t)run->task_count, &capacity, sizeof *tasks);
        tasks[run->task_count++] = (RunTask){text_at(statement, 0, arena),        text_at(statement, 1, arena),
                                             text_at(statement, 2, arena),        sqlite3_column_int64(statement, 3),
                                             sqlite3_column_double(statement, 4), sqlite3_column_double(statement, 5)};
    }
    run->tasks = tasks;
    return store_read_end(store, statement, code, error);
}

static Status read_runs(Store *store, const char *sql, uint64_t key, int most, Arena *arena, RunRecord *runs,
                        int *count, Error *error) {
    *count = 0;
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store, sql, &statement, error));
    int place = 1;
    bind_hash(statement, &place, key);
    bind_int(statement, &place, most);
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
    TRY(store_prepare(store,
                      "SELECT " RUN_COLUMNS ", started_at, model, plan, predicted_step_s, command, cluster, target "
                      "FROM runs WHERE id = ?",
                      &statement, error));
    int place = 1;
    bind_int(statement, &place, id);
    const int code = sqlite3_step(statement);
    *found = code == SQLITE_ROW;
    Status status = STATUS_OK;
    if (*found) {
        enum { AFTER = RUN_COLUMN_COUNT };
        read_record(statement, arena, run);
        *about = (StoredRun){.id = id,
                             .started_at = text_at(statement, AFTER, arena),
                             .model = text_at(statement, AFTER + 1, arena),
                             .plan = text_at(statement, AFTER + 2, arena),
                             .predicted_step_s = sqlite3_column_double(statement, AFTER + 3),
                             .command = text_at(statement, AFTER + 4, arena),
                             .cluster = text_at(statement, AFTER + 5, arena),
                             .target = text_at(statement, AFTER + 6, arena),
                             .source = run->source,
                             .host = run->host,
                             .device = run->device,
                             .transport = run->transport,
                             .state = run->state,
                             .failure = run->failure,
                             .steps = run->steps,
                             .measured_step_s = run->measured_step_s};
        status = read_parts(store, id, arena, run, error);
    }
    const Status end = store_read_end(store, statement, code, error);
    return status == STATUS_OK ? end : status;
}

Status store_last_request(Store *store, const char *but_target, Arena *arena, const char **command, Error *error) {
    sqlite3_stmt *statement = NULL;
    *command = NULL;
    TRY(store_prepare(store,
                      "SELECT command FROM requests WHERE ?1 IS NULL OR target NOT LIKE ?1 || '@%' "
                      "ORDER BY last_asked_at DESC, id DESC LIMIT 1",
                      &statement, error));
    int place = 1;
    bind_text(statement, &place, but_target);
    const int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        *command = text_at(statement, 0, arena);
    }
    return store_read_end(store, statement, code, error);
}
