// What a script says in place of its launcher: os.environ["NAME"] = value, update(), setdefault() and |=.

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
    return python_read_from(&ahead, given + strlen(word) - 1, &map) == STATUS_OK ? map : NULL;
}

// What a dict or f() sets; of others that something is set, which nobody reads.
static Status put_joined(PythonReader *python, ConfigNode *root, const ConfigNode *map, int line) {
    const ConfigNode *class = map->kind == NODE_MAP ? config_child(map, "_target_") : NULL;
    const bool is_dict = map->kind == NODE_MAP && (!class || strcmp(class->text, "dict") == 0);
    const ConfigNode *given = class && !is_dict ? returned_dict(python, class->text) : map;
    if (is_dict || (given && given != map)) {
        return put_variables(python, root, given);
    }
    Arena *arena = python->source->arena;
    const char *said = class ? arena_format(arena, "%s(...)", class->text) : python_item_text(map);
    return python_put(python, root, ENVIRON "." ENVIRON_UNREAD, config_scalar(arena, NULL, said, line), line);
}

// Of update({"NAME": "value"}, **more, NAME="value") and setdefault("NAME", "value").
static Status put_call(PythonReader *python, ConfigNode *root, bool defaults) {
    ConfigNode *call = NULL;
    const char *from = python->at;
    const int line = python->line;
    TRY(python_read_value(python, 0, &call));
    const ConfigNode *unnamed = config_child(call, "_args_"), *first = unnamed ? unnamed->first : NULL;
    if (!defaults) {
        for (const ConfigNode *item = first; item; item = item->next) {
            const bool more = strncmp(python_item_text(item), "**", 2) == 0;
            const ConfigNode *map = more ? python_value_of(python, from, item->text + 2) : item;
            TRY(put_joined(python, root, map ? map : item, line));
        }
        return put_variables(python, root, call);
    }
    const ConfigNode *set = config_child(root, "environ");
    const bool is_said = !first || first->kind != NODE_SCALAR || (set && config_child(set, first->text));
    return is_said || !first->next ? STATUS_OK : put_environment(python, root, first->next, first->text, line);
}

// Behind name |=; NULL where that does not stand there.
static const char *behind_joined(const char *at, const char *name) {
    const size_t length = dotted_length(at);
    const char *sign = at + length + strspn(at + length, " ");
    const bool named = length == strlen(name) && strncmp(at, name, length) == 0;
    return named && strncmp(sign, "|=", 2) == 0 ? sign + 2 : NULL;
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
            const int line = python->line;
            TRY(python_read_from(python, at ? at : joined, &value));
            return at ? put_environment(python, root, value, key, line) : put_joined(python, root, value, line);
        }
    }
    *taken = false;
    return STATUS_OK;
}
