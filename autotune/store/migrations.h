// The list of schema versions: store_migrate brings a file up by it, and the schema of a new store is made from it.

#pragma once

// One numbered schema step; version is its position in the list, from 1.
typedef struct Migration {
    const char *name;
    const char *sql;
} Migration;

extern const Migration store_migrations[];
extern const int store_migration_count;
