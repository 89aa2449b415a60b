// A recipe in Python as a tree: its assignments to attributes of its configuration; cfg.model.x = 8 is x in the map
// model. A call is a map of its named arguments with its name as "_target_", as in Hydra; the initial configuration,
// cfg = base(), is the key "_base_". Nothing is executed: a value that is an expression is kept as written. A file with
// several functions that assign is several recipes, and refused.

#include <ctype.h>
#include <string.h>

#include "autotune/import/config_load.h"

typedef struct Python {
    const ConfigSource *source;
    const char *at;
    int line;
    const char *function, *assigning;  // the current `def`, and the one that assigned; NULL
    ConfigNode *constants;             // NAME = "text" of the file
} Python;

static size_t dotted_length(const char *text) {
    size_t length = 0;
    while (
        isalnum((unsigned char)text[length]) || text[length] == '_' ||
        (text[length] == '.' && length > 0 && (isalpha((unsigned char)text[length + 1]) || text[length + 1] == '_'))) {
        length++;
    }
    return length > 0 && !isdigit((unsigned char)text[0]) ? length : 0;
}

static char *copied(const Python *python, const char *from, size_t length) {
    return arena_format(python->source->arena, "%.*s", (int)length, from);
}

// The position after a string that begins here; a triple-quoted one spans lines.
static const char *behind_string(const char *at) {
    const size_t quotes = strncmp(at, "\"\"\"", 3) == 0 || strncmp(at, "'''", 3) == 0 ? 3 : 1;
    for (const char *end = at + quotes; *end; end += *end == '\\' && end[1] ? 2 : 1) {
        if (strncmp(end, at, quotes) == 0) {
            return end + quotes;
        }
        if (quotes == 1 && *end == '\n') {
            return end;
        }
    }
    return at + strlen(at);
}

// The end of an expression: a line end, comma, closing bracket or "=" outside brackets.
static const char *behind_value(const char *at) {
    int depth = 0;
    while (*at) {
        if (*at == '"' || *at == '\'') {
            at = behind_string(at);
            continue;
        }
        if (depth == 0 && (strchr("\n,)]}#;", *at) || (*at == '=' && at[1] != '=' && !strchr("=!<>", at[-1])))) {
            return at;
        }
        depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
        if (*at == '#') {
            at += strcspn(at, "\n");
        } else {
            at++;
        }
    }
    return at;
}

static void skip_space(Python *python, bool lines) {
    for (;; python->at++) {
        if (lines && *python->at == '#') {
            python->at += strcspn(python->at, "\n");
        }
        if (*python->at != ' ' && *python->at != '\t' && *python->at != '\r' && !(lines && *python->at == '\n')) {
            return;
        }
        python->line += *python->at == '\n';
    }
}

static void go_to(Python *python, const char *end) {
    for (; python->at < end; python->at++) {
        python->line += *python->at == '\n';
    }
}

static Status read_value(Python *python, int depth, ConfigNode **value);

// [a, b] and (a, b); name(key=a), whose unnamed arguments are left out.
static Status read_items(Python *python, int depth, ConfigNode *parent) {
    const char end = *python->at == '[' ? ']' : ')';
    for (python->at++;;) {
        skip_space(python, true);
        if (*python->at == end || *python->at == '\0') {
            python->at += *python->at == end;
            return STATUS_OK;
        }
        const size_t name = parent->kind == NODE_MAP ? dotted_length(python->at) : 0;
        const char *behind = python->at + name + strspn(python->at + name, " ");
        const int line = python->line;
        const char *key = name && behind[0] == '=' && behind[1] != '=' ? copied(python, python->at, name) : NULL;
        ConfigNode *item = NULL;
        if (key) {
            python->at = behind + 1;
            skip_space(python, false);
        }
        TRY(read_value(python, depth, &item));
        if (key || parent->kind == NODE_LIST) {
            item->key = key;
            item->line = line;
            config_append(python->source->arena, parent, item);
        }
        skip_space(python, true);
        if (*python->at == ',') {
            python->at++;
        } else if (*python->at != end) {
            go_to(python, *python->at ? python->at + 1 : python->at);
        }
    }
}

static const char *plain_text(Python *python, const char *from, const char *end) {
    while (end > from && isspace((unsigned char)end[-1])) {
        end--;
    }
    const size_t length = (size_t)(end - from);
    if (length >= 2 && (*from == '"' || *from == '\'') && behind_string(from) == end && end[-1] == *from) {
        return copied(python, from + 1, length - 2);
    }
    const char *text = copied(python, from, length);
    const ConfigNode *constant = config_child(python->constants, text);
    return constant ? constant->text : strcmp(text, "None") == 0 ? "" : text;
}

static Status read_value(Python *python, int depth, ConfigNode **value) {
    const char *from = python->at, *end = behind_value(from);
    const size_t name = dotted_length(from);
    if (depth == CONFIG_MAX_DEPTH) {
        return config_malformed(python->source, python->line, "nested too deep");
    }
    const bool is_call = name > 0 && from[name] == '(';
    *value = config_node(python->source->arena,
                         is_call        ? NODE_MAP
                         : *from == '[' ? NODE_LIST
                                        : NODE_SCALAR,
                         python->line);
    if (is_call) {
        config_append(python->source->arena, *value,
                      config_scalar(python->source->arena, "_target_", copied(python, from, name), python->line));
        python->at += name;
        return read_items(python, depth + 1, *value);
    }
    if (*from == '[') {
        return read_items(python, depth + 1, *value);
    }
    (*value)->text = plain_text(python, from, end);
    go_to(python, end);
    return STATUS_OK;
}

// Replaces `child`; NULL = appends.
static ConfigNode *place(Arena *arena, ConfigNode *map, ConfigNode *child, ConfigNode *node) {
    if (!child) {
        config_append(arena, map, node);
        return node;
    }
    ConfigNode *next = child->next;
    *child = *node;
    child->next = next;
    return child;
}

// cfg.a.b = value: replaces the previous value, as it does when the recipe runs.
static Status put(Python *python, ConfigNode *root, const char *path, const ConfigNode *value, int line) {
    Arena *arena = python->source->arena;
    ConfigNode *map = root;
    for (int depth = 0;; depth++) {
        const size_t length = strcspn(path, ".");
        const char *key = copied(python, path, length);
        ConfigNode *child = config_child(map, key);
        if (depth == CONFIG_MAX_DEPTH) {
            return config_malformed(python->source, line, "a name of too many words");
        }
        const bool last = path[length] == '\0';
        if (last || !child || child->kind != NODE_MAP) {
            ConfigNode *made = last ? config_copy(value, arena) : config_node(arena, NODE_MAP, line);
            made->key = key;
            made->line = line;
            if (!last && child) {  // a word until now: its name is kept
                ConfigNode *target = config_copy(child, arena);
                target->key = "_target_";
                config_append(arena, made, target);
            }
            child = place(arena, map, child, made);
        }
        if (last) {
            return STATUS_OK;
        }
        map = child;
        path += length + 1;
    }
}

static bool is_config(const char *name, size_t length) {
    return (length == 3 && strncmp(name, "cfg", 3) == 0) || (length == 6 && strncmp(name, "config", 6) == 0);
}

static Status take_paths(Python *python, ConfigNode *root, const char **paths, int count, int line) {
    ConfigNode *value = NULL;
    if (python->assigning && python->assigning != python->function) {
        return config_malformed(python->source, line,
                                "%s() and %s() both set a configuration: a file of one recipe is read",
                                python->assigning, python->function ? python->function : "the file");
    }
    python->assigning = python->function;
    TRY(read_value(python, 0, &value));
    for (int i = 0; i < count; i++) {
        TRY(put(python, root, paths[i], value, line));
    }
    return STATUS_OK;
}

// NAME = "text", outside functions.
static void take_constant(Python *python) {
    const size_t length = dotted_length(python->at);
    const char *sign = python->at + length + strspn(python->at + length, " ");
    if (python->function || length == 0 || sign[0] != '=' || sign[1] == '=') {
        return;
    }
    const char *from = sign + 1 + strspn(sign + 1, " ");
    if (*from == '"' || *from == '\'') {
        const char *name = copied(python, python->at, length), *text = plain_text(python, from, behind_value(from));
        config_append(python->source->arena, python->constants,
                      config_scalar(python->source->arena, name, text, python->line));
    }
}

static Status read_statement(Python *python, ConfigNode *root) {
    enum { PATHS_MOST = 8 };
    const char *paths[PATHS_MOST];
    int count = 0;
    const int line = python->line;
    while (count < PATHS_MOST) {
        const size_t length = dotted_length(python->at), first = strcspn(python->at, ".=( \t\n");
        const char *sign = python->at + length + strspn(python->at + length, " ");
        if (length == 0 || first > length || !is_config(python->at, first) || sign[0] != '=' || sign[1] == '=') {
            break;
        }
        paths[count++] = first < length ? copied(python, python->at + first + 1, length - first - 1) : "_base_";
        python->at = sign + 1;
        skip_space(python, false);
    }
    if (count == 0) {
        take_constant(python);
    } else {
        TRY(take_paths(python, root, paths, count, line));
    }
    while (*python->at && *python->at != '\n') {
        go_to(python, *python->at == '"' || *python->at == '\'' ? behind_string(python->at) : python->at + 1);
    }
    return STATUS_OK;
}

Status config_python(const ConfigSource *source, ConfigNode **root) {
    Python python = {.source = source, .at = source->text, .line = 1};
    *root = config_node(source->arena, NODE_MAP, 1);
    python.constants = config_node(source->arena, NODE_MAP, 1);
    for (skip_space(&python, true); *python.at; skip_space(&python, true)) {
        if (strncmp(python.at, "def ", 4) == 0) {
            python.function = copied(&python, python.at + 4, dotted_length(python.at + 4));
        }
        TRY(read_statement(&python, *root));
    }
    return STATUS_OK;
}
