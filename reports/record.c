// The renderers of records.

#include "reports/record.h"

#include <stdlib.h>

#include "reports/csv_lines.h"
#include "reports/grid.h"
#include "sim/base/text.h"

RecordValue record_of_text(const char *text) {
    return (RecordValue){.kind = RECORD_TEXT, .known = text, .text = text};
}

RecordValue record_of_whole(int64_t whole) {
    return (RecordValue){.kind = RECORD_LONG, .known = true, .whole = whole};
}

RecordValue record_of_real(bool known, double real) {
    return (RecordValue){.kind = RECORD_REAL, .known = known, .real = real};
}

static RecordValue value_of(const RecordField *field, const void *record, char text[RECORD_BYTES]) {
    const void *at = (const char *)record + field->offset;
    switch (field->kind) {
    case RECORD_TEXT:
        return record_of_text(*(const char *const *)at);
    case RECORD_NAME:
        return record_of_text(at);
    case RECORD_INT:
        return record_of_whole(*(const int *)at);
    case RECORD_LONG:
        return record_of_whole(*(const int64_t *)at);
    case RECORD_REAL:
        return record_of_real(true, *(const double *)at);
    case RECORD_ABOVE:
        return record_of_real(*(const double *)at > 0, *(const double *)at);
    case RECORD_FLAG:
        return (RecordValue){.kind = RECORD_FLAG, .known = true, .whole = *(const bool *)at};
    case RECORD_MADE:
        return field->make(record, text);
    }
    return record_of_text(NULL);
}

static const void *record_at(const RecordSchema *schema, const void *records, int index) {
    return (const char *)records + (size_t)index * schema->bytes;
}

// ---- JSON

static json_t *json_value(const RecordValue *value) {
    switch (value->known ? value->kind : RECORD_MADE) {
    case RECORD_TEXT:
        return json_string(value->text);
    case RECORD_LONG:
        return json_integer((json_int_t)value->whole);
    case RECORD_REAL:
        return json_real(value->real);
    case RECORD_FLAG:
        return json_boolean(value->whole);
    default:
        return json_null();
    }
}

json_t *record_object(const RecordSchema *schema, const void *record) {
    json_t *object = json_object();
    char text[RECORD_BYTES];
    for (int i = 0; i < schema->count; i++) {
        const RecordField *field = &schema->fields[i];
        if (field->key && !field->no_json) {
            const RecordValue value = field->nested ? record_of_text(NULL) : value_of(field, record, text);
            json_t *told = field->nested ? field->nested(record) : json_value(&value);
            if (json_object_set_new(object, field->key, told) != 0) {  // no memory, or not UTF-8
                json_decref(object);
                return NULL;
            }
        }
    }
    return object;
}

json_t *record_array(const RecordSchema *schema, const void *records, int count) {
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        if (json_array_append_new(array, record_object(schema, record_at(schema, records, i))) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

// ---- CSV

static void csv_value(Csv *csv, const RecordValue *value) {
    if (value->kind == RECORD_TEXT) {
        csv_text(csv, value->text);
    } else if (value->kind == RECORD_REAL) {
        csv_number(csv, value->known, value->real);
    } else {
        csv_integer(csv, value->whole);
    }
}

Status record_csv(const RecordSchema *schema, const void *records, int count, FILE *out, Error *error) {
    Csv csv = {.out = out};
    for (int row = -1; row < count; row++) {
        for (int i = 0; i < schema->count; i++) {
            const RecordField *field = &schema->fields[i];
            char text[RECORD_BYTES];
            if (field->key && !field->no_csv && !field->nested) {
                const RecordValue value =
                    row < 0 ? record_of_text(field->key) : value_of(field, record_at(schema, records, row), text);
                csv_value(&csv, &value);
            }
        }
        csv_end_line(&csv);
    }
    return csv_finish(&csv, error);
}

// ---- tables

static int compare_columns(const void *left, const void *right) {
    return (*(const RecordField *const *)left)->column - (*(const RecordField *const *)right)->column;
}

int record_columns(const RecordSchema *schema, const RecordField *columns[RECORD_MOST_COLUMNS]) {
    int count = 0;
    for (int i = 0; i < schema->count && count < RECORD_MOST_COLUMNS; i++) {
        if (schema->fields[i].heading) {
            columns[count++] = &schema->fields[i];
        }
    }
    qsort(columns, (size_t)count, sizeof *columns, compare_columns);
    return count;
}

// What a function makes is one where it has a unit.
bool record_is_number(const RecordField *field) {
    const bool plain = field->kind >= RECORD_INT && field->kind <= RECORD_ABOVE;
    return plain || field->right || field->unit != AS_PLAIN;
}

const char *record_words(const RecordField *field, const void *record, char text[RECORD_BYTES]) {
    const RecordValue value = value_of(field, record, text);
    if (!value.known) {
        return field->missing ? field->missing : "-";
    }
    if (value.kind == RECORD_TEXT) {
        return value.text;
    }
    const double number = value.kind == RECORD_REAL ? value.real : (double)value.whole;
    char unit[TEXT_UNIT_BYTES];
    switch (field->unit) {
    case AS_COUNT:
        snprintf(text, RECORD_BYTES, "%s", text_count(unit, number));
        break;
    case AS_BYTES:
        snprintf(text, RECORD_BYTES, "%s", text_bytes(unit, number));
        break;
    case AS_SECONDS:
        snprintf(text, RECORD_BYTES, "%s", text_seconds(unit, number));
        break;
    case AS_RATIO:
        snprintf(text, RECORD_BYTES, "%.2f", number);
        break;
    case AS_PLAIN:
        value.kind == RECORD_REAL ? snprintf(text, RECORD_BYTES, "%g", number)
                                  : snprintf(text, RECORD_BYTES, "%lld", (long long)value.whole);
    }
    return text;
}

Status record_table(const RecordSchema *schema, const void *records, int count, FILE *out, Error *error) {
    const RecordField *fields[RECORD_MOST_COLUMNS];
    GridColumn columns[RECORD_MOST_COLUMNS];
    const int width = record_columns(schema, fields);
    for (int i = 0; i < width; i++) {
        columns[i] = (GridColumn){fields[i]->heading, record_is_number(fields[i])};
    }
    Grid *grid = grid_new(columns, width);
    for (int row = 0; row < count; row++) {
        grid_row(grid);
        for (int i = 0; i < width; i++) {
            char text[RECORD_BYTES];
            grid_cell(grid, "%s", record_words(fields[i], record_at(schema, records, row), text));
        }
    }
    return grid_print(grid, out, error);
}
