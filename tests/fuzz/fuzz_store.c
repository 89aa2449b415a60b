// Arbitrary rows in a store, inserted with SQL: types and numbers that no version of ours wrote. Reads are answered or
// refused in a sentence, and counts are never negative.

#include <sqlite3.h>
#include <string.h>

#include "autotune/store/store_internal.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_STEPS = 100000, MOST_READ = 64 };  // of SQLite's machine, and of each kind of row

// Rows only: no schema, no files, no settings.
static int allow(void *unused, int action, const char *a, const char *b, const char *c, const char *d) {
    (void)unused, (void)a, (void)b, (void)c, (void)d;
    return action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE || action == SQLITE_SELECT ||
                   action == SQLITE_READ
               ? SQLITE_OK
               : SQLITE_DENY;
}

static int give_up(void *unused) {
    (void)unused;
    return 1;
}

static void put_rows(Store *store, const uint8_t *data, size_t size, Arena *arena) {
    char *sql = arena_alloc(arena, size + 1);
    memcpy(sql, data, size);
    sqlite3_exec(store->db, "PRAGMA foreign_keys = OFF", NULL, NULL, NULL);
    sqlite3_set_authorizer(store->db, allow, NULL);
    sqlite3_progress_handler(store->db, MOST_STEPS, give_up, NULL);
    sqlite3_exec(store->db, sql, NULL, NULL, NULL);  // what it does not take is not our promise
    sqlite3_progress_handler(store->db, 0, NULL, NULL);
    sqlite3_set_authorizer(store->db, NULL, NULL);
}

static bool answered(Status status, const Error *error) {
    ASSERT(status == STATUS_OK || (error->message[0] != '\0' && !strchr(error->message, '\n')));
    return status == STATUS_OK;
}

static void read_run(Store *store, int64_t id, Arena *arena) {
    Error error = {0};
    StoredRun about;
    RunRecord run;
    bool found = false;
    if (answered(store_run_in_full(store, id, arena, &about, &run, &found, &error), &error) && found) {
        ASSERT(run.task_count >= 0 && run.price_count >= 0);
    }
}

static void read_list(Store *store, Arena *arena) {
    Error error = {0};
    StoredList list;
    if (!answered(store_list(store, 0, arena, &list, &error), &error)) {
        return;
    }
    for (int i = 0; i < list.run_count && i < MOST_READ; i++) {
        read_run(store, list.runs[i].id, arena);
    }
    for (int i = 0; i < list.preflight_count && i < MOST_READ; i++) {
        StoredPreflight preflight;
        bool found = false;
        if (answered(store_preflight(store, list.preflights[i].id, arena, &preflight, &found, &error), &error) &&
            found) {
            ASSERT(preflight.finding_count >= 0 && preflight.group_count >= 0);
        }
    }
}

static void read_others(Store *store, Arena *arena) {
    Error error = {0};
    const char *command = NULL;
    const ChipPrice *prices = NULL;
    StoredMeasurement *measured = NULL;
    StoredTuneRun *tuned = NULL;
    RunRecord runs[MOST_READ];
    int count = 0;
    answered(store_last_request(store, NULL, arena, &command, &error), &error);
    answered(store_prices(store, arena, &prices, &count, &error), &error);
    answered(store_measured_runs(store, 0, arena, &measured, &count, &error), &error);
    answered(store_tune_runs(store, 1, arena, &tuned, &count, &error), &error);
    answered(store_measurements(store, 1, MOST_READ, arena, runs, &count, &error), &error);
    ASSERT(count <= MOST_READ);
    answered(store_runs_of(store, 1, MOST_READ, arena, runs, &count, &error), &error);
    ASSERT(count <= MOST_READ);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena arena = {0};
    Error error = {0};
    Store *store = NULL;
    ASSERT(store_open_copy("", &store, &error) == STATUS_OK);
    put_rows(store, data, size, &arena);
    read_list(store, &arena);
    read_others(store, &arena);
    store_close(store);
    arena_free(&arena);
    return 0;
}
