// A build tool: runs all migrations on an empty store and writes the resulting schema as statements. A new store starts
// from these.

#include <sqlite3.h>
#include <stdio.h>

#include "autotune/store/migrations.h"

static int migrate(sqlite3 *db) {
    for (int i = 0; i < store_migration_count; i++) {
        if (sqlite3_exec(db, store_migrations[i].sql, NULL, NULL, NULL) != SQLITE_OK) {
            fprintf(stderr, "migration %s: %s\n", store_migrations[i].name, sqlite3_errmsg(db));
            return 1;
        }
    }
    return 0;
}

static int print_statement(void *out, int columns, char **values, char **names) {
    (void)columns, (void)names;
    return fprintf(out, "%s;\n\n", values[0]) < 0;
}

// In order of creation; SQLite creates its internal tables and indexes itself.
static int write_schema(sqlite3 *db, FILE *out) {
    return sqlite3_exec(db,
                        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite^_%' ESCAPE '^' "
                        "ORDER BY rowid",
                        print_statement, out, NULL) != SQLITE_OK;
}

int main(void) {
    sqlite3 *db = NULL;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) {
        fprintf(stderr, "no memory for a database\n");
        return 1;
    }
    const int failed = migrate(db) || write_schema(db, stdout) || fflush(stdout) != 0;
    sqlite3_close(db);
    return failed;
}
