// Shared by the files of the store only.

#pragma once

#include <sqlite3.h>

#include "autotune/store/migrations.h"
#include "autotune/store/store.h"

enum {
    STORE_APPLICATION_ID = 0x6e647475,  // "ndtu": identifies the file as ours
    STORE_BUSY_S = 20                   // another ndtune may be writing
};

struct Store {
    sqlite3 *db;
    sqlite3_stmt *find_prediction, *find_exposed;  // prepared at the first lookup
    sqlite3_stmt *put_prediction, *put_exposed;    // prepared at the first write
    double waits_since_s;                          // for another process
    char path[STORE_PATH_BYTES];
};

// A busy handler (sqlite3_busy_handler) of the Store.
int store_wait(void *store, int times);

// Brings an open database from its user_version to `count`, in one transaction. The list begins with store_migrations.
Status store_migrate(sqlite3 *db, const char *path, const Migration *migrations, int count, Error *error);

// Opens store->db in memory and fills it from the file store->path.
Status store_copy_file(Store *store, Error *error);

// SQLite's last error about this file, in one sentence.
Status store_error(sqlite3 *db, const char *path, const char *doing, Error *error);

Status store_prepare(Store *store, const char *sql, sqlite3_stmt **statement, Error *error);
// Ends a read: returns the status of its last step and finalizes the statement.
Status store_read_end(Store *store, sqlite3_stmt *statement, int code, Error *error);
// Runs a prepared insert or update and resets it for the next row.
Status store_step(Store *store, sqlite3_stmt *statement, Error *error);

// Values by their kinds: s text (NULL is SQL NULL), d int, I int64_t, n double (NAN is SQL NULL), p double that is SQL
// NULL unless above 0, h hash. A query that waits for its first row; one row of a prepared insert; a statement without
// rows, once.
void store_bind(sqlite3_stmt *statement, const char *kinds, ...);
Status store_ask(Store *store, sqlite3_stmt **statement, Error *error, const char *sql, const char *kinds, ...);
void store_bind_from(sqlite3_stmt *statement, int first, const char *kinds, ...);  // the first one's place, from 1
Status store_put(Store *store, sqlite3_stmt *statement, Error *error, const char *kinds, ...);
Status store_write(Store *store, Error *error, const char *sql, const char *kinds, ...);

// Puts so many rows by one statement, each as the writer does.
typedef Status (*StoreWriter)(Store *store, sqlite3_stmt *statement, const void *what, int64_t id, int row,
                              Error *error);
Status store_put_rows(Store *store, const char *sql, StoreWriter writer, const void *what, int64_t id, int64_t count,
                      Error *error);

// Copies the columns of a row to pointers by those kinds (n also for p), b bool; - skips a column.
void store_take(sqlite3_stmt *row, Arena *arena, const char *kinds, ...);

// All rows of a query, each of that many bytes; ends the read. rows: address of the pointer to the first row, NULL
// where there is none.
typedef void (*StoreReader)(sqlite3_stmt *row, Arena *arena, void *into);
Status store_read_all(Store *store, sqlite3_stmt *statement, size_t bytes, StoreReader reader, Arena *arena, void *rows,
                      int *count, Error *error);
// The single column of the first row; 0 where there is none.
Status store_read_id(Store *store, sqlite3_stmt *statement, int64_t *id, Error *error);

// BEGIN IMMEDIATE ... COMMIT around work; rolls back when it fails.
typedef Status (*StoreWork)(Store *store, void *context, Error *error);
Status store_transaction(Store *store, StoreWork work, void *context, Error *error);

const char *text_at(sqlite3_stmt *row, int column, Arena *arena);  // NULL where SQL has NULL
// From a JSON array; NAN for null or missing entries.
const double *store_numbers_at(sqlite3_stmt *row, int column, int count, Arena *arena);

// Exposed seconds by axis. statement: INSERT of (owner, axis, seconds) with the owner bound, or a bound SELECT of axis
// and seconds, whose last code is returned.
Status store_put_exposed(Store *store, sqlite3_stmt *statement, const double exposed_s[AXIS_COUNT], Error *error);
int store_read_exposed(sqlite3_stmt *statement, double exposed_s[AXIS_COUNT]);

// A preflight without its findings and groups, from a row that begins with these columns.
#define STORE_PREFLIGHT_COLUMNS "id, checked_at, command, cluster, hosts, device, transport, mesh, world, ready"
enum { STORE_PREFLIGHT_COLUMN_COUNT = 10 };
void store_read_preflight(sqlite3_stmt *row, Arena *arena, StoredPreflight *preflight);

// Call inside a transaction.
Status store_put_prices(Store *store, const ChipPrice *prices, int count, Error *error);

uint64_t store_model_hash(const ModelSpec *model);
uint64_t store_profile_hash(const ClusterProfile *cluster);
void store_target_text(const Target *target, char *out, size_t bytes);  // "name@version"

// A run with its spans and totals, inside the caller's transaction.
Status store_put_run(Store *store, const RunRecord *run, int64_t *run_id, Error *error);
