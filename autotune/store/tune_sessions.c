// Sessions of the closed loop: a run and its place in the session are saved in one transaction, so that a process
// killed at any moment leaves a session that the next one can resume.

#include "autotune/store/store_internal.h"

Status store_find_tune_session(Store *store, uint64_t key, int64_t *session, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error, "SELECT id FROM tune_sessions WHERE key = ? ORDER BY id DESC LIMIT 1", "h",
                  key));
    return store_read_id(store, statement, session, error);
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
    TRY(store_write(store, error, "INSERT INTO tune_sessions (key, command) VALUES (?,?)", "hs", key->key,
                    key->command));
    open->session = sqlite3_last_insert_rowid(store->db);
    for (int i = 0; i < key->count && !key->afresh; i++) {
        if (key->measurement_hashes[i] == 0) {
            continue;  // a shape that cannot be measured
        }
        // Every run of a measurement that ended well becomes one of the session.
        TRY(store_write(store, error,
                        "INSERT INTO tune_runs SELECT ?1, (SELECT coalesce(max(place), 0) FROM tune_runs "
                        "WHERE session_id = ?1) + row_number() OVER (ORDER BY id), id, 1, 0 FROM runs "
                        "WHERE measurement_hash = ?2 AND state = 'ok' AND measured_step_s > 0",
                        "Ih", open->session, key->measurement_hashes[i]));
    }
    return STATUS_OK;
}

Status store_tune_session(Store *store, const TuneSessionKey *key, int64_t *session, Error *error) {
    OpenSession open = {.key = key};
    TRY(store_transaction(store, open_session, &open, error));
    *session = open.session;
    return STATUS_OK;
}

static void read_tune_run(sqlite3_stmt *row, Arena *arena, void *into) {
    StoredTuneRun *of = into;
    store_take(row, arena, "Isbnssnndd", &of->run_id, &of->measurement_hash, &of->known, &of->wall_s, &of->state,
               &of->failure, &of->measured_step_s, &of->at_s, &of->steps, &of->warm_up);
    of->step_times_s = store_numbers_at(row, 10, of->steps, arena);
}

Status store_tune_runs(Store *store, int64_t session, Arena *arena, StoredTuneRun **runs, int *count, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error,
                  "SELECT r.id, r.measurement_hash, t.known, t.wall_s, r.state, r.failure, r.measured_step_s, "
                  "CAST(strftime('%s', r.started_at) AS REAL) - t.wall_s, r.steps, r.warm_up, r.step_times_s "
                  "FROM tune_runs t JOIN runs r ON r.id = t.run_id WHERE t.session_id = ? ORDER BY t.place",
                  "I", session));
    return store_read_all(store, statement, sizeof **runs, read_tune_run, arena, runs, count, error);
}

typedef struct SaveTuneRun {
    int64_t session, run_id;
    const RunRecord *run;
    double wall_s;
} SaveTuneRun;

static Status save_tune_run(Store *store, void *context, Error *error) {
    SaveTuneRun *save = context;
    TRY(store_put_run(store, save->run, &save->run_id, error));
    return store_write(store, error,
                       "INSERT INTO tune_runs SELECT ?1, coalesce(max(place), 0) + 1, ?2, 0, ?3 FROM tune_runs "
                       "WHERE session_id = ?1",
                       "IIn", save->session, save->run_id, save->wall_s);
}

Status store_save_tune_run(Store *store, int64_t session, const RunRecord *run, double wall_s, int64_t *run_id,
                           Error *error) {
    SaveTuneRun save = {.session = session, .run = run, .wall_s = wall_s};
    TRY(store_transaction(store, save_tune_run, &save, error));
    *run_id = save.run_id;
    return STATUS_OK;
}
