// Preflights: one row each, with its findings and groups, saved together.

#include "autotune/store/store_internal.h"

static Status put_finding(Store *store, sqlite3_stmt *row, const void *what, int64_t id, int i, Error *error) {
    const StoredFinding *finding = &((const StoredPreflight *)what)->findings[i];
    return store_put(store, row, error, "Idds", id, i + 1, finding->bad, finding->sentence);
}

static Status put_groups(Store *store, sqlite3_stmt *row, const void *what, int64_t id, int i, Error *error) {
    const StoredGroups *groups = &((const StoredPreflight *)what)->groups[i];
    return store_put(store, row, error, "Idssdnnnn", id, i + 1, groups->axes, groups->collective, groups->ranks,
                     groups->payload_bytes, groups->measured_s, groups->predicted_s, groups->wrong_elements);
}

static Status save(Store *store, void *context, Error *error) {
    const StoredPreflight *of = context;
    TRY(store_write(store, error,
                    "INSERT INTO preflights (command, cluster, hosts, device, transport, mesh, world, ready) "
                    "VALUES (?,?,?,?,?,?,?,?)",
                    "ssssssdd", of->command, of->cluster, of->hosts, of->device, of->transport, of->mesh, of->world,
                    of->ready));
    const int64_t id = sqlite3_last_insert_rowid(store->db);
    TRY(store_put_rows(store, "INSERT INTO preflight_findings VALUES (?,?,?,?)", put_finding, of, id, of->finding_count,
                       error));
    return store_put_rows(store, "INSERT INTO preflight_groups VALUES (?1,?2,?3,?4,?5,?6,?7,nullif(?8, 0.0),?9)",
                          put_groups, of, id, of->group_count, error);
}

Status store_save_preflight(Store *store, const StoredPreflight *preflight, Error *error) {
    return store_transaction(store, save, (void *)preflight, error);
}

// ---- reading

static void read_finding(sqlite3_stmt *row, Arena *arena, void *into) {
    StoredFinding *of = into;
    store_take(row, arena, "bs", &of->bad, &of->sentence);
}

static void read_groups(sqlite3_stmt *row, Arena *arena, void *into) {
    StoredGroups *of = into;
    store_take(row, arena, "ssdnnnn", &of->axes, &of->collective, &of->ranks, &of->payload_bytes, &of->measured_s,
               &of->predicted_s, &of->wrong_elements);
}

static Status read_parts(Store *store, int64_t id, Arena *arena, StoredPreflight *preflight, Error *error) {
    sqlite3_stmt *row = NULL;
    TRY(store_ask(store, &row, error,
                  "SELECT bad, sentence FROM preflight_findings WHERE preflight_id = ? ORDER BY place", "I", id));
    TRY(store_read_all(store, row, sizeof(StoredFinding), read_finding, arena, &preflight->findings,
                       &preflight->finding_count, error));
    TRY(store_ask(store, &row, error,
                  "SELECT axes, collective, ranks, payload_bytes, measured_s, predicted_s, wrong FROM "
                  "preflight_groups WHERE preflight_id = ? ORDER BY place",
                  "I", id));
    return store_read_all(store, row, sizeof(StoredGroups), read_groups, arena, &preflight->groups,
                          &preflight->group_count, error);
}

void store_read_preflight(sqlite3_stmt *row, Arena *arena, StoredPreflight *preflight) {
    StoredPreflight *of = preflight;
    *of = (StoredPreflight){0};
    store_take(row, arena, "Isssssssdb", &of->id, &of->checked_at, &of->command, &of->cluster, &of->hosts, &of->device,
               &of->transport, &of->mesh, &of->world, &of->ready);
}

Status store_preflight(Store *store, int64_t id, Arena *arena, StoredPreflight *preflight, bool *found, Error *error) {
    sqlite3_stmt *row = NULL;
    TRY(store_ask(store, &row, error, "SELECT " STORE_PREFLIGHT_COLUMNS " FROM preflights WHERE id = ?", "I", id));
    const int code = sqlite3_step(row);
    *found = code == SQLITE_ROW;
    if (*found) {
        store_read_preflight(row, arena, preflight);
    }
    TRY(store_read_end(store, row, code, error));
    return *found ? read_parts(store, id, arena, preflight, error) : STATUS_OK;
}
