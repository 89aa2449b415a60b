// One schema for the rows of an answer, and a renderer for each place where they go: a terminal, JSON, CSV, the page
// (table_records of reports/html/markup.h). Keys of JSON and CSV stand in the order of the fields, columns of tables in
// theirs. What a row does not hold itself is its answer's: `about`.

#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "reports/csv_lines.h"
#include "sim/axes/mesh.h"
#include "sim/base/error.h"

enum { RECORD_BYTES = 1024 };  // of a value as text

typedef enum {
    RECORD_TEXT,   // const char *; NULL is unknown
    RECORD_NAME,   // char[]
    RECORD_INT,    // int
    RECORD_PLACE,  // int; unknown unless above 0
    RECORD_LONG,   // int64_t
    RECORD_REAL,   // double; unknown where it is not finite
    RECORD_ABOVE,  // double; unknown unless above 0
    RECORD_FLAG,   // bool
    RECORD_MESH,   // Mesh: an object of JSON, a column of CSV for each axis
    RECORD_MADE    // by a function
} RecordKind;

// How people read a number.
typedef enum { AS_PLAIN, AS_COUNT, AS_BYTES, AS_SECONDS, AS_RATIO, AS_PERCENT, AS_CHANGE } RecordUnit;

typedef enum { IN_TABLES, IN_TEXT, IN_PAGE } RecordPlace;  // where a column stands: in both, or one of them

typedef struct RecordValue {
    RecordKind kind;  // RECORD_TEXT, RECORD_LONG, RECORD_REAL, RECORD_FLAG or RECORD_MESH
    bool known;
    const char *text;
    int64_t whole;
    double real;
    const Mesh *mesh;
} RecordValue;

typedef struct RecordField {
    const char *key;  // of JSON and CSV; NULL = in neither
    const char *csv;  // in CSV, where it is called otherwise there
    RecordKind kind;
    size_t through;       // 1 + where the record points to what holds the value; 0 = the record itself does
    size_t offset;        // of the value there
    const char *heading;  // of a table's column; NULL = in no table
    int column;           // its place there, from 1; those of one place stand in the order of the fields
    RecordPlace place;
    RecordUnit unit;
    int digits;           // decimals of a real number without a unit; 0 = as many as it takes
    const char *missing;  // what tables write for what is unknown; NULL = "-"
    RecordValue (*make)(const void *record, const void *about, char text[RECORD_BYTES]);
    json_t *(*nested)(const void *record, const void *about);  // what JSON has for the key, and nothing else has
    bool (*known)(const void *record);                         // NULL = as its kind says
    bool no_json, no_csv;
    bool optional;  // JSON leaves out what is unknown, tables a column in which everything is
    bool right;     // a text that stands where numbers do
    int drop;       // the column goes first, second, ... from a terminal that is too narrow; 0 = it stays
} RecordField;

typedef struct RecordSchema {
    const RecordField *fields;
    int count;
    size_t bytes;       // of a record
    const void *about;  // the answer whose rows they are, for its functions
} RecordSchema;

RecordSchema record_about(const RecordSchema *schema, const void *about);

// Values of functions.
RecordValue record_of_text(const char *text);
RecordValue record_of_whole(int64_t whole);
RecordValue record_of_real(bool known, double real);
RecordValue record_of_mesh(const Mesh *mesh);                          // NULL is unknown
RecordValue record_of_product(int a, int b, char text[RECORD_BYTES]);  // "2 x 16"

// The columns of a table of these records in their order; how many. place: IN_TEXT or IN_PAGE.
enum { RECORD_MOST_COLUMNS = 24 };
typedef struct Records {
    const RecordSchema *schema;
    const void *rows;
    int count;
} Records;
int record_columns(const Records *records, RecordPlace place, const RecordField *columns[RECORD_MOST_COLUMNS]);
bool record_is_number(const RecordField *field);
// Of the cell of a table.
const char *record_words(const Records *records, int row, const RecordField *field, char text[RECORD_BYTES]);

json_t *record_object(const RecordSchema *schema, const void *record);
json_t *record_array(const RecordSchema *schema, const void *records, int count);
Status record_table(const RecordSchema *schema, const void *records, int count, FILE *out, Error *error);
Status record_csv(const RecordSchema *schema, const void *records, int count, FILE *out, Error *error);
// The parts of it, where an answer has several arrays of rows.
void record_csv_header(const RecordSchema *schema, Csv *csv);
void record_csv_lines(const RecordSchema *schema, const void *records, int count, Csv *csv);

// ---- for those who write schemas. A column of a table that joins two values has a function and no key.

#define FIELD(name, what, type, member) .key = name, .kind = RECORD_##what, .offset = offsetof(type, member)
#define FIELD_OF(name, what, type, pointer, pointed, member)                                                           \
    .key = name, .kind = RECORD_##what, .through = offsetof(type, pointer) + 1, .offset = offsetof(pointed, member)
#define BY(function) .kind = RECORD_MADE, .make = function
#define COLUMN(at, name) .column = at, .heading = name
#define SCHEMA(name, type) const RecordSchema schema_##name = {name, sizeof name / sizeof name[0], sizeof(type), NULL}
// A value of a row `of` that is not a member of it; the other also of its answer `in`.
#define MADE(name, type, value)                                                                                        \
    static RecordValue name(const void *record, const void *about, char text[RECORD_BYTES]) {                          \
        const type *of = record;                                                                                       \
        (void)of, (void)text, (void)about;                                                                             \
        return value;                                                                                                  \
    }
#define MADE_IN(name, type, answer, value)                                                                             \
    static RecordValue name(const void *record, const void *about, char text[RECORD_BYTES]) {                          \
        const type *of = record;                                                                                       \
        const answer *in = about;                                                                                      \
        (void)of, (void)text, (void)in;                                                                                \
        return value;                                                                                                  \
    }
#define NESTED_IN(name, type, answer, value)                                                                           \
    static json_t *name(const void *record, const void *about) {                                                       \
        const type *of = record;                                                                                       \
        const answer *in = about;                                                                                      \
        (void)of, (void)in;                                                                                            \
        return value;                                                                                                  \
    }
#define KNOWN(name, type, condition)                                                                                   \
    static bool name(const void *record) {                                                                             \
        const type *of = record;                                                                                       \
        return condition;                                                                                              \
    }
