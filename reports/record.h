// One schema for the rows of an answer, and a renderer for each place where they go: a terminal, JSON, CSV, the page
// (table_records of reports/html/markup.h). Keys of JSON and CSV stand in the order of the fields, columns of tables in
// theirs.

#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/base/error.h"

enum { RECORD_BYTES = 1024 };  // of a value as text

typedef enum {
    RECORD_TEXT,   // const char *; NULL is unknown
    RECORD_NAME,   // char[]
    RECORD_INT,    // int
    RECORD_LONG,   // int64_t
    RECORD_REAL,   // double
    RECORD_ABOVE,  // double; unknown unless above 0
    RECORD_FLAG,   // bool
    RECORD_MADE    // by a function
} RecordKind;

// How people read a number.
typedef enum { AS_PLAIN, AS_COUNT, AS_BYTES, AS_SECONDS, AS_RATIO } RecordUnit;

typedef struct RecordValue {
    RecordKind kind;  // RECORD_TEXT, RECORD_LONG, RECORD_REAL or RECORD_FLAG
    bool known;
    const char *text;
    int64_t whole;
    double real;
} RecordValue;

typedef struct RecordField {
    const char *key;  // of JSON and CSV; NULL = in neither
    RecordKind kind;
    size_t offset;        // of the value in a record
    const char *heading;  // of a table's column; NULL = in no table
    int column;           // its place there, from 1
    RecordUnit unit;
    const char *missing;  // what tables write for what is unknown; NULL = "-"
    RecordValue (*make)(const void *record, char text[RECORD_BYTES]);
    json_t *(*nested)(const void *record);  // what JSON has for the key, and nothing else has
    bool no_json, no_csv;
    bool right;  // a text that stands where numbers do
} RecordField;

typedef struct RecordSchema {
    const RecordField *fields;
    int count;
    size_t bytes;  // of a record
} RecordSchema;

// Values of functions.
RecordValue record_of_text(const char *text);
RecordValue record_of_whole(int64_t whole);
RecordValue record_of_real(bool known, double real);

// The columns of its tables in their order; how many.
enum { RECORD_MOST_COLUMNS = 16 };
int record_columns(const RecordSchema *schema, const RecordField *columns[RECORD_MOST_COLUMNS]);
bool record_is_number(const RecordField *field);
const char *record_words(const RecordField *field, const void *record, char text[RECORD_BYTES]);  // of a table's cell

json_t *record_object(const RecordSchema *schema, const void *record);
json_t *record_array(const RecordSchema *schema, const void *records, int count);
Status record_table(const RecordSchema *schema, const void *records, int count, FILE *out, Error *error);
Status record_csv(const RecordSchema *schema, const void *records, int count, FILE *out, Error *error);
