// Opening, closing and the few helpers shared by all queries. SQLite's error codes are translated here into sentences
// that name the file. Durability: WAL with synchronous=NORMAL, so a killed process loses at most its own unfinished
// transaction.

#include "autotune/store/store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "autotune/store/store_internal.h"
#include "sim/base/clock.h"
#include "sim/base/escape.h"

Status store_default_path(char path[STORE_PATH_BYTES], Error *error) {
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    int written;
    if (data && data[0] == '/') {  // the specification ignores relative ones
        written = snprintf(path, STORE_PATH_BYTES, "%s/ndtune/ndtune.db", data);
    } else if (home && home[0] != '\0') {
        written = snprintf(path, STORE_PATH_BYTES, "%s/.local/share/ndtune/ndtune.db", home);
    } else {
        error_set(error, STATUS_ENVIRONMENT,
                  "neither XDG_DATA_HOME nor HOME is set, so there is no place for the store");
        return error_hint(error, "name a file with --db FILE");
    }
    FAIL_IF(written >= STORE_PATH_BYTES, error, STATUS_ENVIRONMENT, "the path of the store is longer than %d bytes",
            STORE_PATH_BYTES - 1);
    return STATUS_OK;
}

Status store_make_folders(const char *path, Error *error) {
    char folder[STORE_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
            error_set(error, STATUS_ENVIRONMENT, "store %s: cannot create the folder %s: %s", path, folder,
                      strerror(errno));
            return error_hint(error, "name another file with --db FILE");
        }
        *slash = '/';
    }
    return STATUS_OK;
}

Status store_error(sqlite3 *db, const char *path, const char *doing, Error *error) {
    const int code = db ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM;
    switch (code) {
    case SQLITE_NOTADB:
        error_set(error, STATUS_ENVIRONMENT, "store %s: the file is not a database; it was left as it is", path);
        return error_hint(error, "name another file with --db FILE");
    case SQLITE_CORRUPT:
        error_set(error, STATUS_ENVIRONMENT, "store %s: the database is damaged; it was left as it is", path);
        return error_hint(error, "name another file with --db FILE; sqlite3 can .recover rows of the damaged one");
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        error_set(error, STATUS_ENVIRONMENT, "store %s: not writable (%s)", path, sqlite3_errmsg(db));
        return error_hint(error, "name another file with --db FILE");
    case SQLITE_FULL:
    case SQLITE_IOERR:
        error_set(error, STATUS_ENVIRONMENT, "store %s: %s: %s; what was stored before is kept", path, doing,
                  sqlite3_errmsg(db));
        return error_hint(error, "make room on the disk, or name another file with --db FILE");
    case SQLITE_BUSY:
        return error_set(error, STATUS_ENVIRONMENT, "store %s: another process kept it locked for %d s", path,
                         STORE_BUSY_S);
    default:
        return error_set(error, STATUS_ENVIRONMENT, "store %s: %s: %s", path, doing,
                         db ? sqlite3_errmsg(db) : "out of memory");
    }
}

static Status store_execute(Store *store, const char *sql, Error *error) {
    FAIL_WITH(sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK,
              store_error(store->db, store->path, "writing", error));
    return STATUS_OK;
}

Status store_prepare(Store *store, const char *sql, sqlite3_stmt **statement, Error *error) {
    FAIL_WITH(sqlite3_prepare_v2(store->db, sql, -1, statement, NULL) != SQLITE_OK,
              store_error(store->db, store->path, "preparing a query", error));
    return STATUS_OK;
}

Status store_read_end(Store *store, sqlite3_stmt *statement, int code, Error *error) {
    const Status status = code == SQLITE_ROW || code == SQLITE_DONE
                              ? STATUS_OK
                              : store_error(store->db, store->path, "reading what is stored", error);
    sqlite3_finalize(statement);
    return status;
}

Status store_step(Store *store, sqlite3_stmt *statement, Error *error) {
    const int code = sqlite3_step(statement);
    if (code != SQLITE_DONE && code != SQLITE_ROW) {
        const Status status = store_error(store->db, store->path, "writing", error);
        sqlite3_reset(statement);
        return status;
    }
    sqlite3_reset(statement);
    return STATUS_OK;
}

Status store_transaction(Store *store, StoreWork work, void *context, Error *error) {
    TRY(store_execute(store, "BEGIN IMMEDIATE", error));
    Status status = work(store, context, error);
    if (status == STATUS_OK) {
        status = store_execute(store, "COMMIT", error);
    }
    if (status != STATUS_OK) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

const char *text_at(sqlite3_stmt *row, int column, Arena *arena) {
    const unsigned char *text = sqlite3_column_text(row, column);
    const char *found = (const char *)text;  // from a file that anyone may have written
    return !found ? NULL : text_is_line(found) ? arena_text(arena, found) : escape_line_text(found, arena);
}

static void bind_text(sqlite3_stmt *statement, int place, const char *text) {
    text ? sqlite3_bind_text(statement, place, text, -1, SQLITE_TRANSIENT) : sqlite3_bind_null(statement, place);
}

static void bind_from(sqlite3_stmt *statement, int first, const char *kinds, va_list values) {
    double number;
    for (int i = 0; kinds[i]; i++) {
        const int place = first + i;
        switch (kinds[i]) {
        case 's':
            bind_text(statement, place, va_arg(values, const char *));
            break;
        case 'h':
            bind_text(statement, place, hash_hex(va_arg(values, uint64_t), HASH_BUFFER));
            break;
        case 'd':
            sqlite3_bind_int64(statement, place, va_arg(values, int));
            break;
        case 'I':
            sqlite3_bind_int64(statement, place, va_arg(values, int64_t));
            break;
        default:
            number = va_arg(values, double);
            kinds[i] == 'n' || number > 0 ? sqlite3_bind_double(statement, place, number)
                                          : sqlite3_bind_null(statement, place);
        }
    }
}

static void bind_all(sqlite3_stmt *statement, const char *kinds, va_list values) {
    bind_from(statement, 1, kinds, values);
}

void store_bind_from(sqlite3_stmt *statement, int first, const char *kinds, ...) {
    WITH_VALUES(kinds, bind_from(statement, first, kinds, values));
}

void store_bind(sqlite3_stmt *statement, const char *kinds, ...) {
    WITH_VALUES(kinds, bind_all(statement, kinds, values));
}

Status store_ask(Store *store, sqlite3_stmt **statement, Error *error, const char *sql, const char *kinds, ...) {
    TRY(store_prepare(store, sql, statement, error));
    WITH_VALUES(kinds, bind_all(*statement, kinds, values));
    return STATUS_OK;
}

Status store_put(Store *store, sqlite3_stmt *statement, Error *error, const char *kinds, ...) {
    WITH_VALUES(kinds, bind_all(statement, kinds, values));
    return store_step(store, statement, error);
}

Status store_write(Store *store, Error *error, const char *sql, const char *kinds, ...) {
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store, sql, &statement, error));
    WITH_VALUES(kinds, bind_all(statement, kinds, values));
    const Status status = store_step(store, statement, error);
    sqlite3_finalize(statement);
    return status;
}

Status store_put_rows(Store *store, const char *sql, StoreWriter writer, const void *what, int64_t id, int64_t count,
                      Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store, sql, &statement, error));
    Status status = STATUS_OK;
    for (int64_t i = 0; i < count && status == STATUS_OK; i++) {
        status = writer(store, statement, what, id, (int)i, error);
    }
    sqlite3_finalize(statement);
    return status;
}

void store_take(sqlite3_stmt *row, Arena *arena, const char *kinds, ...) {
    va_list into;
    va_start(into, kinds);
    for (int column = 0; kinds[column]; column++) {
        switch (kinds[column]) {
        case 's':
            *va_arg(into, const char **) = text_at(row, column, arena);
            break;
        case 'd':
            *va_arg(into, int *) = sqlite3_column_int(row, column);
            break;
        case '-':
            break;
        case 'b':
            *va_arg(into, bool *) = sqlite3_column_int(row, column) != 0;
            break;
        case 'I':
            *va_arg(into, int64_t *) = sqlite3_column_int64(row, column);
            break;
        default:
            *va_arg(into, double *) = sqlite3_column_double(row, column);
        }
    }
    va_end(into);
}

Status store_read_all(Store *store, sqlite3_stmt *statement, size_t bytes, StoreReader reader, Arena *arena, void *rows,
                      int *count, Error *error) {
    size_t capacity = 0;
    int code;
    void *all = NULL;
    *count = 0;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        all = arena_grow(arena, all, (size_t)*count, &capacity, bytes);
        reader(statement, arena, (char *)all + (size_t)(*count)++ * bytes);
    }
    memcpy(rows, &all, sizeof all);
    return store_read_end(store, statement, code, error);
}

Status store_read_id(Store *store, sqlite3_stmt *statement, int64_t *id, Error *error) {
    const int code = sqlite3_step(statement);
    *id = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return store_read_end(store, statement, code, error);
}

uint64_t store_model_hash(const ModelSpec *model) {
    Hash hash = hash_begin();
    model_hash(model, &hash);
    return hash_end(&hash);
}

uint64_t store_profile_hash(const ClusterProfile *cluster) {
    Hash hash = hash_begin();
    cluster_hash(cluster, &hash);
    return hash_end(&hash);
}

void store_target_text(const Target *target, char *out, size_t bytes) {
    snprintf(out, bytes, "%s@%s", target->name, target->version);
}

// sqlite3_open_v2 silently falls back to read-only; a store that is not writable is refused here.
static Status open_file(Store *store, Error *error) {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    FAIL_WITH(sqlite3_open_v2(store->path, &store->db, flags, NULL) != SQLITE_OK,
              store_error(store->db, store->path, "opening", error));
    if (sqlite3_db_readonly(store->db, "main") == 1) {
        error_set(error, STATUS_ENVIRONMENT, "store %s: not writable", store->path);
        return error_hint(error, "name another file with --db FILE");
    }
    return STATUS_OK;
}

// SQLite's own counts milliseconds and sleeps whole seconds where it was built without usleep, as Debian's is.
int store_wait(void *of, int times) {
    Store *store = of;
    const double now_s = clock_s();
    store->waits_since_s = times == 0 ? now_s : store->waits_since_s;
    clock_nap(0.01);
    return now_s - store->waits_since_s < STORE_BUSY_S;
}

static Status prepare_database(Store *store, Error *error) {
    sqlite3_busy_handler(store->db, store_wait, store);
    TRY(store_execute(store, "PRAGMA foreign_keys = ON", error));
    TRY(store_migrate(store->db, store->path, store_migrations, store_migration_count, error));
    return store_execute(store, "PRAGMA synchronous = NORMAL", error);
}

// Names that SQLite does not treat as files: its documentation reserves those that begin with a colon.
static Status check_path(const char *path, Error *error) {
    FAIL_IF(path[0] == '\0' || path[0] == ':', error, STATUS_USAGE,
            "store \"%s\": is no file, so nothing would be kept", path);
    FAIL_IF(strlen(path) >= STORE_PATH_BYTES, error, STATUS_ENVIRONMENT,
            "the path of the store is longer than %d bytes", STORE_PATH_BYTES - 1);
    struct stat about;
    FAIL_IF(stat(path, &about) == 0 && !S_ISREG(about.st_mode), error, STATUS_ENVIRONMENT,
            "store %s: is a %s, not a file", path, S_ISDIR(about.st_mode) ? "folder" : "device or pipe");
    char folder[STORE_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash && slash > folder) {
        *slash = '\0';
        FAIL_IF(stat(folder, &about) != 0, error, STATUS_ENVIRONMENT, "store %s: %s: %s", path, folder,
                strerror(errno));
    }
    return STATUS_OK;
}

typedef Status (*Opener)(Store *store, Error *error);

static Status open_as(const char *path, Opener open, Store **store, Error *error) {
    *store = NULL;
    Store *opened = calloc(1, sizeof *opened);
    FAIL_IF(!opened, error, STATUS_INTERNAL, "store %s: out of memory", path);
    snprintf(opened->path, sizeof opened->path, "%s", path);
    Status status = open(opened, error);
    if (status == STATUS_OK) {
        status = prepare_database(opened, error);
    }
    if (status != STATUS_OK) {
        store_close(opened);
        return status;
    }
    *store = opened;
    return STATUS_OK;
}

Status store_open(const char *path, Store **store, Error *error) {
    *store = NULL;
    TRY(check_path(path, error));
    return open_as(path, open_file, store, error);
}

Status store_open_copy(const char *path, Store **store, Error *error) {
    *store = NULL;
    TRY(path[0] ? check_path(path, error) : STATUS_OK);
    return open_as(path, store_copy_file, store, error);
}

void store_close(Store *store) {
    if (store) {
        sqlite3_finalize(store->find_prediction);
        sqlite3_finalize(store->find_exposed);
        sqlite3_finalize(store->put_prediction);
        sqlite3_finalize(store->put_exposed);
        sqlite3_close(store->db);
        free(store);
    }
}
