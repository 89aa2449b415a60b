// One pass over the bytes, field by field. RFC 4180 with two relaxations for spreadsheet output: lines may end with LF
// alone, and empty lines are skipped. A quote inside an unquoted field is rejected: it nearly always means that another
// tool corrupted the file.

#include "autotune/accuracy/csv_file.h"

#include <stdbool.h>
#include <string.h>

#include "sim/base/open.h"
#include "sim/base/text.h"

typedef struct Scanner {
    const char *path;
    const char *at, *end;
    int line;
    const char *line_start;
    Arena *arena;
    Error *error;
} Scanner;

static int column_of(const Scanner *scanner, const char *at) {
    return (int)(at - scanner->line_start) + 1;
}

static Status fail(const Scanner *scanner, int line, int column, const char *what) {
    return error_set(scanner->error, STATUS_USAGE, "%s:%d:%d: %s", scanner->path, line, column, what);
}

static void next_line(Scanner *scanner) {
    scanner->line++;
    scanner->line_start = scanner->at;
}

// Length of the quoted field that begins at `at`, without its closing quote; -1 when it is never closed.
static ptrdiff_t quoted_length(const char *at, const char *end) {
    for (const char *p = at; p < end; p++) {
        if (*p == '"') {
            if (p + 1 == end || p[1] != '"') {
                return p - at;
            }
            p++;
        }
    }
    return -1;
}

// From just after the opening quote to just after the closing one.
static Status scan_quoted(Scanner *scanner, CsvField *field) {
    const ptrdiff_t length = quoted_length(scanner->at, scanner->end);
    FAIL_WITH(length < 0, fail(scanner, field->line, field->column, "the quote is never closed"));
    const char *close = scanner->at + length;
    char *text = arena_alloc(scanner->arena, (size_t)length + 1);
    field->text = text;
    while (scanner->at < close) {
        const char c = *scanner->at++;
        FAIL_WITH(c == '\0', fail(scanner, scanner->line, column_of(scanner, scanner->at - 1), "a zero byte"));
        if (c == '\n') {
            next_line(scanner);
        }
        scanner->at += c == '"';  // the second quote of a doubled one
        *text++ = c;
    }
    scanner->at = close + 1;
    return STATUS_OK;
}

static Status scan_plain(Scanner *scanner, CsvField *field) {
    const char *start = scanner->at;
    while (scanner->at < scanner->end && *scanner->at != ',' && *scanner->at != '\n' && *scanner->at != '\r') {
        if (*scanner->at == '"') {
            return fail(scanner, scanner->line, column_of(scanner, scanner->at),
                        "a quote inside a field that does not begin with one");
        }
        FAIL_WITH(*scanner->at == '\0', fail(scanner, scanner->line, column_of(scanner, scanner->at), "a zero byte"));
        scanner->at++;
    }
    const size_t bytes = (size_t)(scanner->at - start);
    char *text = arena_alloc(scanner->arena, bytes + 1);
    memcpy(text, start, bytes);
    field->text = text;
    return STATUS_OK;
}

// Ends a field: true when it was the last on its line.
static Status scan_separator(Scanner *scanner, bool *last) {
    *last = true;
    if (scanner->at == scanner->end) {
        return STATUS_OK;
    }
    const char *place = scanner->at;
    const char c = *scanner->at++;
    if (c == ',') {
        *last = false;
        return STATUS_OK;
    }
    if (c == '\n' || (c == '\r' && scanner->at < scanner->end && *scanner->at == '\n')) {
        scanner->at += c == '\r';
        next_line(scanner);
        return STATUS_OK;
    }
    return fail(scanner, scanner->line, column_of(scanner, place),
                c == '\r' ? "a carriage return that no line feed follows" : "text behind a closing quote");
}

static Status scan_field(Scanner *scanner, CsvField *field, bool *last) {
    *field = (CsvField){.line = scanner->line, .column = column_of(scanner, scanner->at)};
    if (scanner->at < scanner->end && *scanner->at == '"') {
        scanner->at++;
        TRY(scan_quoted(scanner, field));
    } else {
        TRY(scan_plain(scanner, field));
    }
    return scan_separator(scanner, last);
}

static bool skip_empty_line(Scanner *scanner) {
    const size_t left = (size_t)(scanner->end - scanner->at);
    const size_t bytes = left >= 1 && scanner->at[0] == '\n'                ? 1
                         : left >= 2 && memcmp(scanner->at, "\r\n", 2) == 0 ? 2
                                                                            : 0;
    scanner->at += bytes;
    if (bytes > 0) {
        next_line(scanner);
    }
    return bytes > 0;
}

static Status scan_header(Scanner *scanner, CsvTable *table) {
    CsvField *header = ARENA_ARRAY(scanner->arena, CsvField, CSV_MAX_COLUMNS);
    bool last = false;
    while (skip_empty_line(scanner)) {
    }
    FAIL_IF(scanner->at == scanner->end, scanner->error, STATUS_USAGE,
            "%s: empty; a line with the names of the columns is needed", scanner->path);
    while (!last) {
        CsvField field;
        TRY(scan_field(scanner, &field, &last));
        for (int i = 0; i < table->column_count; i++) {
            FAIL_IF(strcmp(header[i].text, field.text) == 0, scanner->error, STATUS_USAGE,
                    "%s:%d:%d: the column \"%s\" is named twice", scanner->path, field.line, field.column, field.text);
        }
        FAIL_WITH(table->column_count == CSV_MAX_COLUMNS,
                  fail(scanner, field.line, field.column, "more than 1024 columns"));
        header[table->column_count++] = field;
    }
    table->header = header;
    return STATUS_OK;
}

static Status scan_row(Scanner *scanner, int columns, CsvField *fields) {
    bool last = false;
    for (int i = 0; i < columns; i++) {
        TRY(scan_field(scanner, &fields[i], &last));
        FAIL_IF(last != (i == columns - 1), scanner->error, STATUS_USAGE,
                "%s:%d:%d: the row has %s than the %d fields of the header", scanner->path, fields[i].line,
                fields[i].column, last ? "fewer" : "more", columns);
    }
    return STATUS_OK;
}

Status csv_parse(const char *bytes, size_t count, const char *path, Arena *arena, CsvTable *table, Error *error) {
    *table = (CsvTable){.path = path};
    Scanner scanner = {.path = path, .at = bytes, .end = bytes + count, .line = 1, .arena = arena, .error = error};
    if (count >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) {
        scanner.at += 3;
    }
    scanner.line_start = scanner.at;
    TRY(scan_header(&scanner, table));
    const size_t columns = (size_t)table->column_count;
    size_t capacity = 64;
    typedef struct {
        const CsvField *fields;
    } Row;
    Row *rows = ARENA_ARRAY(arena, Row, capacity);
    while (scanner.at < scanner.end) {
        if (skip_empty_line(&scanner)) {
            continue;
        }
        CsvField *fields = ARENA_ARRAY(arena, CsvField, columns);
        TRY(scan_row(&scanner, (int)columns, fields));
        rows = arena_grow(arena, rows, (size_t)table->row_count, &capacity, sizeof *rows);
        rows[table->row_count++].fields = fields;
    }
    CsvField *all = ARENA_ARRAY(arena, CsvField, (size_t)table->row_count * columns);
    for (int i = 0; i < table->row_count; i++) {
        memcpy(all + (size_t)i * columns, rows[i].fields, columns * sizeof *all);
    }
    table->fields = all;
    return STATUS_OK;
}

Status csv_load(const char *path, Arena *arena, CsvTable *table, Error *error) {
    const char *why = NULL;
    FILE *file = open_to_read(path, &why);
    FAIL_IF(!file, error, STATUS_ENVIRONMENT, "%s cannot be opened: %s", path, why);
    char *bytes = NULL;
    size_t used = 0;
    why = read_and_close(file, CSV_MAX_FILE_BYTES, arena, &bytes, &used);
    FAIL_IF(why, error, STATUS_ENVIRONMENT, "%s cannot be read: %s", path, why);
    FAIL_IF(used > CSV_MAX_FILE_BYTES, error, STATUS_USAGE, "%s: larger than %d MiB", path, CSV_MAX_FILE_BYTES >> 20);
    return csv_parse(bytes, used, path, arena, table, error);
}

int csv_column(const CsvTable *table, const char *name) {
    return TEXT_ROW(table->header, table->column_count, text, name);
}
