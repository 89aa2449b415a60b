// TOML as config files use it: tables, dotted keys, strings on one line, numbers, booleans, arrays, inline tables,
// comments. Debian has no TOML library for C; unsupported syntax (arrays of tables, multi-line strings) is refused by
// name.

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/import/config_load.h"

typedef struct TomlReader {
    const ConfigSource *source;
    const char *at;
    int line;
    ConfigNode *table;  // that keys are added to
} TomlReader;

static Status read_value(TomlReader *reader, int depth, ConfigNode **value);

static void skip_spaces(TomlReader *reader) {
    reader->at += strspn(reader->at, " \t");
}

// Skips spaces, comments and line ends.
static void skip_lines(TomlReader *reader) {
    for (;;) {
        reader->at += strspn(reader->at, " \t\r");
        if (*reader->at == '#') {
            reader->at += strcspn(reader->at, "\n");
        }
        if (*reader->at != '\n') {
            return;
        }
        reader->at++;
        reader->line++;
    }
}

static Status malformed(const TomlReader *reader, const char *what) {
    char near[24];
    snprintf(near, sizeof near, "%.*s", (int)strcspn(reader->at, "\r\n"), reader->at);
    return config_malformed(reader->source, reader->line, "no TOML: %s, before \"%s\"", what, near);
}

static size_t put_code(char *out, unsigned long code) {  // UTF-8, RFC 3629
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned leads[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(leads[more] | (code >> (6 * more)));
    for (int i = 1; i <= more; i++) {
        out[i] = (char)(0x80 | ((code >> (6 * (more - i))) & 0x3f));
    }
    return (size_t)more + 1;
}

// One escape; reader->at is after the backslash.
static Status read_escape(TomlReader *reader, char *out, size_t *used) {
    static const char letters[] = "btnfr\"\\", meanings[] = "\b\t\n\f\r\"\\";
    const char *letter = *reader->at ? strchr(letters, *reader->at) : NULL;
    if (letter) {
        out[(*used)++] = meanings[letter - letters];
        reader->at++;
        return STATUS_OK;
    }
    const size_t digits = *reader->at == 'u' ? 4 : *reader->at == 'U' ? 8 : 0;
    char hex[9] = "";
    for (size_t i = 0; i < digits && isxdigit((unsigned char)reader->at[1 + i]); i++) {
        hex[i] = reader->at[1 + i];
    }
    const unsigned long code = strtoul(hex, NULL, 16);
    FAIL_WITH(digits == 0 || strlen(hex) != digits || code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000),
              malformed(reader, "an escape that is none"));
    *used += put_code(out + *used, code);
    reader->at += 1 + digits;
    return STATUS_OK;
}

static Status read_string(TomlReader *reader, const char **text) {
    const char quote = *reader->at;
    FAIL_WITH(strncmp(reader->at, "\"\"\"", 3) == 0 || strncmp(reader->at, "'''", 3) == 0,
              malformed(reader, "a string over several lines, which is not read here"));
    const char *end = ++reader->at;
    while (*end && *end != '\n' && *end != quote) {
        end += quote == '"' && *end == '\\' && end[1] ? 2 : 1;
    }
    char *out = arena_alloc(reader->source->arena, (size_t)(end - reader->at) + 1);  // escapes never grow
    size_t used = 0;
    while (*reader->at && *reader->at != '\n' && *reader->at != quote) {
        if (quote == '"' && *reader->at == '\\') {
            reader->at++;
            TRY(read_escape(reader, out, &used));
        } else {
            out[used++] = *reader->at++;
        }
    }
    FAIL_WITH(*reader->at != quote, malformed(reader, "a string that does not end"));
    reader->at++;
    *text = out;
    return STATUS_OK;
}

static Status read_key(TomlReader *reader, const char **key) {
    if (*reader->at == '"' || *reader->at == '\'') {
        return read_string(reader, key);
    }
    size_t length = 0;
    while (isalnum((unsigned char)reader->at[length]) || reader->at[length] == '_' || reader->at[length] == '-') {
        length++;
    }
    FAIL_WITH(length == 0, malformed(reader, "a key is missing"));
    *key = arena_format(reader->source->arena, "%.*s", (int)length, reader->at);
    reader->at += length;
    return STATUS_OK;
}

// The table of that name below `table`, created if missing.
static Status descend(TomlReader *reader, const char *key, ConfigNode **table) {
    ConfigNode *child = config_child(*table, key);
    FAIL_WITH(child && child->kind != NODE_MAP,
              config_malformed(reader->source, reader->line, "%s is a value already, from line %d", key, child->line));
    if (!child) {
        child = config_node(reader->source->arena, NODE_MAP, reader->line);
        child->key = key;
        config_append(reader->source->arena, *table, child);
    }
    *table = child;
    return STATUS_OK;
}

// a.b.c: the tables before the last dot, and the last word.
static Status read_path(TomlReader *reader, ConfigNode **table, const char **last) {
    for (int depth = 0;; depth++) {
        skip_spaces(reader);
        TRY(read_key(reader, last));
        skip_spaces(reader);
        if (*reader->at != '.') {
            return STATUS_OK;
        }
        FAIL_WITH(depth == CONFIG_MAX_DEPTH, malformed(reader, "a key of too many words"));
        reader->at++;
        TRY(descend(reader, *last, table));
    }
}

static Status read_pair(TomlReader *reader, ConfigNode *table, int depth) {
    const char *key = NULL;
    ConfigNode *value = NULL;
    const int line = reader->line;
    TRY(read_path(reader, &table, &key));
    FAIL_WITH(*reader->at != '=', malformed(reader, "a key without \"=\""));
    reader->at++;
    skip_spaces(reader);
    const ConfigNode *there = config_child(table, key);
    FAIL_WITH(there, config_malformed(reader->source, line, "%s has a value already, from line %d", key, there->line));
    TRY(read_value(reader, depth, &value));
    value->key = key;
    value->line = line;
    config_append(reader->source->arena, table, value);
    return STATUS_OK;
}

// Items up to the closing bracket or brace; arrays may span lines, inline tables may not.
static Status read_items(TomlReader *reader, ConfigNode *parent, int depth) {
    const char end = parent->kind == NODE_LIST ? ']' : '}';
    reader->at++;
    for (;;) {
        if (parent->kind == NODE_LIST) {
            skip_lines(reader);
        }
        skip_spaces(reader);
        if (*reader->at == end) {
            reader->at++;
            return STATUS_OK;
        }
        ConfigNode *item = NULL;
        if (parent->kind == NODE_LIST) {
            TRY(read_value(reader, depth, &item));
            config_append(reader->source->arena, parent, item);
            skip_lines(reader);
        } else {
            TRY(read_pair(reader, parent, depth));
            skip_spaces(reader);
        }
        if (*reader->at == ',') {
            reader->at++;
        } else if (*reader->at != end) {
            return malformed(reader, "a comma or the end of a list is missing");
        }
    }
}

static Status read_value(TomlReader *reader, int depth, ConfigNode **value) {
    const char first = *reader->at;
    const NodeKind kind = first == '[' ? NODE_LIST : first == '{' ? NODE_MAP : NODE_SCALAR;
    *value = config_node(reader->source->arena, kind, reader->line);
    FAIL_WITH(depth == CONFIG_MAX_DEPTH, malformed(reader, "nested too deep"));
    if (kind != NODE_SCALAR) {
        return read_items(reader, *value, depth + 1);
    }
    if (first == '"' || first == '\'') {
        return read_string(reader, &(*value)->text);
    }
    const size_t length = strcspn(reader->at, " \t\r\n,]}#");
    FAIL_WITH(length == 0, malformed(reader, "a value is missing"));
    (*value)->text = arena_format(reader->source->arena, "%.*s", (int)length, reader->at);
    reader->at += length;
    return STATUS_OK;
}

static Status read_header(TomlReader *reader, ConfigNode *root) {
    const char *last = NULL;
    FAIL_WITH(reader->at[1] == '[', malformed(reader, "an array of tables, which is not read here"));
    reader->at++;
    reader->table = root;
    TRY(read_path(reader, &reader->table, &last));
    TRY(descend(reader, last, &reader->table));
    FAIL_WITH(*reader->at != ']', malformed(reader, "the name of a table does not end"));
    reader->at++;
    return STATUS_OK;
}

Status config_toml(const ConfigSource *source, ConfigNode **root) {
    TomlReader reader = {.source = source, .at = source->text, .line = 1};
    *root = config_node(source->arena, NODE_MAP, 1);
    reader.table = *root;
    for (skip_lines(&reader); *reader.at; skip_lines(&reader)) {
        TRY(*reader.at == '[' ? read_header(&reader, *root) : read_pair(&reader, reader.table, 0));
        reader.at += strspn(reader.at, " \t\r");
        FAIL_WITH(*reader.at && *reader.at != '\n' && *reader.at != '#',
                  malformed(&reader, "something behind a value"));
    }
    return STATUS_OK;
}
