// One schema, a renderer for each place.

#include "reports/record.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef struct Row {
    const char *text;
    char name[8];
    int whole;
    double seconds;
    bool flag;
} Row;

static RecordValue twice(const void *record, char text[RECORD_BYTES]) {
    const Row *row = record;
    snprintf(text, RECORD_BYTES, "%d twice", row->whole);
    return record_of_text(row->whole > 0 ? text : NULL);
}

static const RecordField fields[] = {
    {.key = "text", .kind = RECORD_TEXT, .offset = offsetof(Row, text)},
    {.key = "name", .kind = RECORD_NAME, .offset = offsetof(Row, name), .heading = "who", .column = 2, .no_csv = true},
    {.key = "whole", .kind = RECORD_INT, .offset = offsetof(Row, whole), .heading = "how many", .column = 1},
    {.key = "seconds",
     .kind = RECORD_ABOVE,
     .offset = offsetof(Row, seconds),
     .heading = "time",
     .column = 3,
     .unit = AS_SECONDS},
    {.key = "flag", .kind = RECORD_FLAG, .offset = offsetof(Row, flag), .no_json = true},
    {.kind = RECORD_MADE, .make = twice, .heading = "made", .column = 4, .missing = "nothing"}};
static const RecordSchema schema = {fields, sizeof fields / sizeof fields[0], sizeof(Row)};
static const Row rows[] = {{"a,b", "one", 3, 0.25, true}, {NULL, "two", 0, 0, false}};

static char *printed(Status (*print)(const RecordSchema *, const void *, int, FILE *, Error *)) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    Error error = {0};
    cr_assert_eq(print(&schema, rows, 2, out, &error), STATUS_OK, "%s", error.message);
    fclose(out);
    return text;
}

Test(record, json_has_the_keys_in_the_order_of_the_fields_and_null_for_what_is_unknown) {
    json_t *array = record_array(&schema, rows, 2);
    char *text = json_dumps(array, JSON_COMPACT);
    cr_expect_str_eq(text, "[{\"text\":\"a,b\",\"name\":\"one\",\"whole\":3,\"seconds\":0.25},"
                           "{\"text\":null,\"name\":\"two\",\"whole\":0,\"seconds\":null}]");
    free(text);
    json_decref(array);
}

Test(record, csv_leaves_what_is_unknown_empty) {
    char *text = printed(record_csv);
    cr_expect_str_eq(text, "text,whole,seconds,flag\r\n\"a,b\",3,0.25,1\r\n,0,,0\r\n");
    free(text);
}

Test(record, a_table_has_its_own_order_units_and_words_for_what_is_unknown) {
    char *text = printed(record_table);
    cr_expect_str_eq(text,
                     "how many  who    time  made\n"
                     "       3  one  250 ms  3 twice\n"
                     "       0  two       -  nothing\n",
                     "%s", text);
    free(text);
}

Test(record, text_that_is_not_utf8_is_no_json) {
    const Row bad = {"\xff", "bad", 1, 1, false};
    cr_expect_null(record_array(&schema, &bad, 1));
}
