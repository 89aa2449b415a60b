// The renderers of records.

#include "reports/record.h"

#include <math.h>
#include <stdlib.h>

#include "reports/format.h"
#include "reports/grid.h"
#include "reports/json_objects.h"
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

RecordValue record_of_mesh(const Mesh *mesh) {
    return (RecordValue){.kind = RECORD_MESH, .known = mesh, .mesh = mesh};
}

RecordValue record_of_product(int a, int b, char text[RECORD_BYTES]) {
    snprintf(text, RECORD_BYTES, "%d x %d", a, b);
    return record_of_text(text);
}

RecordSchema record_about(const RecordSchema *schema, const void *about) {
    RecordSchema of = *schema;
    of.about = about;
    return of;
}

static RecordValue value_at(const RecordSchema *schema, const RecordField *field, const void *record,
                            char text[RECORD_BYTES]) {
    const char *holds = record;
    if (field->through) {
        holds = *(const char *const *)(const void *)(holds + field->through - 1);
    }
    const void *at = holds + field->offset;
    switch (field->kind) {
    case RECORD_TEXT:
        return record_of_text(*(const char *const *)at);
    case RECORD_NAME:
        return record_of_text(at);
    case RECORD_INT:
        return record_of_whole(*(const int *)at);
    case RECORD_PLACE:
        return (RecordValue){.kind = RECORD_LONG, .known = *(const int *)at > 0, .whole = *(const int *)at};
    case RECORD_LONG:
        return record_of_whole(*(const int64_t *)at);
    case RECORD_REAL:
        return record_of_real(isfinite(*(const double *)at), *(const double *)at);
    case RECORD_ABOVE:
        return record_of_real(*(const double *)at > 0, *(const double *)at);
    case RECORD_FLAG:
        return (RecordValue){.kind = RECORD_FLAG, .known = true, .whole = *(const bool *)at};
    case RECORD_MESH:
        return field->make ? field->make(record, schema->about, text) : record_of_mesh(at);
    case RECORD_MADE:
        return field->make(record, schema->about, text);
    }
    return record_of_text(NULL);
}

static RecordValue value_of(const RecordSchema *schema, const RecordField *field, const void *record,
                            char text[RECORD_BYTES]) {
    RecordValue value = value_at(schema, field, record, text);
    value.known = value.known && (!field->known || field->known(record));
    return value;
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
    case RECORD_MESH:
        return json_mesh(value->mesh);
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
            const RecordValue value = field->nested ? record_of_text(NULL) : value_of(schema, field, record, text);
            if (field->optional && !value.known) {
                continue;
            }
            json_t *told = field->nested ? field->nested(record, schema->about) : json_value(&value);
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
    if (value->kind == RECORD_MESH) {
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            csv_number(csv, value->known, value->known ? value->mesh->size[axis] : 0);
        }
    } else if (value->kind == RECORD_TEXT || !value->known) {
        csv_text(csv, value->known ? value->text : NULL);
    } else if (value->kind == RECORD_REAL) {
        csv_number(csv, true, value->real);
    } else {
        csv_integer(csv, value->whole);
    }
}

static bool in_csv(const RecordField *field) {
    return field->key && !field->no_csv && !field->nested;
}

void record_csv_header(const RecordSchema *schema, Csv *csv) {
    for (int i = 0; i < schema->count; i++) {
        const RecordField *field = &schema->fields[i];
        const bool mesh = field->kind == RECORD_MESH;
        for (int axis = 0; in_csv(field) && axis < (mesh ? AXIS_COUNT : 1); axis++) {
            csv_text(csv, mesh ? axis_names[axis] : field->csv ? field->csv : field->key);
        }
    }
    csv_end_line(csv);
}

void record_csv_lines(const RecordSchema *schema, const void *records, int count, Csv *csv) {
    char text[RECORD_BYTES];
    for (int row = 0; row < count; row++) {
        for (int i = 0; i < schema->count; i++) {
            if (in_csv(&schema->fields[i])) {
                const RecordValue value = value_of(schema, &schema->fields[i], record_at(schema, records, row), text);
                csv_value(csv, &value);
            }
        }
        csv_end_line(csv);
    }
}

Status record_csv(const RecordSchema *schema, const void *records, int count, FILE *out, Error *error) {
    Csv csv = {.out = out};
    record_csv_header(schema, &csv);
    record_csv_lines(schema, records, count, &csv);
    return csv_finish(&csv, error);
}

// ---- tables

static int compare_columns(const void *left, const void *right) {
    const RecordField *one = *(const RecordField *const *)left, *other = *(const RecordField *const *)right;
    return one->column != other->column ? one->column - other->column : (one > other) - (one < other);
}

static bool any_known(const Records *records, const RecordField *field) {
    char text[RECORD_BYTES];
    bool any = !field->optional;
    for (int row = 0; row < records->count && !any; row++) {
        any = value_of(records->schema, field, record_at(records->schema, records->rows, row), text).known;
    }
    return any;
}

int record_columns(const Records *records, RecordPlace place, const RecordField *columns[RECORD_MOST_COLUMNS]) {
    int count = 0;
    for (int i = 0; i < records->schema->count && count < RECORD_MOST_COLUMNS; i++) {
        const RecordField *field = &records->schema->fields[i];
        if (field->heading && (field->place == IN_TABLES || field->place == place) && any_known(records, field)) {
            columns[count++] = field;
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

const char *record_words(const Records *records, int row, const RecordField *field, char text[RECORD_BYTES]) {
    const RecordSchema *schema = records->schema;
    const RecordValue value = value_of(schema, field, record_at(schema, records->rows, row), text);
    if (!value.known) {
        return field->missing ? field->missing : "-";
    }
    if (value.kind == RECORD_TEXT) {
        return value.text;
    }
    if (value.kind == RECORD_MESH) {
        return format_layout(value.mesh, text);
    }
    const double number = value.kind == RECORD_REAL ? value.real : (double)value.whole;
    switch (field->unit) {
    case AS_COUNT:
        snprintf(text, RECORD_BYTES, "%s", text_count(UNIT_BUFFER, number));
        break;
    case AS_BYTES:
        snprintf(text, RECORD_BYTES, "%s", text_bytes(UNIT_BUFFER, number));
        break;
    case AS_SECONDS:
        snprintf(text, RECORD_BYTES, "%s", text_seconds(UNIT_BUFFER, number));
        break;
    case AS_RATIO:
        snprintf(text, RECORD_BYTES, "%.2f", number);
        break;
    case AS_PERCENT:
        snprintf(text, RECORD_BYTES, "%.1f %%", 100 * number);
        break;
    case AS_CHANGE:
        snprintf(text, RECORD_BYTES, "%+.1f %%", 100 * number);
        break;
    case AS_PLAIN:
        value.kind != RECORD_REAL ? snprintf(text, RECORD_BYTES, "%lld", (long long)value.whole)
        : field->digits > 0       ? snprintf(text, RECORD_BYTES, "%.*f", field->digits, number)
                                  : snprintf(text, RECORD_BYTES, "%g", number);
    }
    return text;
}

Status record_table(const RecordSchema *schema, const void *records, int count, FILE *out, Error *error) {
    const RecordField *fields[RECORD_MOST_COLUMNS];
    GridColumn columns[RECORD_MOST_COLUMNS];
    const Records all = {schema, records, count};
    const int width = record_columns(&all, IN_TEXT, fields);
    for (int i = 0; i < width; i++) {
        columns[i] = (GridColumn){fields[i]->heading, record_is_number(fields[i])};
    }
    Grid *grid = grid_new(columns, width);
    for (int drop = 1; drop <= width; drop++) {
        for (int i = 0; i < width; i++) {
            if (fields[i]->drop == drop) {
                grid_may_drop(grid, i);
            }
        }
    }
    for (int row = 0; row < count; row++) {
        grid_row(grid);
        for (int i = 0; i < width; i++) {
            char text[RECORD_BYTES];
            grid_cell(grid, "%s", record_words(&all, row, fields[i], text));
        }
    }
    return grid_print(grid, out, error);
}
