// The words of a script are looked through once, before it is read.

#include "autotune/import/python_options.h"

#include <ctype.h>
#include <string.h>

typedef struct Scan {
    PythonReader python;
    ConfigNode *given, *parameters;
} Scan;

static void note(const Scan *scan, ConfigNode *map, const char *name, const ConfigNode *value) {
    ConfigNode *known = config_child(map, name);
    const bool plain = value && value->kind == NODE_SCALAR && !value->of_run && value->text[0];
    if (known) {
        known->used = true;
    } else if (plain) {
        config_append(scan->python.source->arena, map,
                      config_scalar(scan->python.source->arena, name, value->text, value->line));
    }
}

// The value at `at`, names in it as they stand; NULL.
static ConfigNode *value_at(const Scan *scan, const char *at) {
    PythonReader python = scan->python;
    Error unread = {0};
    ConfigSource quiet = *python.source;
    quiet.error = &unread;
    python.source = &quiet;
    python.naming = true;
    ConfigNode *value = NULL;
    return python_read_from(&python, at, &value) == STATUS_OK ? value : NULL;
}

// --lora-r is args.lora_r.
static const char *name_of(const Scan *scan, const char *option) {
    char *name = arena_text(scan->python.source->arena, option + 2);
    for (char *at = name; *at; at++) {
        *at = *at == '-' ? '_' : *at;
    }
    return name;
}

static void note_argument(const Scan *scan, const ConfigNode *call) {
    const ConfigNode *names = config_child(call, "_args_"), *action = config_child(call, "action");
    const ConfigNode *value = config_child(call, "default");
    ConfigNode switched = {.kind = NODE_SCALAR, .text = "False"};
    if (!value && action && action->kind == NODE_SCALAR && strcmp(action->text, "store_true") == 0) {
        value = &switched;
    }
    for (const ConfigNode *name = names ? names->first : NULL; name; name = name->next) {
        if (name->kind == NODE_SCALAR && strncmp(name->text, "--", 2) == 0) {
            note(scan, scan->given, name_of(scan, name->text), value);
        }
    }
}

// Of NAME: Type = value and NAME = value; NULL.
static const char *behind_type(const char *at, size_t name) {
    const char *sign = at + name + strspn(at + name, " ");
    sign = *sign == ':' ? behind_value(sign + 1) : sign;
    return sign[0] == '=' && sign[1] != '=' ? sign + 1 : NULL;
}

// Fields of the class whose line ends at `at`: those of its own indentation. Returns their end.
static const char *note_fields(const Scan *scan, const char *at) {
    const size_t inner = strspn(at + strspn(at, "\r\n"), " ");
    while (*at == '\n' || *at == '\r') {
        const char *line = at + strspn(at, "\r\n"), *first = line + strspn(line, " ");
        const size_t name = dotted_length(first);
        const char *value = (size_t)(first - line) == inner && name > 0 ? behind_type(first, name) : NULL;
        if (!*first || (size_t)(first - line) < inner || inner == 0) {
            return line;
        }
        if (value) {
            const ConfigNode *read = value_at(scan, value), *of_field = config_child(read, "default");
            note(scan, scan->given, python_copied(&scan->python, first, name), of_field ? of_field : read);
            first = behind_brackets(value + strspn(value, " ") + dotted_length(value + strspn(value, " ")));
        } else if (*first == '"' || *first == '\'') {
            first = behind_string(first);
        }
        at = first + strcspn(first, "\n");
    }
    return at;
}

// (a, b: int = 8, *, c=None)
static void note_parameters(const Scan *scan, const char *at, const char *end) {
    for (at++; at < end;) {
        at += strspn(at, " \t\r\n,*");
        const size_t name = dotted_length(at);
        const char *value = name > 0 ? behind_type(at, name) : NULL;
        if (value && value < end) {
            note(scan, scan->parameters, python_copied(&scan->python, at, name), value_at(scan, value));
        }
        const char *next = behind_value(value && value < end ? value : at + name);
        at = next > at ? next : at + 1;
    }
}

// Returns where the next word may be: a call is read once, whatever is within.
static const char *note_word(const Scan *scan, const char *at, size_t length) {
    static const char argument[] = "add_argument", data[] = "dataclass";
    const size_t whole = strlen(argument);
    const char *behind = at + length + strspn(at + length, " ");
    if (length >= whole && at[length] == '(' && strncmp(at + length - whole, argument, whole) == 0) {
        const ConfigNode *call = value_at(scan, at);
        if (call && call->kind == NODE_MAP) {
            note_argument(scan, call);
        }
        return behind_brackets(at + length);
    } else if (length == 3 && strncmp(at, "def", 3) == 0 && behind[dotted_length(behind)] == '(') {
        const char *from = behind + dotted_length(behind), *end = behind_brackets(from);
        note_parameters(scan, from, end);
        return end;
    } else if (at > scan->python.source->text && at[-1] == '@' && length >= strlen(data) &&
               strncmp(at + length - strlen(data), data, strlen(data)) == 0) {
        const char *class = at + strcspn(at, "\n");
        class += strspn(class, " \r\n");
        if (strncmp(class, "class ", 6) == 0) {
            return note_fields(scan, class + strcspn(class, "\n"));
        }
    }
    return at + length;
}

PythonOptions *python_options(const PythonReader *python) {
    Arena *arena = python->source->arena;
    Scan scan = {*python, config_node(arena, NODE_MAP, 1), config_node(arena, NODE_MAP, 1)};
    for (const char *at = python->source->text; *at;) {
        const size_t length = dotted_length(at);
        at = length > 0                  ? note_word(&scan, at, length)
             : *at == '"' || *at == '\'' ? behind_string(at)
             : *at == '#'                ? at + strcspn(at, "\n")
                                         : at + 1;
    }
    PythonOptions *options = ARENA_NEW(arena, PythonOptions);
    *options = (PythonOptions){scan.given, scan.parameters};
    return options;
}

void python_take_default(const PythonReader *python, ConfigNode *value) {
    const size_t length = dotted_length(value->text);
    if (!python->options || !value->of_run || value->kind != NODE_SCALAR || length == 0 || value->text[length]) {
        return;
    }
    const char *dot = strrchr(value->text, '.');
    const ConfigNode *found = config_child(python->options->given, dot ? dot + 1 : value->text);
    found = found || dot ? found : config_child(python->options->parameters, value->text);
    if (found && !found->used) {
        value->option = value->text;
        value->text = found->text;
        value->of_run = false;
    }
}
