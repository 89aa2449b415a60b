// Schema versions. PRAGMA user_version counts the migrations applied to a file; missing ones run in order inside one
// transaction, so a file is always at a whole version. An empty file starts from their end result (schema.c), because
// SQLite re-reads the whole schema after each step that alters it. Files of another program, of a newer ndtune or with
// an unassigned version number are refused untouched.

#include <stdio.h>

#include "autotune/store/schema_sql.h"
#include "autotune/store/store_internal.h"

static Status read_int(sqlite3 *db, const char *path, const char *sql, int64_t *value, Error *error) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW) {
        const Status status = store_error(db, path, "reading", error);
        sqlite3_finalize(statement);
        return status;
    }
    *value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return STATUS_OK;
}

static Status execute(sqlite3 *db, const char *path, const char *sql, Error *error) {
    FAIL_WITH(sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK,
              store_error(db, path, "bringing the schema up to date", error));
    return STATUS_OK;
}

// Ours, or empty and about to be.
static Status check_owner(sqlite3 *db, const char *path, int count, int64_t *version, Error *error) {
    int64_t application = 0, tables = 0;
    TRY(read_int(db, path, "PRAGMA application_id", &application, error));
    TRY(read_int(db, path, "PRAGMA user_version", version, error));
    TRY(read_int(db, path, "SELECT count(*) FROM sqlite_master", &tables, error));
    if (application != STORE_APPLICATION_ID && (application != 0 || tables > 0)) {
        error_set(error, STATUS_ENVIRONMENT, "store %s: a database of another program; it was left as it is", path);
        return error_hint(error, "name another file with --db FILE");
    }
    if (*version < 0) {
        error_set(error, STATUS_ENVIRONMENT, "store %s: schema %lld, which no ndtune wrote; it was left as it is", path,
                  (long long)*version);
        return error_hint(error, "name another file with --db FILE");
    }
    if (*version > count) {
        error_set(error, STATUS_ENVIRONMENT, "store %s: written by a newer ndtune (schema %lld, this one knows %d)",
                  path, (long long)*version, count);
        return error_hint(error, "use the newer ndtune, or name another file with --db FILE");
    }
    return STATUS_OK;
}

static Status apply(sqlite3 *db, const char *path, const Migration *migrations, int count, Error *error) {
    int64_t version = 0;  // read again inside the transaction: another process may have migrated meanwhile
    TRY(read_int(db, path, "PRAGMA user_version", &version, error));
    if (version == 0 && count >= store_migration_count) {
        TRY(execute(db, path, schema_sql, error));
        version = store_migration_count;
    }
    for (int64_t i = version; i < count; i++) {
        FAIL_WITH(execute(db, path, migrations[i].sql, error) != STATUS_OK,
                  error_wrap(error, "migration %s", migrations[i].name));
    }
    char pragmas[128];
    snprintf(pragmas, sizeof pragmas, "PRAGMA user_version = %d; PRAGMA application_id = %d", count,
             STORE_APPLICATION_ID);
    return execute(db, path, pragmas, error);
}

Status store_migrate(sqlite3 *db, const char *path, const Migration *migrations, int count, Error *error) {
    int64_t version = 0;
    TRY(check_owner(db, path, count, &version, error));
    if (version == count) {
        return STATUS_OK;
    }
    TRY(execute(db, path, "PRAGMA journal_mode = WAL", error));  // a property of the file, set once
    TRY(execute(db, path, "BEGIN IMMEDIATE", error));
    Status status = apply(db, path, migrations, count, error);
    if (status == STATUS_OK) {
        status = execute(db, path, "COMMIT", error);
    }
    if (status != STATUS_OK) {
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}
