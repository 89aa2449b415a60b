// What a script says in place of its launcher: os.environ["NAME"] = value, update(), setdefault(), |= and os.environ =
// {**os.environ, ...}. What of these is known when the script runs is noted by its words.

#include "autotune/import/python_environment.h"

#include <string.h>

#include "sim/frameworks/import_python.h"

// str(2) is 2; of another call, its name.
static const ConfigNode *word_of(const PythonReader *python, const ConfigNode *value) {
    const ConfigNode *class = config_child(value, "_target_"), *unnamed = config_child(value, "_args_");
    if (value->kind == NODE_SCALAR) {
        return value;
    }
    if (class && strcmp(class->text, "str") == 0 && unnamed && unnamed->first->kind == NODE_SCALAR) {
        return unnamed->first;
    }
    Arena *arena = python->source->arena;
    return config_scalar(arena, NULL, class ? arena_format(arena, "%s(...)", class->text) : "...", value->line);
}

// What the launcher would say, by the environment. Of others' names nothing is read.
static Status put_environment(PythonReader *python, ConfigNode *root, const ConfigNode *value, const char *name,
                              int line) {
    static const char *const launchers[] = {"ACCELERATE_", "FSDP_"};
    for (size_t i = 0; name && i < sizeof launchers / sizeof launchers[0]; i++) {
        if (strncmp(name, launchers[i], strlen(launchers[i])) == 0) {
            return python_put(python, root, arena_format(python->source->arena, ENVIRON ".%s", name),
                              word_of(python, value), line);
        }
    }
    return STATUS_OK;
}

static Status put_variables(PythonReader *python, ConfigNode *root, const ConfigNode *map) {
    for (const ConfigNode *child = map->first; child; child = child->next) {
        TRY(put_environment(python, root, child, child->key, child->line));
    }
    return STATUS_OK;
}

// The end of the function's body that begins here: the first line that is indented no further.
static const char *behind_body(const char *at) {
    do {
        at += strcspn(at, "\n");
        at += *at == '\n';
    } while (*at && strchr(" \t\r\n#)", *at));
    return at;
}

// The dict that a function of the file returns, where that is all it returns: "def NAME" is at a line's begin. NULL.
static ConfigNode *returned_dict(const PythonReader *python, const char *name) {
    static const char word[] = "\n    return {";
    const char *text = python->source->text;
    const char *mark = arena_format(python->source->arena, "\ndef %s(", name), *at = strstr(text, mark);
    if (!at || strstr(at + 1, mark)) {
        return NULL;
    }
    const char *end = behind_body(at + 1), *given = strstr(at, word), *first = strstr(at, "return ");
    if (!given || given > end || first < given) {
        return NULL;
    }
    PythonReader ahead = *python;
    ahead.naming = true;  // its own names stay
    ConfigNode *map = NULL;
    const bool read = python_read_from(&ahead, given + strlen(word) - 1, &map) == STATUS_OK;
    return read && map->kind == NODE_MAP ? map : NULL;
}

enum { DICTS_MOST = 16 };  // that one statement joins

static const char *behind_stars(const char *text) {
    return text + (strncmp(text, "**", 2) == 0 ? 2 : 0);
}

// The function that f() and **f() call; NULL: it is no call.
static const char *called(const PythonReader *python, const ConfigNode *value) {
    if (value->kind == NODE_MAP) {
        const ConfigNode *class = config_child(value, "_target_");
        return class ? class->text : NULL;
    }
    const char *text = behind_stars(python_item_text(value));
    const size_t length = dotted_length(text);
    const bool calls = text > python_item_text(value) && text[length] == '(' && *behind_brackets(text + length) == '\0';
    return length > 0 && calls ? python_copied(python, text, length) : NULL;
}

// Something is set that nobody reads.
static Status put_unread(PythonReader *python, ConfigNode *root, const ConfigNode *value, int line) {
    enum { WORDS_MOST = 48 };
    Arena *arena = python->source->arena;
    const ConfigNode *class = value->kind == NODE_MAP ? config_child(value, "_target_") : NULL;
    const ConfigNode *environment = config_child(root, ENVIRON);
    const char *text = behind_stars(python_item_text(value));
    const int length = (int)strcspn(text, "\n"), most = length < WORDS_MOST ? length : WORDS_MOST;
    const char *said = class                      ? arena_format(arena, "%s(...)", class->text)
                       : value->kind == NODE_LIST ? "a list"
                       : value->kind != NODE_SCALAR
                           ? "a dict of itself"
                           : arena_format(arena, "%.*s%s", most, text, text[most] ? "..." : "");
    const char *path =
        arena_format(arena, ENVIRON "." ENVIRON_UNREAD "_%zu", environment ? environment->child_count : 0);
    return python_put(python, root, path, config_scalar(arena, NULL, said, line), line);
}

static bool is_environment(const char *name) {
    return strcmp(name, "os.environ") == 0 || strcmp(name, "environ") == 0;
}

typedef struct Joined {
    const char *at;  // where names of the script are used; NULL: in a function, whose own are not looked up
    int line;
    int *left;  // dicts to look into: one may hold itself
} Joined;

static Status put_joined(PythonReader *python, ConfigNode *root, const ConfigNode *value, Joined joined);

// f(), **f(), name and **name, within the brackets of update(), dict() and {}.
static Status put_items(PythonReader *python, ConfigNode *root, const ConfigNode *map, Joined joined) {
    const ConfigNode *unnamed = config_child(map, "_args_");
    for (const ConfigNode *item = unnamed ? unnamed->first : NULL; item; item = item->next) {
        const char *name = behind_stars(python_item_text(item));
        const ConfigNode *named = joined.at && name[0] ? python_value_of(python, joined.at, name) : NULL;
        if (!is_environment(name)) {
            TRY(put_joined(python, root, named ? named : item, joined));
        }
    }
    return put_variables(python, root, map);
}

// What a dict or f() sets.
static Status put_joined(PythonReader *python, ConfigNode *root, const ConfigNode *value, Joined joined) {
    const char *function = called(python, value);
    const bool is_dict = value->kind == NODE_MAP && (!function || strcmp(function, "dict") == 0);
    const ConfigNode *given = function && !is_dict ? returned_dict(python, function) : NULL;
    if ((!is_dict && !given) || (*joined.left)-- <= 0) {
        return put_unread(python, root, value, joined.line);
    }
    joined.at = given ? NULL : joined.at;
    return put_items(python, root, given ? given : value, joined);
}

// Of update({"NAME": "value"}, **more, NAME="value") and setdefault("NAME", "value").
static Status put_call(PythonReader *python, ConfigNode *root, bool defaults) {
    ConfigNode *call = NULL;
    const char *from = python->at;
    const int line = python->line;
    TRY(python_read_value(python, 0, &call));
    const ConfigNode *unnamed = config_child(call, "_args_"), *first = unnamed ? unnamed->first : NULL;
    if (!defaults) {
        int left = DICTS_MOST;
        return put_items(python, root, call, (Joined){from, line, &left});
    }
    const ConfigNode *set = config_child(root, ENVIRON);
    const bool is_said = !first || first->kind != NODE_SCALAR || (set && config_child(set, first->text));
    return is_said || !first->next ? STATUS_OK : put_environment(python, root, first->next, first->text, line);
}

// Behind name |= and os.environ =; NULL where neither stands there.
static const char *behind_joined(const char *at, const char *name) {
    const size_t length = dotted_length(at);
    const char *sign = at + length + strspn(at + length, " ");
    const bool named = length == strlen(name) && strncmp(at, name, length) == 0;
    const size_t joins = strncmp(sign, "|=", 2) == 0 ? 2 : sign[0] == '=' && sign[1] != '=' && strchr(name, '.');
    return named && joins > 0 ? sign + joins : NULL;
}

// os.environ["NAME"] = "value", what it is joined with, and what it is called with.
Status python_take_environment(PythonReader *python, ConfigNode *root, bool *taken) {
    static const struct {
        const char *name, *update, *set_default;
    } names[] = {{"os.environ", "os.environ.update", "os.environ.setdefault"},
                 {"environ", "environ.update", "environ.setdefault"}};
    *taken = true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *key = NULL, *at = python_item_set(python, names[i].name, &key);
        const bool defaults = python_is_call_of(python->at, names[i].set_default);
        if (defaults || python_is_call_of(python->at, names[i].update)) {
            return put_call(python, root, defaults);
        }
        const char *joined = at ? NULL : behind_joined(python->at, names[i].name);
        if (at || joined) {
            ConfigNode *value = NULL;
            int left = DICTS_MOST;
            const char *from = python->at;
            const int line = python->line;
            TRY(python_read_from(python, at ? at : joined, &value));
            return at ? put_environment(python, root, value, key, line)
                      : put_joined(python, root, value, (Joined){from, line, &left});
        }
    }
    *taken = false;
    return STATUS_OK;
}
