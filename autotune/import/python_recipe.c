// A function begins at "def NAME(" without indentation and ends where a line has none; what it begins with is its
// config = other(...) or cfg = other(...), where the file has that function.

#include "autotune/import/python_recipe.h"

#include <ctype.h>
#include <string.h>

#include "autotune/import/python_names.h"

enum { FOLLOWED_MOST = 8 };

const char *python_recipe_named(const char *path) {
    static const char mark[] = ".py:";
    const char *at = strstr(path, mark);
    return at && at[strlen(mark)] ? at + strlen(mark) : NULL;
}

// The name of the function that begins here, with its length; NULL.
static const char *function_at(const char *line, size_t *length) {
    static const char def[] = "def ";
    const char *name = strncmp(line, def, strlen(def)) == 0 ? line + strlen(def) : line;
    *length = dotted_length(name);
    return name > line && name[*length] == '(' ? name : NULL;
}

static const char *next_line(const char *at) {
    at += strcspn(at, "\n");
    return at + (*at == '\n');
}

// Behind its head, which may have several lines, and its body.
static const char *behind_function(const char *line) {
    size_t length = 0;
    const char *name = function_at(line, &length);
    const char *at = next_line(behind_brackets(name + length));
    while (*at && (isspace((unsigned char)*at) || *at == '#' || *at == ')')) {
        at = next_line(at);
    }
    return at;
}

static const char *find(const char *text, const char *name) {
    for (const char *line = text; *line; line = next_line(line)) {
        size_t length = 0;
        const char *found = function_at(line, &length);
        if (found && strlen(name) == length && strncmp(found, name, length) == 0) {
            return line;
        }
    }
    return NULL;
}

// What its configuration begins as; NULL.
static const char *base_of(const ConfigSource *source, const char *function) {
    static const char *const names[] = {"config", "cfg"};
    const char *end = behind_function(function);
    for (const char *line = next_line(function); line < end; line = next_line(line)) {
        const char *at = line + strspn(line, " \t");
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            const size_t own = strlen(names[i]);
            if (strncmp(at, names[i], own) != 0 || dotted_length(at) != own) {
                continue;
            }
            const char *sign = at + own + strspn(at + own, " ");
            if (*sign != '=') {
                continue;
            }
            const char *call = sign + 1 + strspn(sign + 1, " ");
            const size_t length = dotted_length(call);
            const char *base = arena_format(source->arena, "%.*s", (int)length, call);
            return length > 0 && call[length] == '(' && find(source->text, base) ? base : NULL;
        }
    }
    return NULL;
}

static Status refuse_missing(const ConfigSource *source, const char *name) {
    enum { NAMES_MOST = 6 };
    const char *list = "";
    int count = 0;
    for (const char *line = source->text; *line; line = next_line(line)) {
        size_t length = 0;
        const char *found = function_at(line, &length);
        if (found && *found != '_' && count++ < NAMES_MOST) {
            list = arena_format(source->arena, "%s%s%.*s", list, count > 1 ? ", " : "", (int)length, found);
        }
    }
    return error_set(source->error, STATUS_USAGE, "%s has no function %s: there %s %s%s", source->path, name,
                     count == 1 ? "is" : "are", count > 0 ? list : "none", count > NAMES_MOST ? " and more" : "");
}

Status python_recipe_cut(ConfigSource *source, const char *name) {
    Arena *arena = source->arena;
    ConfigNode *followed = config_node(arena, NODE_MAP, 1);
    FAIL_WITH(!find(source->text, name), refuse_missing(source, name));
    for (int i = 0; name && i < FOLLOWED_MOST && !config_child(followed, name); i++) {
        config_append(arena, followed, config_scalar(arena, name, name, 1));
        name = base_of(source, find(source->text, name));
    }
    char *text = arena_text(arena, source->text);
    for (const char *line = source->text; *line;) {
        size_t length = 0;
        const char *found = function_at(line, &length);
        const char *end = found ? behind_function(line) : next_line(line);
        const bool keeps = !found || config_child(followed, arena_format(arena, "%.*s", (int)length, found));
        for (const char *at = line; at < end && !keeps; at++) {
            text[at - source->text] = *at == '\n' ? '\n' : ' ';
        }
        line = end;
    }
    source->text = text;
    source->followed = followed;
    return STATUS_OK;
}
