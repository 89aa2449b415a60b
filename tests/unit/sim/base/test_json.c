// Strict JSON: what is refused, and that the message names file, path and value.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/json.h"

static Error error;
static Arena arena;
static json_t *root;
static JsonReader reader;

static void forget(void) {
    json_decref(root);
    root = NULL;
    arena_free(&arena);
}

TestSuite(json, .fini = forget);

static Status load(const char *text) {
    json_decref(root);
    return json_text_load(text, "x.json", &root, &error);
}

static void open_reader(const char *text) {
    cr_assert_eq(load(text), STATUS_OK, "%s", error.message);
    reader = (JsonReader){.origin = "x.json", .path = "node", .object = root};
}

static void check_message(Status status, const char *message) {
    cr_assert_eq(status, STATUS_USAGE);
    cr_assert_str_eq(error.message, message);
}

Test(json, a_syntax_error_names_line_and_column) {
    cr_assert_eq(load("{\n  \"a\": 1,\n  \"b\" 2\n}"), STATUS_USAGE);
    cr_assert_eq(strncmp(error.message, "x.json:3:7: ", 12), 0, "%s", error.message);
    cr_assert_null(root);
}

Test(json, duplicate_keys_are_refused) {
    cr_assert_eq(load("{\"a\": 1, \"a\": 2}"), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "duplicate"), "%s", error.message);
}

Test(json, nothing_may_follow_the_document) {
    cr_assert_eq(load("{} {}"), STATUS_USAGE);
}

Test(json, text_that_is_not_utf8_is_refused) {
    cr_assert_eq(load("{\"a\": \"\xff\xfe\"}"), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "unable to decode byte 0xff"), "%s", error.message);
}

Test(json, numbers_beyond_double_are_refused) {
    cr_assert_eq(load("[1e999]"), STATUS_USAGE);
    cr_assert_eq(load("[99999999999999999999]"), STATUS_USAGE);
}

static char *nested(int depth) {
    char *text = malloc((size_t)depth * 2 + 1);
    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    text[2 * depth] = '\0';
    return text;
}

Test(json, the_depth_limit_is_inclusive) {
    char *deepest = nested(JSON_MAX_DEPTH);
    char *deeper = nested(JSON_MAX_DEPTH + 1);
    cr_assert_eq(load(deepest), STATUS_OK, "%s", error.message);
    check_message(load(deeper), "x.json: nested deeper than 64 levels");
    free(deepest);
    free(deeper);
}

Test(json, depth_counts_objects_and_arrays_alike) {
    char text[8 * (JSON_MAX_DEPTH + 2)] = "";
    for (int i = 0; i < JSON_MAX_DEPTH + 1; i++) {
        strcat(text, i % 2 ? "[" : "{\"a\":");
    }
    strcat(text, "1");
    for (int i = JSON_MAX_DEPTH; i >= 0; i--) {
        strcat(text, i % 2 ? "]" : "}");
    }
    cr_assert_eq(load(text), STATUS_USAGE);
}

Test(json, a_missing_file_is_the_environments_fault) {
    cr_assert_eq(json_file_load("/nonexistent/x.json", &root, &error), STATUS_ENVIRONMENT);
    cr_assert_str_eq(error.message, "/nonexistent/x.json: cannot open: No such file or directory");
}

Test(json, a_folder_is_not_a_file) {
    cr_assert_eq(json_file_load("/tmp", &root, &error), STATUS_ENVIRONMENT);
}

static void scratch(char path[64], const char *name) {
    snprintf(path, 64, "/tmp/ndtune-json-%d-%s", (int)getpid(), name);
}

Test(json, an_oversized_file_is_refused_unread) {
    char path[64];
    scratch(path, "large");
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(ftruncate(fileno(file), (off_t)JSON_MAX_FILE_BYTES + 1), 0);  // sparse: takes no room
    fclose(file);
    const Status status = json_file_load(path, &root, &error);
    remove(path);
    cr_assert_eq(status, STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "larger than 64 MiB"), "%s", error.message);
}

Test(json, what_is_saved_loads_again_and_leaves_no_temporary_file) {
    char path[64];
    char temporary[80];
    scratch(path, "saved");
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    json_t *written = json_pack("{s:f, s:[i,i], s:s}", "third", 1.0 / 3.0, "list", 1, 2, "text", "\u00e9");
    cr_assert_eq(json_file_save(path, written, &error), STATUS_OK, "%s", error.message);
    const Status status = json_file_load(path, &root, &error);
    remove(path);
    cr_assert_eq(status, STATUS_OK, "%s", error.message);
    cr_assert(json_equal(written, root));
    cr_assert_neq(access(temporary, F_OK), 0);
    json_decref(written);
}

Test(json, saving_into_a_missing_folder_says_so) {
    json_t *empty = json_object();
    cr_assert_eq(json_file_save("/nonexistent/x.json", empty, &error), STATUS_ENVIRONMENT);
    cr_assert_not_null(strstr(error.message, "/nonexistent/x.json.tmp: cannot create"), "%s", error.message);
    json_decref(empty);
}

Test(json, integers_are_checked_at_both_ends_of_the_range) {
    open_reader("{\"low\": 1, \"high\": 8, \"below\": 0, \"above\": 9}");
    int64_t value = 0;
    cr_assert_eq(json_get_int(&reader, "low", 1, 8, &value, &error), STATUS_OK);
    cr_assert_eq(json_get_int(&reader, "high", 1, 8, &value, &error), STATUS_OK);
    cr_assert_eq(value, 8);
    check_message(json_get_int(&reader, "below", 1, 8, &value, &error),
                  "x.json: node.below: must be between 1 and 8, got 0");
    check_message(json_get_int(&reader, "above", 1, 8, &value, &error),
                  "x.json: node.above: must be between 1 and 8, got 9");
    cr_assert_eq(value, 8, "a refused value must not be stored");
}

Test(json, a_real_is_not_an_integer) {
    open_reader("{\"gpus\": 4.5}");
    int64_t value = 0;
    check_message(json_get_int(&reader, "gpus", 1, 8, &value, &error),
                  "x.json: node.gpus: must be an integer, got 4.5");
}

Test(json, a_missing_field_says_what_it_must_be) {
    open_reader("{}");
    double value = 0.0;
    const char *text = NULL;
    bool flag = false;
    check_message(json_get_double(&reader, "speed", 0, 1, &value, &error),
                  "x.json: node.speed: missing, must be a number");
    check_message(json_get_text(&reader, "name", &arena, &text, &error), "x.json: node.name: missing, must be text");
    check_message(json_get_bool(&reader, "on", &flag, &error), "x.json: node.on: missing, must be true or false");
}

Test(json, defaults_stand_for_absent_and_null) {
    open_reader("{\"none\": null}");
    int64_t number = 0;
    double real = 0.0;
    bool flag = false;
    const char *text = NULL;
    cr_assert_eq(json_get_int_or(&reader, "none", 1, 8, 5, &number, &error), STATUS_OK);
    cr_assert_eq(json_get_double_or(&reader, "absent", 0, 1, 0.5, &real, &error), STATUS_OK);
    cr_assert_eq(json_get_bool_or(&reader, "none", true, &flag, &error), STATUS_OK);
    cr_assert_eq(json_get_text_or(&reader, "absent", "default", &arena, &text, &error), STATUS_OK);
    cr_assert(number == 5 && real == 0.5 && flag);
    cr_assert_str_eq(text, "default");
}

Test(json, a_default_does_not_excuse_a_wrong_value) {
    open_reader("{\"a\": \"four\", \"b\": 99, \"c\": 1}");
    int64_t number = 0;
    bool flag = false;
    check_message(json_get_int_or(&reader, "a", 1, 8, 5, &number, &error),
                  "x.json: node.a: must be an integer, got \"four\"");
    check_message(json_get_int_or(&reader, "b", 1, 8, 5, &number, &error),
                  "x.json: node.b: must be between 1 and 8, got 99");
    check_message(json_get_bool_or(&reader, "c", true, &flag, &error), "x.json: node.c: must be true or false, got 1");
}

Test(json, a_long_value_is_cut_in_the_message) {
    char text[400] = "{\"a\": \"";
    memset(text + 7, 'v', 300);
    strcpy(text + 307, "\"}");
    open_reader(text);
    int64_t number = 0;
    cr_assert_eq(json_get_int(&reader, "a", 1, 8, &number, &error), STATUS_USAGE);
    cr_assert_lt(strlen(error.message), 120);
    cr_assert_not_null(strstr(error.message, "vvv..."), "%s", error.message);
}

Test(json, a_child_reader_extends_the_path) {
    open_reader("{\"ring\": {\"pipelining\": -1}, \"flat\": 3}");
    JsonReader ring;
    double value = 0.0;
    cr_assert_eq(json_get_object(&reader, "ring", &arena, &ring, &error), STATUS_OK);
    check_message(json_get_double(&ring, "pipelining", 0, 1, &value, &error),
                  "x.json: node.ring.pipelining: must be between 0 and 1, got -1");
    check_message(json_get_object(&reader, "flat", &arena, &ring, &error),
                  "x.json: node.flat: must be an object, got 3");
}

Test(json, the_root_path_has_no_leading_dot) {
    open_reader("{}");
    reader.path = "";
    int64_t value = 0;
    check_message(json_get_int(&reader, "gpus", 1, 8, &value, &error), "x.json: gpus: missing, must be an integer");
}

Test(json, an_unknown_field_is_refused_with_a_suggestion) {
    open_reader("{\"nics\": 8, \"nic_speeed\": 5}");
    const char *const keys[] = {"nics", "nic_speed"};
    check_message(json_reader_finish(&reader, keys, 2, &error), "x.json: node.nic_speeed: unknown field");
    cr_assert_str_eq(error.hint, "did you mean \"nic_speed\"?");
}

Test(json, known_fields_pass) {
    open_reader("{\"nics\": 8}");
    const char *const keys[] = {"nics", "nic_speed"};
    cr_assert_eq(json_reader_finish(&reader, keys, 2, &error), STATUS_OK);
}
