// Strict reading helpers over jansson: every error names the file, the path and the offending value.
// A JsonReader reads one object; json_reader_finish refuses unknown fields, so a typo is never silent.

#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"

enum { JSON_MAX_DEPTH = 64, JSON_MAX_FILE_BYTES = 64 << 20 };

// Loads a whole file: refuses absent, oversized, non-UTF-8, duplicate-key and malformed files with "file:line:column".
// The caller owns *root (json_decref).
Status json_file_load(const char *path, json_t **root, Error *error);
Status json_text_load(const char *text, const char *origin, json_t **root, Error *error);

// Writes text to path + ".tmp", then renames: readers never see half a file.
Status json_file_save(const char *path, const json_t *root, Error *error);

typedef struct JsonReader {
    const char *origin;  // file name or other name of the source
    const char *path;    // "node.gpus" style, "" at the root
    json_t *object;      // borrowed
} JsonReader;

// Each getter: required fields fail when absent; the _or forms take the default instead, also for null. Range is
// inclusive.
Status json_get_int(const JsonReader *reader, const char *key, int64_t low, int64_t high, int64_t *value, Error *error);
Status json_get_int_or(const JsonReader *reader, const char *key, int64_t low, int64_t high, int64_t fallback,
                       int64_t *value, Error *error);
Status json_get_double(const JsonReader *reader, const char *key, double low, double high, double *value, Error *error);
Status json_get_double_or(const JsonReader *reader, const char *key, double low, double high, double fallback,
                          double *value, Error *error);
Status json_get_bool_or(const JsonReader *reader, const char *key, bool fallback, bool *value, Error *error);
Status json_get_text(const JsonReader *reader, const char *key, Arena *arena, const char **value, Error *error);
Status json_get_text_or(const JsonReader *reader, const char *key, const char *fallback, Arena *arena,
                        const char **value, Error *error);
Status json_get_bool(const JsonReader *reader, const char *key, bool *value, Error *error);

// A nested object as a reader of its own; its path lives in the arena.
Status json_get_object(const JsonReader *reader, const char *key, Arena *arena, JsonReader *child, Error *error);

// Every key of the object must be one of `keys`; the first that is not is an error with a suggestion.
Status json_reader_finish(const JsonReader *reader, const char *const *keys, size_t count, Error *error);

// An error about one key in the one form that all of them have: "file: path.key: " + the sentence.
Status json_error(const JsonReader *reader, const char *key, Error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Where the condition holds: returns what json_error does.
#define JSON_FAIL_IF(condition, reader, key, error, ...)                                                               \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            return json_error(reader, key, error, __VA_ARGS__);                                                        \
        }                                                                                                              \
    } while (0)
