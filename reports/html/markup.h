// Text inside markup. All external text (names, paths, reasons, files) passes through here.

#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "reports/record.h"
#include "sim/base/error.h"

void markup_text(const char *text, FILE *out);  // escaped for elements and quoted attributes; NULL = nothing
void markup_format(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));  // formatted, escaped
// An element with such a text; its attributes follow its name, trusted: "p class=\"note\"".
void markup_element(FILE *out, const char *element, const char *format, ...) __attribute__((format(printf, 3, 4)));

void markup_card(const char *name, const char *value, const char *note, FILE *out);  // one of a row of figures

// Compact JSON that cannot terminate the enclosing script element. Frees root; NULL root = out of memory or not UTF-8.
Status markup_json(json_t *root, FILE *out, Error *error);

// Writes a template with its placeholders {{name}} filled.
typedef Status (*PlaceWriter)(const void *what, const char *name, FILE *out, Error *error);
Status markup_page(const char *text, PlaceWriter write, const void *what, FILE *out, Error *error);
Status markup_no_place(const char *name, Error *error);  // for a name that no writer handles

// A writer's output as paragraphs: one <p> per line.
typedef void (*LineWriter)(const void *what, FILE *out);
void markup_lines(LineWriter writer, const void *what, FILE *out);

typedef struct MarkupTable {
    FILE *out;
    unsigned numbers;   // a bit for each column that is aligned right
    int count, column;  // of the open row
} MarkupTable;

// id: of the <table>; the first cell of each row is its header. columns: their names, such as "rank|#bytes"; '#' is in
// front of those that hold numbers.
MarkupTable table_begin(const char *id, const char *caption, const char *columns, FILE *out);
void table_row(MarkupTable *table, const char *attributes);  // attributes of the <tr>, trusted; NULL = none
void table_cell(MarkupTable *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The next cells by their kinds: s text, d int, I int64_t; of a double b bytes, c count, t seconds, % a share. A dash
// for no text, below 0, and for bytes unless above 0.
void table_cells(MarkupTable *table, const char *kinds, ...);
// A sentence spanning the rest of the row.
void table_rest(MarkupTable *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_end(MarkupTable *table);
// Records as a complete table.
void table_records(const char *id, const char *caption, const RecordSchema *schema, const void *records, int count,
                   FILE *out);
