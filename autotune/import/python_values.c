// Values of Python as a tree (python_values.h).

#include "autotune/import/python_values.h"

#include "autotune/import/python_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/text.h"
#include "sim/frameworks/import_python.h"

enum { COPIES_MOST = 1 << 18, DIGITS_MOST = 6 };

char *python_copied(const PythonReader *python, const char *from, size_t length) {
    return arena_format(python->source->arena, "%.*s", (int)length, from);
}

void python_skip_space(PythonReader *python, bool lines) {
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

void python_go_to(PythonReader *python, const char *end) {
    for (; python->at < end; python->at++) {
        python->line += *python->at == '\n';
    }
}

// "key": in a dict, which is then consumed; NULL.
static const char *dict_key(PythonReader *python) {
    const char *end = *python->at == '"' || *python->at == '\'' ? behind_string(python->at) : python->at;
    const char *sign = end + strspn(end, " ");
    if (end - python->at < 2 || *sign != ':') {
        return NULL;
    }
    const char *key = python_copied(python, python->at + 1, (size_t)(end - python->at) - 2);
    python->at = sign + 1;
    python_skip_space(python, true);
    return key;
}

const char *python_item_text(const ConfigNode *item) {
    return item->kind == NODE_SCALAR ? item->text : "...";
}

const char *python_item_set(const PythonReader *python, const char *name, const char **key) {
    const char *at = python->at + strlen(name);
    if (strncmp(python->at, name, strlen(name)) != 0 || *at != '[') {
        return NULL;
    }
    at += 1 + strspn(at + 1, " ");
    const char *end = *at == '"' || *at == '\'' ? behind_string(at) : at;
    const char *sign = end + strspn(end, " ");
    if (end - at < 2 || end[-1] != *at || *sign != ']') {
        return NULL;
    }
    sign += 1 + strspn(sign + 1, " ");
    *key = python_copied(python, at + 1, (size_t)(end - at) - 2);
    return *sign == '=' && sign[1] != '=' ? sign + 1 : NULL;
}

static void add_unnamed(PythonReader *python, ConfigNode *call, ConfigNode *item) {
    ConfigNode *list = config_child(call, "_args_");
    if (!list) {
        list = config_node(python->source->arena, NODE_LIST, item->line);
        list->key = "_args_";
        config_append(python->source->arena, call, list);
    }
    config_append(python->source->arena, list, item);
}

static const char *behind_sign(const char *at) {
    return *at == '"' || *at == '\'' ? behind_string(at) : at + (*at != '\0');
}

// [a, b] and (a, b); name(a, key=b); {"key": a}.
static Status read_items(PythonReader *python, int depth, ConfigNode *parent) {
    const bool dict = *python->at == '{';
    const char begin = *python->at, end = begin == '[' ? ']' : dict ? '}' : ')';
    const int begin_line = python->line;
    for (python->at++;;) {
        python_skip_space(python, true);
        FAIL_WITH(*python->at == '\0', config_malformed(python->source, begin_line, "'%c' was never closed", begin));
        if (*python->at == end) {
            python->at++;
            return STATUS_OK;
        }
        const size_t name = parent->kind == NODE_MAP && !dict ? dotted_length(python->at) : 0;
        const char *behind = python->at + name + strspn(python->at + name, " ");
        const int line = python->line;
        const char *key = name && behind[0] == '=' && behind[1] != '=' ? python_copied(python, python->at, name) : NULL;
        ConfigNode *item = NULL;
        if (key) {
            FAIL_WITH(config_child(parent, key),
                      config_malformed(python->source, line, "keyword argument repeated: %s", key));
            python->at = behind + 1;
            python_skip_space(python, false);
        }
        key = dict ? dict_key(python) : key;
        TRY(python_read_value(python, depth, &item));
        if (key || parent->kind == NODE_LIST) {
            item->key = key;
            item->line = line;
            config_append(python->source->arena, parent, item);
        } else {  // of a dict too: **name, NAME: value and what a comprehension is made of
            add_unnamed(python, parent, item);
        }
        python_skip_space(python, true);
        if (*python->at == ',') {
            python->at++;
        } else if (*python->at != end) {
            python_go_to(python, behind_sign(python->at));
        }
    }
}

// "a" "b" is "ab"; NULL where it is more than such strings.
static const char *joined_strings(const PythonReader *python, const char *from, const char *end) {
    char *text = python_copied(python, from, (size_t)(end - from));
    size_t length = 0;
    while (from < end && (*from == '"' || *from == '\'')) {
        const char *behind = behind_string(from);
        if (behind > end || behind - from < 2 || behind[-1] != *from) {
            return NULL;
        }
        const size_t own = (size_t)(behind - from) - 2;
        memcpy(text + length, from + 1, own);
        length += own;
        from = behind + strspn(behind, " \t\r\n");
    }
    text[length] = '\0';
    return from < end ? NULL : text;
}

// A number, True, False, None, torch.bfloat16 and r"...".
static bool is_constant(const char *text) {
    static const char *const words[] = {"True", "False", "None", "", "..."};
    const char *digits = text + strspn(text, "+-.");
    return text_index(words, sizeof words / sizeof words[0], text) >= 0 ||
           (isdigit((unsigned char)*digits) && text[strspn(text, "+-._0123456789eE")] == '\0') ||
           (strncmp(text, "torch.", 6) == 0 && text[dotted_length(text)] == '\0') ||
           (strchr("rRuU", *text) && (text[1] == '"' || text[1] == '\''));
}

static void take_text(PythonReader *python, const char *from, const char *end, ConfigNode *value) {
    while (end > from && isspace((unsigned char)end[-1])) {
        end--;
    }
    const char *joined = *from == '"' || *from == '\'' ? joined_strings(python, from, end) : NULL;
    const char *text = joined ? joined : python_copied(python, from, (size_t)(end - from));
    value->of_run = !joined && !is_constant(text);
    value->text = !joined && strcmp(text, "None") == 0 ? "" : text;
}

static size_t node_count(const ConfigNode *node) {
    size_t count = 1;
    for (const ConfigNode *child = node->first; child; child = child->next) {
        count += node_count(child);
    }
    return count;
}

const char *python_place(const PythonReader *python, const char *at) {
    return arena_format(python->source->arena, "%td", at - python->source->text);
}

const ConfigNode *python_value_of(const PythonReader *python, const char *at, const char *name) {
    const char *set = python_set_at(python->names, at, name);
    return set ? config_child(python->values, python_place(python, set)) : NULL;
}

void python_take_more(const PythonReader *python, const char *at, ConfigNode *call, const char *text, int line) {
    Arena *arena = python->source->arena;
    const ConfigNode *more = python_value_of(python, at, text + strlen("**"));
    for (const ConfigNode *child = more && more->kind == NODE_MAP ? more->first : NULL; child; child = child->next) {
        if (child->key && child->key[0] != '_' && !config_child(call, child->key)) {
            config_append(arena, call, config_copy(child, arena));
        }
    }
    if (!more || more->kind != NODE_MAP) {
        ConfigNode *open = config_scalar(arena, PYTHON_MORE, text, line);
        open->of_run = true;
        config_append(arena, call, open);
    }
}

// What the file gave a name that stands alone.
static Status replace_name(PythonReader *python, const char *at, ConfigNode **value) {
    const ConfigNode *named =
        python->naming || (*value)->text[0] == '\0' ? NULL : python_value_of(python, at, (*value)->text);
    if (!named) {
        return STATUS_OK;
    }
    python->copied_count += node_count(named);
    FAIL_WITH(python->copied_count > COPIES_MOST,
              config_malformed(python->source, python->line, "names that stand for more than %d values", COPIES_MOST));
    const int line = (*value)->line;
    *value = config_copy(named, python->source->arena);
    (*value)->line = named->kind == NODE_SCALAR ? line : named->line;
    return STATUS_OK;
}

// A word follows, as if and else do; within brackets a line's end is none.
static bool goes_on(const PythonReader *python, int depth, const char *behind) {
    PythonReader ahead = *python;
    ahead.at = behind;
    python_skip_space(&ahead, depth > 0);
    return dotted_length(ahead.at) > 0;
}

static const char *behind_expression(const PythonReader *python, int depth) {
    const char *end = behind_value(python->at);
    while (*end == '\n' || *end == '#') {
        PythonReader ahead = *python;
        ahead.at = end;
        python_skip_space(&ahead, depth > 0);
        if (*ahead.at != '"' && *ahead.at != '\'' && dotted_length(ahead.at) == 0) {
            break;
        }
        end = behind_value(ahead.at);
    }
    return end;
}

// The number, or the name of one, at python->at; -1.
static int times_at(PythonReader *python) {
    const char *at = python->at;
    const size_t digits = strspn(at, "0123456789"), length = digits > 0 ? digits : dotted_length(at);
    const ConfigNode *named =
        digits > 0 || length == 0 ? NULL : python_value_of(python, at, python_copied(python, at, length));
    const char *text = digits > 0                            ? python_copied(python, at, digits)
                       : named && named->kind == NODE_SCALAR ? named->text
                                                             : "";
    const size_t count = strlen(text);
    if (count == 0 || count > DIGITS_MOST || strspn(text, "0123456789") < count) {
        return -1;
    }
    python->at += length;
    return (int)strtol(text, NULL, 10);
}

static Status append_copies(PythonReader *python, ConfigNode *list, const ConfigNode *more, int times) {
    Arena *arena = python->source->arena;
    python->copied_count += node_count(more) * (size_t)times;
    FAIL_WITH(python->copied_count > COPIES_MOST,
              config_malformed(python->source, python->line, "lists that repeat more than %d values", COPIES_MOST));
    for (int i = 0; i < times; i++) {
        for (const ConfigNode *item = more->first; item; item = item->next) {
            config_append(arena, list, config_copy(item, arena));
        }
    }
    return STATUS_OK;
}

// A list at python->at, or the name of one; NULL.
static Status read_operand(PythonReader *python, int depth, const ConfigNode **operand) {
    const size_t length = dotted_length(python->at);
    *operand = NULL;
    if (*python->at == '[') {
        ConfigNode *list = config_node(python->source->arena, NODE_LIST, python->line);
        *operand = list;
        return read_items(python, depth + 1, list);
    }
    const ConfigNode *named =
        length > 0 ? python_value_of(python, python->at, python_copied(python, python->at, length)) : NULL;
    python->at += named ? length : 0;
    *operand = named && named->kind == NODE_LIST ? named : NULL;
    return STATUS_OK;
}

// The sign at python->at, behind white space, is taken; '\0' where another stands there.
static char take_sign(PythonReader *python, int depth, const char *signs) {
    PythonReader ahead = *python;
    python_skip_space(&ahead, depth > 0);
    const char sign = *ahead.at;
    if (sign == '\0' || !strchr(signs, sign)) {
        return '\0';
    }
    ahead.at++;
    python_skip_space(&ahead, depth > 0);
    *python = ahead;
    return sign;
}

// Another sign than those of sums and products follows.
static bool ends_value(const PythonReader *python, int depth) {
    PythonReader ahead = *python;
    python_skip_space(&ahead, depth > 0);
    return strchr(",)]}#;\n", *ahead.at) != NULL;
}

// [a] * 2 + [b] is [a, a, b]; not `plain` where what is behind the first list is known only when the script runs.
static Status read_sum(PythonReader *python, int depth, ConfigNode *sum, bool *plain) {
    const ConfigNode *operand = NULL;
    bool sums = false;
    TRY(read_operand(python, depth, &operand));
    for (*plain = true; *plain;) {
        int times = 1;
        for (; *plain && take_sign(python, depth, "*"); sums = true) {
            const int more = times_at(python);
            *plain = more >= 0 && (int64_t)times * more < COPIES_MOST;
            times *= *plain ? more : 1;
        }
        TRY(append_copies(python, sum, operand, times));
        if (!*plain || !take_sign(python, depth, "+")) {
            break;
        }
        sums = true;
        TRY(read_operand(python, depth, &operand));
        *plain = operand != NULL;
    }
    *plain = *plain && (!sums || ends_value(python, depth));
    return STATUS_OK;
}

// (a, b) is a list, (a) is a; not `plain` where the brackets are of a longer expression.
static Status read_tuple(PythonReader *python, int depth, ConfigNode **value, bool *plain) {
    ConfigNode *list = *value;
    TRY(read_items(python, depth + 1, list));
    const char *last = python->at - 1;
    while (isspace((unsigned char)last[-1])) {
        last--;
    }
    *plain = ends_value(python, depth);
    *value = list->first && !list->first->next && last[-1] != ',' ? list->first : list;
    return STATUS_OK;
}

Status python_read_value(PythonReader *python, int depth, ConfigNode **value) {
    const PythonReader before = *python;
    const char *from = python->at, *end = behind_expression(python, depth);
    const size_t name = dotted_length(from);
    FAIL_WITH(depth == CONFIG_MAX_DEPTH, config_malformed(python->source, python->line, "nested too deep"));
    const bool branches =
        strchr("([{", from[name]) && from[name] && goes_on(python, depth, behind_brackets(from + name));
    const bool is_call = name > 0 && from[name] == '(' && !branches, is_dict = *from == '{' && !branches,
               is_list = *from == '[' && !branches, is_tuple = *from == '(' && !branches;
    *value = config_node(python->source->arena,
                         is_call || is_dict    ? NODE_MAP
                         : is_list || is_tuple ? NODE_LIST
                                               : NODE_SCALAR,
                         python->line);
    const bool joins = is_dict || (is_call && name == strlen("dict") && strncmp(from, "dict", name) == 0);
    (*value)->of_run = is_call;
    if (is_call) {
        config_append(
            python->source->arena, *value,
            config_scalar(python->source->arena, "_target_", python_copied(python, from, name), python->line));
        python->at += name;
    }
    if (is_call || is_dict || is_list || is_tuple) {
        bool plain = true;
        TRY(is_list    ? read_sum(python, depth, *value, &plain)
            : is_tuple ? read_tuple(python, depth, value, &plain)
                       : read_items(python, depth + 1, *value));
        if (plain && (!joins || ends_value(python, depth))) {  // {...} | others is known when the script runs
            return STATUS_OK;
        }
        python->at = before.at;
        python->line = before.line;
        *value = config_node(python->source->arena, NODE_SCALAR, python->line);
    }
    take_text(python, from, end, *value);
    python_go_to(python, end);
    if (name == strlen((*value)->text)) {
        TRY(replace_name(python, from, value));
        python_take_default(python, *value);
    }
    return STATUS_OK;
}

Status python_read_from(PythonReader *python, const char *at, ConfigNode **value) {
    python->at = at;
    python_skip_space(python, false);
    return python_read_value(python, 0, value);
}

bool python_is_call_of(const char *at, const char *name) {
    const size_t length = strlen(name);
    return dotted_length(at) == length && strncmp(at, name, length) == 0 && at[length] == '(';
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
Status python_put(PythonReader *python, ConfigNode *root, const char *path, const ConfigNode *value, int line) {
    Arena *arena = python->source->arena;
    ConfigNode *map = root;
    for (int depth = 0;; depth++) {
        const size_t length = strcspn(path, ".");
        const char *key = python_copied(python, path, length);
        ConfigNode *child = config_child(map, key);
        FAIL_WITH(depth == CONFIG_MAX_DEPTH, config_malformed(python->source, line, "a name of too many words"));
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
