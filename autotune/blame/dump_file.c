// Parses a dump's file, pickle or JSON, into values.

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "autotune/blame/dump_value.h"
#include "sim/base/json.h"
#include "sim/base/open.h"

static DumpValue *value_of(const json_t *json, Arena *arena) {
    DumpValue *value = ARENA_NEW(arena, DumpValue);
    size_t index;
    const char *key;
    json_t *item;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        value->type = DUMP_DICT;
        json_object_foreach((json_t *)json, key, item) {
            DumpValue *name = ARENA_NEW(arena, DumpValue);
            *name = (DumpValue){.type = DUMP_TEXT, .text = arena_text(arena, key), .count = strlen(key)};
            dump_value_append(value, name, arena);
            dump_value_append(value, value_of(item, arena), arena);
        }
        break;
    case JSON_ARRAY:
        value->type = DUMP_LIST;
        json_array_foreach(json, index, item) {
            dump_value_append(value, value_of(item, arena), arena);
        }
        break;
    case JSON_STRING:
        value->type = DUMP_TEXT;
        value->text = arena_text(arena, json_string_value(json));
        value->count = strlen(value->text);
        break;
    case JSON_INTEGER:
        value->type = DUMP_INT;
        value->integer = json_integer_value(json);
        break;
    case JSON_REAL:
        value->type = DUMP_FLOAT;
        value->number = json_real_value(json);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        value->type = DUMP_BOOL;
        value->truth = json_is_true(json);
        break;
    case JSON_NULL:
        break;
    }
    return value;
}

static Status read_json(const char *text, size_t size, Arena *arena, const DumpValue **root, Error *error) {
    json_t *json = NULL;
    FAIL_IF(strlen(text) != size, error, STATUS_USAGE, "JSON with a zero byte in it");
    TRY(json_text_load(text, "JSON", &json, error));
    *root = value_of(json, arena);
    json_decref(json);
    return STATUS_OK;
}

Status dump_read_file(const char *path, Arena *arena, const DumpValue **root, Error *error) {
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    size_t size = 0;
    FAIL_IF(!file, error, STATUS_ENVIRONMENT, "cannot be read: %s", strerror(errno));
    const char *why = read_and_close(file, DUMP_MAX_FILE_BYTES, arena, &bytes, &size);
    FAIL_IF(size > DUMP_MAX_FILE_BYTES, error, STATUS_USAGE, "larger than the %d MiB that a dump may have",
            DUMP_MAX_FILE_BYTES >> 20);
    FAIL_IF(why, error, STATUS_ENVIRONMENT, "cannot be read: %s", why);
    FAIL_IF(size == 0, error, STATUS_USAGE, "an empty file");
    const char first = bytes[strspn(bytes, " \t\r\n")];
    return first == '{' ? read_json(bytes, size, arena, root, error)
                        : dump_read_pickle((const uint8_t *)bytes, size, arena, root, error);
}
