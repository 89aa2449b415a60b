// JSON by jansson, which does not report line numbers: those of the keys are counted in the text, where keys appear in
// the order in which jansson keeps them.

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "sim/base/json.h"

typedef struct JsonLines {
    const char *at;
    int line;
} JsonLines;

// The line of the next string followed by a colon.
static int next_key_line(JsonLines *lines) {
    for (; *lines->at; lines->at++) {
        if (*lines->at == '\n') {
            lines->line++;
        }
        if (*lines->at != '"') {
            continue;
        }
        const int line = lines->line;
        for (lines->at++; *lines->at && *lines->at != '"'; lines->at++) {
            lines->at += *lines->at == '\\' && lines->at[1];
        }
        const char *behind = lines->at + (*lines->at == '"');
        behind += strspn(behind, " \t\r\n");
        if (*behind == ':' || !*lines->at) {
            lines->at += *lines->at == '"';
            return line;
        }
    }
    return lines->line;
}

static const char *scalar_text(json_t *value, Arena *arena) {
    switch (json_typeof(value)) {
    case JSON_STRING:
        return arena_text(arena, json_string_value(value));
    case JSON_INTEGER:
        return arena_format(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    case JSON_REAL: {  // DeepSpeed writes sizes as 5e8
        const double real = json_real_value(value);
        return arena_format(arena, fabs(real) < 1e15 && real == floor(real) ? "%.0f" : "%.17g", real);
    }
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    default:
        return "";
    }
}

static ConfigNode *to_node(json_t *value, int line, JsonLines *lines, Arena *arena) {
    const NodeKind kind = json_is_object(value) ? NODE_MAP : json_is_array(value) ? NODE_LIST : NODE_SCALAR;
    ConfigNode *node = config_node(arena, kind, line);
    if (kind == NODE_MAP) {
        const char *key;
        json_t *child;
        json_object_foreach(value, key, child) {
            const int at = next_key_line(lines);
            ConfigNode *below = to_node(child, at, lines, arena);
            below->key = arena_text(arena, key);
            config_append(arena, node, below);
        }
    } else if (kind == NODE_LIST) {
        size_t index;
        json_t *child;
        json_array_foreach(value, index, child) {
            config_append(arena, node, to_node(child, line, lines, arena));
        }
    } else {
        node->text = scalar_text(value, arena);
    }
    return node;
}

Status config_json(const ConfigSource *source, ConfigNode **root) {
    json_t *tree = NULL;
    TRY(json_text_load(source->text, source->path, &tree, source->error));
    JsonLines lines = {.at = source->text, .line = 1};
    *root = to_node(tree, 1, &lines, source->arena);
    json_decref(tree);
    return STATUS_OK;
}
