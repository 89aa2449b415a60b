// Comma-separated files as in RFC 4180: quoted fields with doubled quotes and line breaks, CRLF or LF, a byte order
// mark. Every field keeps its position, so that the caller can report it in an error.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"

enum { CSV_MAX_FILE_BYTES = 256 << 20, CSV_MAX_COLUMNS = 1024 };

typedef struct CsvField {
    const char *text;  // without quotes; never NULL
    int line, column;  // of its first byte, from 1
} CsvField;

typedef struct CsvTable {
    const char *path;
    const CsvField *header;
    int column_count;
    const CsvField *fields;  // row by row
    int row_count;
} CsvTable;

// Everything lives in the arena. ENVIRONMENT when the file cannot be read, USAGE with "path:line:column" when it is
// malformed: no header, a duplicate name, a row of the wrong length, a stray or unclosed quote, a zero byte.
Status csv_load(const char *path, Arena *arena, CsvTable *table, Error *error);
Status csv_parse(const char *bytes, size_t count, const char *path, Arena *arena, CsvTable *table, Error *error);

static inline const CsvField *csv_field(const CsvTable *table, int row, int column) {
    return &table->fields[(size_t)row * (size_t)table->column_count + (size_t)column];
}

// The index of the column with this name, or -1.
int csv_column(const CsvTable *table, const char *name);
