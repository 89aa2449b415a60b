// Reads back past requests and runs, for `ndtune runs`.

#include "autotune/store/store_internal.h"

static void read_request(sqlite3_stmt *row, Arena *arena, void *into) {
    StoredRequest *of = into;
    store_take(row, arena, "Isssssddsn", &of->id, &of->asked_at, &of->command, &of->model, &of->cluster, &of->target,
               &of->world, &of->times_asked, &of->best_plan, &of->best_step_s);
}

static void read_run(sqlite3_stmt *row, Arena *arena, void *into) {
    StoredRun *of = into;
    *of = (StoredRun){0};
    store_take(row, arena, "Isssssssssdnn", &of->id, &of->started_at, &of->source, &of->host, &of->model, &of->plan,
               &of->device, &of->transport, &of->state, &of->failure, &of->steps, &of->predicted_step_s,
               &of->measured_step_s);
}

static void read_preflight(sqlite3_stmt *row, Arena *arena, void *into) {
    StoredPreflight *of = into;
    store_read_preflight(row, arena, of);
    const char *bad = text_at(row, STORE_PREFLIGHT_COLUMN_COUNT, arena);
    if (bad) {
        StoredFinding *finding = ARENA_NEW(arena, StoredFinding);
        *finding = (StoredFinding){true, bad};
        of->findings = finding;
        of->finding_count = 1;
    }
}

static Status read_rows(Store *store, const char *sql, int most, size_t bytes, StoreReader reader, Arena *arena,
                        void *rows, int *count, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_ask(store, &statement, error, sql, "d", most > 0 ? most : -1));  // a negative LIMIT means no limit
    return store_read_all(store, statement, bytes, reader, arena, rows, count, error);
}

Status store_list(Store *store, int most, Arena *arena, StoredList *list, Error *error) {
    *list = (StoredList){0};
    TRY(read_rows(store,
                  "SELECT r.id, r.last_asked_at, r.command, r.model, r.cluster, r.target, r.world, r.times_asked, "
                  "b.plan, b.step_s FROM requests r LEFT JOIN v_best b ON b.request_id = r.id "
                  "ORDER BY r.last_asked_at DESC, r.id DESC LIMIT ?",
                  most, sizeof *list->requests, read_request, arena, &list->requests, &list->request_count, error));
    TRY(read_rows(store,
                  "SELECT id, started_at, source, host, model, plan, device, transport, state, failure, steps, "
                  "predicted_step_s, measured_step_s FROM runs ORDER BY id DESC LIMIT ?",
                  most, sizeof *list->runs, read_run, arena, &list->runs, &list->run_count, error));
    return read_rows(store,
                     "SELECT " STORE_PREFLIGHT_COLUMNS ", (SELECT sentence FROM preflight_findings WHERE "
                     "preflight_id = id AND bad ORDER BY place LIMIT 1) FROM preflights ORDER BY id DESC LIMIT ?",
                     most, sizeof *list->preflights, read_preflight, arena, &list->preflights, &list->preflight_count,
                     error);
}
