// One schema, one renderer per destination.

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

static RecordValue twice(const void *record, const void *about, char text[RECORD_BYTES]) {
    const Row *row = record;
    snprintf(text, RECORD_BYTES, "%d %s", row->whole, about ? (const char *)about : "twice");
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
static const RecordSchema schema = {fields, sizeof fields / sizeof fields[0], sizeof(Row), NULL};
static const Row rows[] = {{"a,b", "one", 3, 0.25, true}, {NULL, "two", 0, 0, false}};

typedef Status Printer(const RecordSchema *schema, const void *records, int count, FILE *out, Error *error);

static char *printed(Printer *print, const RecordSchema *schema_of, const void *records, int count) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    Error error = {0};
    cr_assert_eq(print(schema_of, records, count, out, &error), STATUS_OK, "%s", error.message);
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
    char *text = printed(record_csv, &schema, rows, 2);
    cr_expect_str_eq(text, "text,whole,seconds,flag\r\n\"a,b\",3,0.25,1\r\n,0,,0\r\n");
    free(text);
}

Test(record, a_table_has_its_own_order_units_and_words_for_what_is_unknown) {
    char *text = printed(record_table, &schema, rows, 2);
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

Test(record, functions_see_the_answer_that_the_rows_are_of) {
    const RecordSchema of = record_about(&schema, "times");
    char *text = printed(record_table, &of, rows, 1);
    cr_expect(strstr(text, "3 times"), "%s", text);
    free(text);
}

// ---- what a row points to, meshes, what may be left out

typedef struct Plan {
    Mesh mesh;
    double seconds;
} Plan;

typedef struct Entry {
    const Plan *plan;
    const char *note;
    int place;
} Entry;

KNOWN(is_first, Entry, of->place == 1)

static const RecordField entries[] = {
    {FIELD("place", PLACE, Entry, place), COLUMN(1, "place")},
    {FIELD_OF("mesh", MESH, Entry, plan, Plan, mesh), COLUMN(2, "mesh")},
    {FIELD_OF("step_s", REAL, Entry, plan, Plan, seconds), .csv = "seconds", .known = is_first},
    {FIELD("note", TEXT, Entry, note), COLUMN(3, "note"), .optional = true},
    {FIELD_OF(NULL, REAL, Entry, plan, Plan, seconds), COLUMN(4, "share"), .unit = AS_PERCENT, .place = IN_TEXT},
};
static SCHEMA(entries, Entry);

static Plan plan_of(int shard) {
    Plan plan = {.mesh = mesh_of_one(), .seconds = 0.5};
    plan.mesh.size[AXIS_DP_SHARD] = shard;
    return plan;
}

Test(record, a_mesh_is_an_object_of_json_and_what_is_optional_is_left_out) {
    const Plan plan = plan_of(8);
    json_t *row = record_object(&schema_entries, &(Entry){&plan, NULL, 2});
    cr_expect_eq(json_integer_value(json_object_get(json_object_get(row, "mesh"), "dp_shard")), 8);
    cr_expect(json_is_null(json_object_get(row, "step_s")), "not known of the second");
    cr_expect_null(json_object_get(row, "note"));
    json_decref(row);
}

Test(record, a_mesh_is_a_column_of_csv_for_each_axis_and_a_key_may_have_another_name_there) {
    const Plan plan = plan_of(8);
    char *text = printed(record_csv, &schema_entries, (Entry[]){{&plan, "so", 1}, {&plan, NULL, 0}}, 2);
    cr_expect(strstr(text, ",dp_replicate,dp_shard,") < strstr(text, ",seconds,note\r\n1,"), "%s", text);
    cr_expect(strstr(text, ",8,") && strstr(text, ",0.5,so\r\n,"), "%s", text);
    free(text);
}

Test(record, a_table_has_no_column_for_what_may_be_left_out_and_nobody_knows) {
    const Plan plan = plan_of(8);
    char *without = printed(record_table, &schema_entries, &(Entry){&plan, NULL, 1}, 1);
    cr_expect_str_eq(without, "place  mesh         share\n    1  dp_shard=8  50.0 %\n", "%s", without);
    char *with = printed(record_table, &schema_entries, &(Entry){&plan, "so", 1}, 1);
    cr_expect(strstr(with, "note"), "%s", with);
    free(without);
    free(with);
}
