// An in-memory store, filled from a file. A WAL-mode file is read through its -wal and -shm files, which cannot be
// created in a read-only folder; then it is read as immutable, which is safe while there is no log next to it.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/store/store_internal.h"

// "file:/a%20b?immutable=1" (sqlite.org/uri.html).
static void immutable_uri(const char *path, char *uri, size_t bytes) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
    size_t used = (size_t)snprintf(uri, bytes, "file:");
    for (; *path; path++) {
        used +=
            (size_t)snprintf(uri + used, bytes - used, strchr(plain, *path) ? "%c" : "%%%02X", (unsigned char)*path);
    }
    snprintf(uri + used, bytes - used, "?immutable=1");
}

static bool has_log(const char *path) {
    char log[STORE_PATH_BYTES + 8];
    snprintf(log, sizeof log, "%s-wal", path);
    return access(log, F_OK) == 0;
}

static Status copy_from(const char *name, int flags, Store *store, Error *error) {
    Status status = STATUS_OK;
    sqlite3 *from = NULL;
    int code = sqlite3_open_v2(name, &from, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | flags, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_handler(from, store_wait, store);
        sqlite3_backup *backup = sqlite3_backup_init(store->db, "main", from, "main");
        sqlite3_backup_step(backup, -1);
        code = sqlite3_backup_finish(backup);
    }
    if (code != SQLITE_OK) {
        status = error_set(error, STATUS_ENVIRONMENT, "store %s: reading: %s", store->path, sqlite3_errstr(code));
    }
    sqlite3_close(from);
    return status;
}

Status store_copy_file(Store *store, Error *error) {
    FAIL_WITH(sqlite3_open_v2(":memory:", &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK,
              store_error(store->db, store->path, "opening", error));
    if (store->path[0] == '\0') {
        return STATUS_OK;
    }
    const Status status = copy_from(store->path, 0, store, error);
    if (status == STATUS_OK || has_log(store->path)) {
        return status;
    }
    char uri[3 * STORE_PATH_BYTES + 32];
    immutable_uri(store->path, uri, sizeof uri);
    return copy_from(uri, SQLITE_OPEN_URI, store, error);
}
