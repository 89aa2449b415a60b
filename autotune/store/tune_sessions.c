// Sessions of the closed loop: a run and its place in the session are saved in one transaction, so that a process that
// is killed at any moment leaves a session that the next one can go on with.

#include "autotune/store/store_internal.h"

Status store_find_tune_session(Store *store, uint64_t key, int64_t *session, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store, "SELECT id FROM tune_sessions WHERE key = ? ORDER BY id DESC LIMIT 1", &statement, error));
    int place = 1;
    bind_hash(statement, &place, key);
    const int code = sqlite3_step(statement);
    *session = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return store_read_end(store, statement, code, error);
}

static Status insert_session(Store *store, const TuneSessionKey *key, int64_t *session, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store, "INSERT INTO tune_sessions (key, command) VALUES (?,?)", &statement, error));
    int place = 1;
    bind_hash(statement, &place, key->key);
    bind_text(statement, &place, key->command);
    const Status status = store_step(store, statement, error);
    sqlite3_finalize(statement);
    *session = sqlite3_last_insert_rowid(store->db);
    return status;
}

// Every run of a measurement that ended well becomes one of the session.
static Status adopt_runs(Store *store, int64_t session, uint64_t measurement_hash, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store,
                      "INSERT INTO tune_runs SELECT ?1, (SELECT coalesce(max(place), 0) FROM tune_runs "
                      "WHERE session_id = ?1) + row_number() OVER (ORDER BY id), id, 1, 0 FROM runs "
                      "WHERE measurement_hash = ?2 AND state = 'ok' AND measured_step_s > 0",
                      &statement, error));
    int place = 1;
    bind_int(statement, &place, session);
    bind_hash(statement, &place, measurement_hash);
    const Status status = store_step(store, statement, error);
    sqlite3_finalize(statement);
    return status;
}

typedef struct OpenSession {
    const TuneSessionKey *key;
    int64_t session;
} OpenSession;

static Status open_session(Store *store, void *context, Error *error) {
    OpenSession *open = context;
    const TuneSessionKey *key = open->key;
    if (!key->afresh) {
        TRY(store_find_tune_session(store, key->key, &open->session, error));
    }
    if (open->session > 0) {
        return STATUS_OK;
    }
    TRY(insert_session(store, key, &open->session, error));
    for (int i = 0; i < key->count && !key->afresh; i++) {
        if (key->measurement_hashes[i] == 0) {
            continue;  // a shape that cannot be measured
        }
        TRY(adopt_runs(store, open->session, key->measurement_hashes[i], error));
    }
    return STATUS_OK;
}

Status store_tune_session(Store *store, const TuneSessionKey *key, int64_t *session, Error *error) {
    OpenSession open = {.key = key};
    TRY(store_transaction(store, open_session, &open, error));
    *session = open.session;
    return STATUS_OK;
}

Status store_tune_runs(Store *store, int64_t session, Arena *arena, StoredTuneRun **runs, int *count, Error *error) {
    sqlite3_stmt *statement = NULL;
    *runs = NULL;
    *count = 0;
    TRY(store_prepare(store,
                      "SELECT r.id, r.measurement_hash, t.known, t.wall_s, r.state, r.failure, r.measured_step_s, "
                      "CAST(strftime('%s', r.started_at) AS REAL) - t.wall_s, r.steps, r.warm_up, r.step_times_s "
                      "FROM tune_runs t JOIN runs r ON r.id = t.run_id WHERE t.session_id = ? ORDER BY t.place",
                      &statement, error));
    int place = 1, code;
    bind_int(statement, &place, session);
    size_t capacity = 0;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        *runs = arena_grow(arena, *runs, (size_t)*count, &capacity, sizeof **runs);
        const int steps = sqlite3_column_int(statement, 8);
        (*runs)[(*count)++] = (StoredTuneRun){.run_id = sqlite3_column_int64(statement, 0),
                                              .measurement_hash = text_at(statement, 1, arena),
                                              .known = sqlite3_column_int(statement, 2) != 0,
                                              .wall_s = sqlite3_column_double(statement, 3),
                                              .state = text_at(statement, 4, arena),
                                              .failure = text_at(statement, 5, arena),
                                              .measured_step_s = sqlite3_column_double(statement, 6),
                                              .at_s = sqlite3_column_double(statement, 7),
                                              .step_times_s = store_numbers_at(statement, 10, steps, arena),
                                              .steps = steps,
                                              .warm_up = sqlite3_column_int(statement, 9)};
    }
    return store_read_end(store, statement, code, error);
}

typedef struct SaveTuneRun {
    int64_t session, run_id;
    const RunRecord *run;
    double wall_s;
} SaveTuneRun;

static Status save_tune_run(Store *store, void *context, Error *error) {
    SaveTuneRun *save = context;
    TRY(store_put_run(store, save->run, &save->run_id, error));
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store,
                      "INSERT INTO tune_runs SELECT ?1, coalesce(max(place), 0) + 1, ?2, 0, ?3 FROM tune_runs "
                      "WHERE session_id = ?1",
                      &statement, error));
    int place = 1;
    bind_int(statement, &place, save->session);
    bind_int(statement, &place, save->run_id);
    bind_double(statement, &place, save->wall_s);
    const Status status = store_step(store, statement, error);
    sqlite3_finalize(statement);
    return status;
}

Status store_save_tune_run(Store *store, int64_t session, const RunRecord *run, double wall_s, int64_t *run_id,
                           Error *error) {
    SaveTuneRun save = {.session = session, .run = run, .wall_s = wall_s};
    TRY(store_transaction(store, save_tune_run, &save, error));
    *run_id = save.run_id;
    return STATUS_OK;
}
