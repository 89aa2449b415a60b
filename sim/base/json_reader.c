// Strict getters over one JSON object. Each error reads "file: path.key: what was expected, got what was found".

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/escape.h"
#include "sim/base/json.h"
#include "sim/base/text.h"

enum { SHOWN_VALUE_BYTES = 64 };

// The value as JSON text, cut to what an error line can hold.
static const char *value_shown(const json_t *value, char out[SHOWN_VALUE_BYTES]) {
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;
    if (!text) {
        snprintf(out, SHOWN_VALUE_BYTES, "nothing");
        return out;
    }
    const size_t length = strlen(text);
    snprintf(out, SHOWN_VALUE_BYTES, "%.*s%s", SHOWN_VALUE_BYTES - 4, text,
             length > SHOWN_VALUE_BYTES - 4 ? "..." : "");
    free(text);
    return out;
}

Status json_error(const JsonReader *reader, const char *key, Error *error, const char *format, ...) {
    char sentence[ERROR_MESSAGE_BYTES];
    WITH_VALUES(format, vsnprintf(sentence, sizeof sentence, format, values));
    const char *dot = reader->path[0] == '\0' || key[0] == '\0' ? "" : ".";
    return error_set(error, STATUS_USAGE, "%s: %s%s%s: %s", reader->origin, reader->path, dot, key, sentence);
}

static Status type_error(const JsonReader *reader, const char *key, const char *expected, Error *error) {
    char shown[SHOWN_VALUE_BYTES];
    const json_t *value = json_object_get(reader->object, key);
    JSON_FAIL_IF(!value, reader, key, error, "missing, must be %s", expected);
    return json_error(reader, key, error, "must be %s, got %s", expected, value_shown(value, shown));
}

// Absent or null: the caller's default applies.
static bool key_unset(const JsonReader *reader, const char *key) {
    const json_t *value = json_object_get(reader->object, key);
    return !value || json_is_null(value);
}

Status json_get_int(const JsonReader *reader, const char *key, int64_t low, int64_t high, int64_t *value,
                    Error *error) {
    const json_t *found = json_object_get(reader->object, key);
    FAIL_WITH(!json_is_integer(found), type_error(reader, key, "an integer", error));
    const int64_t number = json_integer_value(found);
    JSON_FAIL_IF(number < low || number > high, reader, key, error,
                 "must be between %" PRId64 " and %" PRId64 ", got %" PRId64, low, high, number);
    *value = number;
    return STATUS_OK;
}

Status json_get_int_or(const JsonReader *reader, const char *key, int64_t low, int64_t high, int64_t fallback,
                       int64_t *value, Error *error) {
    *value = fallback;
    return key_unset(reader, key) ? STATUS_OK : json_get_int(reader, key, low, high, value, error);
}

Status json_get_double(const JsonReader *reader, const char *key, double low, double high, double *value,
                       Error *error) {
    const json_t *found = json_object_get(reader->object, key);
    FAIL_WITH(!json_is_number(found), type_error(reader, key, "a number", error));
    const double number = json_number_value(found);
    JSON_FAIL_IF(!(number >= low && number <= high), reader, key, error, "must be between %.10g and %.10g, got %.10g",
                 low, high, number);
    JSON_FAIL_IF(number != 0 && fabs(number) < TEXT_LEAST_NUMBER, reader, key, error,
                 "must be 0 or at least %g in size, got %.10g", TEXT_LEAST_NUMBER, number);
    *value = number;
    return STATUS_OK;
}

Status json_get_double_or(const JsonReader *reader, const char *key, double low, double high, double fallback,
                          double *value, Error *error) {
    *value = fallback;
    return key_unset(reader, key) ? STATUS_OK : json_get_double(reader, key, low, high, value, error);
}

Status json_get_bool(const JsonReader *reader, const char *key, bool *value, Error *error) {
    const json_t *found = json_object_get(reader->object, key);
    FAIL_WITH(!json_is_boolean(found), type_error(reader, key, "true or false", error));
    *value = json_is_true(found);
    return STATUS_OK;
}

Status json_get_bool_or(const JsonReader *reader, const char *key, bool fallback, bool *value, Error *error) {
    *value = fallback;
    return key_unset(reader, key) ? STATUS_OK : json_get_bool(reader, key, value, error);
}

Status json_get_text(const JsonReader *reader, const char *key, Arena *arena, const char **value, Error *error) {
    const json_t *found = json_object_get(reader->object, key);
    FAIL_WITH(!json_is_string(found), type_error(reader, key, "text", error));
    if (!text_is_line(json_string_value(found))) {
        return type_error(reader, key, "text without control characters or line ends", error);
    }
    *value = arena_text(arena, json_string_value(found));
    return STATUS_OK;
}

Status json_get_text_or(const JsonReader *reader, const char *key, const char *fallback, Arena *arena,
                        const char **value, Error *error) {
    *value = fallback;
    return key_unset(reader, key) ? STATUS_OK : json_get_text(reader, key, arena, value, error);
}

Status json_get_object(const JsonReader *reader, const char *key, Arena *arena, JsonReader *child, Error *error) {
    json_t *found = json_object_get(reader->object, key);
    FAIL_WITH(!json_is_object(found), type_error(reader, key, "an object", error));
    const char *dot = reader->path[0] == '\0' ? "" : ".";
    *child = (JsonReader){
        .origin = reader->origin, .path = arena_format(arena, "%s%s%s", reader->path, dot, key), .object = found};
    return STATUS_OK;
}

Status json_reader_finish(const JsonReader *reader, const char *const *keys, size_t count, Error *error) {
    const char *key;
    json_t *value;
    json_object_foreach(reader->object, key, value) {
        if (text_index(keys, count, key) < 0) {
            const Status status = json_error(reader, key, error, "unknown field");
            const char *nearest = text_nearest(key, keys, count);
            return nearest ? error_hint(error, "did you mean \"%s\"?", nearest) : status;
        }
    }
    return STATUS_OK;
}
