// Files and text to jansson trees: size, depth, duplicate keys and syntax are checked before anybody looks at a value.
// Reading the values is json_reader.c. Does not stream: a document is held whole, which JSON_MAX_FILE_BYTES bounds.

#include "sim/base/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/escape.h"
#include "sim/base/open.h"

// Depth of a tree; stops looking below limit, so the recursion is bounded.
static int tree_depth(json_t *value, int limit) {
    int deepest = 0;
    if (limit == 0) {
        return 0;
    }
    if (json_is_object(value)) {
        const char *key;
        json_t *child;
        json_object_foreach(value, key, child) {
            const int depth = 1 + tree_depth(child, limit - 1);
            deepest = depth > deepest ? depth : deepest;
        }
        return deepest > 0 ? deepest : 1;
    }
    if (json_is_array(value)) {
        size_t index;
        json_t *child;
        json_array_foreach(value, index, child) {
            const int depth = 1 + tree_depth(child, limit - 1);
            deepest = depth > deepest ? depth : deepest;
        }
        return deepest > 0 ? deepest : 1;
    }
    return 0;
}

static Status bytes_load(const char *bytes, size_t count, const char *origin, json_t **root, Error *error) {
    *root = NULL;
    FAIL_IF(count > JSON_MAX_FILE_BYTES, error, STATUS_USAGE, "%s: larger than %d MiB", origin,
            JSON_MAX_FILE_BYTES >> 20);
    json_error_t parse_error;
    const size_t mark = count >= 3 ? (size_t)(text_behind_mark(bytes) - bytes) : 0;
    bytes += mark;
    count -= mark;
    json_t *tree = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, &parse_error);
    FAIL_IF(!tree && count == 0, error, STATUS_USAGE, "%s:1:1: empty; a JSON object is needed", origin);
    FAIL_IF(!tree, error, STATUS_USAGE, "%s:%d:%d: %s", origin, parse_error.line, parse_error.column, parse_error.text);
    if (tree_depth(tree, JSON_MAX_DEPTH + 1) > JSON_MAX_DEPTH) {
        json_decref(tree);
        return error_set(error, STATUS_USAGE, "%s: nested deeper than %d levels", origin, JSON_MAX_DEPTH);
    }
    *root = tree;
    return STATUS_OK;
}

Status json_text_load(const char *text, const char *origin, json_t **root, Error *error) {
    return bytes_load(text, strlen(text), origin, root, error);
}

// The file's bytes, at most one more than the limit so that the caller can tell. *bytes is malloc'd.
static Status file_read(FILE *file, const char *path, char **bytes, size_t *count, Error *error) {
    size_t capacity = 1 << 16;
    char *buffer = malloc(capacity);
    size_t used = 0;
    while (buffer) {
        used += fread(buffer + used, 1, capacity - used, file);
        if (used < capacity || used > JSON_MAX_FILE_BYTES) {
            break;
        }
        capacity *= 2;
        char *larger = realloc(buffer, capacity);
        if (!larger) {
            free(buffer);
        }
        buffer = larger;
    }
    FAIL_IF(!buffer, error, STATUS_INTERNAL, "%s: out of memory while reading", path);
    if (ferror(file)) {
        const int reason = errno;
        free(buffer);
        return error_set(error, STATUS_ENVIRONMENT, "%s: cannot read: %s", path, strerror(reason));
    }
    *bytes = buffer;
    *count = used;
    return STATUS_OK;
}

Status json_file_load(const char *path, json_t **root, Error *error) {
    *root = NULL;
    const char *why = NULL;
    FILE *file = open_to_read(path, &why);
    FAIL_IF(!file, error, STATUS_ENVIRONMENT, "%s: cannot open: %s", path, why);
    char *bytes = NULL;
    size_t count = 0;
    Status status = file_read(file, path, &bytes, &count, error);
    fclose(file);
    if (status == STATUS_OK) {
        status = bytes_load(bytes, count, path, root, error);
    }
    free(bytes);
    return status;
}

static Status file_write(const char *path, const char *text, Error *error) {
    FILE *file = fopen(path, "wb");
    FAIL_IF(!file, error, STATUS_ENVIRONMENT, "%s: cannot create: %s", path, strerror(errno));
    const bool written = fputs(text, file) >= 0 && fputc('\n', file) != EOF && fflush(file) == 0;
    const int reason = errno;
    if (fclose(file) != 0 || !written) {
        remove(path);
        return error_set(error, STATUS_ENVIRONMENT, "%s: cannot write: %s", path, strerror(written ? errno : reason));
    }
    return STATUS_OK;
}

Status json_file_save(const char *path, const json_t *root, Error *error) {
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    const size_t temporary_bytes = strlen(path) + sizeof ".tmp";
    char *temporary = malloc(temporary_bytes);
    Status status = STATUS_OK;
    if (!text || !temporary) {
        status = error_set(error, STATUS_INTERNAL, "%s: cannot encode as JSON", path);
        goto done;
    }
    snprintf(temporary, temporary_bytes, "%s.tmp", path);
    status = file_write(temporary, text, error);
    if (status == STATUS_OK && rename(temporary, path) != 0) {
        status =
            error_set(error, STATUS_ENVIRONMENT, "%s: cannot rename from %s: %s", path, temporary, strerror(errno));
        remove(temporary);
    }
done:
    free(temporary);
    free(text);
    return status;
}
