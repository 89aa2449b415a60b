// A recipe in Python as a tree: its assignments to attributes of its configuration; cfg.model.x = 8 is x in the map
// model. A call is a map of its named arguments with its name as "_target_" and the others as "_args_", as in Hydra;
// the initial configuration, cfg = base(), is the key "_base_". A configuration that is made whole, as by return
// Trainer.Config(...) or SFTConfig(...), is its arguments; those of an Accelerator are a map of its name. Nothing is
// executed: a value that is an expression is kept as written, but for a name that the file gives one value
// (python_names.h). A file with several functions that assign,
// or with several configurations that are made whole, is several recipes, and refused.

#include <ctype.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/python_names.h"

typedef struct Python {
    const ConfigSource *source;
    const char *at;
    int line;
    const char *function, *assigning;                // the current `def`, and the one that assigned; NULL
    int whole_line, adapter_line, accelerator_line;  // where a whole configuration, a LoraConfig, an Accelerator is; 0
    ConfigNode *accelerator;                         // the Accelerator's arguments, until all is read
    Error no_accelerator;                            // why they are not read
    PythonNames *names;
    ConfigNode *values;   // of NAME = value, by place_of()
    bool naming;          // such a value is read, whose own names stay
    size_t copied_count;  // nodes, for names
} Python;

enum { COPIES_MOST = 1 << 18 };

static char *copied(const Python *python, const char *from, size_t length) {
    return arena_format(python->source->arena, "%.*s", (int)length, from);
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

// "key": in a dict, which is then consumed; NULL.
static const char *dict_key(Python *python) {
    const char *end = *python->at == '"' || *python->at == '\'' ? behind_string(python->at) : python->at;
    const char *sign = end + strspn(end, " ");
    if (end - python->at < 2 || *sign != ':') {
        return NULL;
    }
    const char *key = copied(python, python->at + 1, (size_t)(end - python->at) - 2);
    python->at = sign + 1;
    skip_space(python, true);
    return key;
}

// The text of an item as it stands, of **name and name; "..." for what is no word.
static const char *item_text(const ConfigNode *item) {
    return item->kind == NODE_SCALAR ? item->text : "...";
}

static void add_unnamed(Python *python, ConfigNode *call, ConfigNode *item) {
    ConfigNode *list = config_child(call, "_args_");
    if (!list) {
        list = config_node(python->source->arena, NODE_LIST, item->line);
        list->key = "_args_";
        config_append(python->source->arena, call, list);
    }
    config_append(python->source->arena, list, item);
}

// [a, b] and (a, b); name(a, key=b); {"key": a}.
static Status read_items(Python *python, int depth, ConfigNode *parent) {
    const bool dict = *python->at == '{';
    const char end = *python->at == '[' ? ']' : dict ? '}' : ')';
    for (python->at++;;) {
        skip_space(python, true);
        if (*python->at == end || *python->at == '\0') {
            python->at += *python->at == end;
            return STATUS_OK;
        }
        const size_t name = parent->kind == NODE_MAP && !dict ? dotted_length(python->at) : 0;
        const char *behind = python->at + name + strspn(python->at + name, " ");
        const int line = python->line;
        const char *key = name && behind[0] == '=' && behind[1] != '=' ? copied(python, python->at, name) : NULL;
        ConfigNode *item = NULL;
        if (key) {
            python->at = behind + 1;
            skip_space(python, false);
        }
        key = dict ? dict_key(python) : key;
        TRY(read_value(python, depth, &item));
        if (key || parent->kind == NODE_LIST) {
            item->key = key;
            item->line = line;
            config_append(python->source->arena, parent, item);
        } else if (!dict || strncmp(item_text(item), "**", 2) == 0) {
            add_unnamed(python, parent, item);
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
    return strcmp(text, "None") == 0 ? "" : text;
}

static size_t node_count(const ConfigNode *node) {
    size_t count = 1;
    for (const ConfigNode *child = node->first; child; child = child->next) {
        count += node_count(child);
    }
    return count;
}

static const char *place_of(const Python *python, const char *at) {
    return arena_format(python->source->arena, "%td", at - python->source->text);
}

// What the file gave a name at that place; NULL.
static const ConfigNode *value_of(const Python *python, const char *at, const char *name) {
    const char *set = python_set_at(python->names, at, name);
    return set ? config_child(python->values, place_of(python, set)) : NULL;
}

// What the file gave a name that stands alone.
static Status replace_name(Python *python, const char *at, ConfigNode **value) {
    const ConfigNode *named = python->naming || (*value)->text[0] == '\0' ? NULL : value_of(python, at, (*value)->text);
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
static bool goes_on(const Python *python, int depth, const char *behind) {
    Python ahead = *python;
    ahead.at = behind;
    skip_space(&ahead, depth > 0);
    return dotted_length(ahead.at) > 0;
}

static const char *behind_expression(const Python *python, int depth) {
    const char *end = behind_value(python->at);
    while ((*end == '\n' || *end == '#') && goes_on(python, depth, end)) {
        Python ahead = *python;
        ahead.at = end;
        skip_space(&ahead, depth > 0);
        end = behind_value(ahead.at);
    }
    return end;
}

static Status read_value(Python *python, int depth, ConfigNode **value) {
    const char *from = python->at, *end = behind_expression(python, depth);
    const size_t name = dotted_length(from);
    FAIL_WITH(depth == CONFIG_MAX_DEPTH, config_malformed(python->source, python->line, "nested too deep"));
    const bool branches =
        strchr("([{", from[name]) && from[name] && goes_on(python, depth, behind_brackets(from + name));
    const bool is_call = name > 0 && from[name] == '(' && !branches, is_dict = *from == '{' && !branches,
               is_list = *from == '[' && !branches;
    *value = config_node(python->source->arena,
                         is_call || is_dict ? NODE_MAP
                         : is_list          ? NODE_LIST
                                            : NODE_SCALAR,
                         python->line);
    if (is_call) {
        config_append(python->source->arena, *value,
                      config_scalar(python->source->arena, "_target_", copied(python, from, name), python->line));
        python->at += name;
        return read_items(python, depth + 1, *value);
    }
    if (is_dict || is_list) {
        return read_items(python, depth + 1, *value);
    }
    (*value)->text = plain_text(python, from, end);
    go_to(python, end);
    return name == strlen((*value)->text) ? replace_name(python, from, value) : STATUS_OK;
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

static bool is_config(const char *name, size_t length) {
    return (length == 3 && strncmp(name, "cfg", 3) == 0) || (length == 6 && strncmp(name, "config", 6) == 0);
}

static Status claim(Python *python, int line) {
    FAIL_WITH(python->assigning && python->assigning != python->function,
              config_malformed(python->source, line,
                               "%s() and %s() both set a configuration: a file of one recipe is read",
                               python->assigning, python->function ? python->function : "the file"));
    python->assigning = python->function;
    return STATUS_OK;
}

static Status take_paths(Python *python, ConfigNode *root, const char **paths, int count, int line) {
    ConfigNode *value = NULL;
    TRY(claim(python, line));
    TRY(read_value(python, 0, &value));
    for (int i = 0; i < count; i++) {
        TRY(put(python, root, paths[i], value, line));
    }
    return STATUS_OK;
}

// ---- configurations that are made whole

// Classes whose arguments are one; the last word of a call, "transformers.TrainingArguments".
static const char *const wholes[] = {"TrainingArguments", "SFTConfig"};
static const char accelerator[] = "Accelerator";  // that a script makes

static bool is_call_to(const char *at, const char *class) {
    const size_t length = dotted_length(at), own = strlen(class);
    return length >= own && at[length] == '(' && strncmp(at + length - own, class, own) == 0 &&
           (length == own || at[length - own - 1] == '.');
}

static const char *whole_called(const char *at) {
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++) {
        if (is_call_to(at, wholes[i])) {
            return wholes[i];
        }
    }
    return NULL;
}

static bool is_call_of(const char *at, const char *name) {
    const size_t length = strlen(name);
    return dotted_length(at) == length && strncmp(at, name, length) == 0 && at[length] == '(';
}

// **name within: what it holds would be left out.
static Status refuse_unpacked(const Python *python, const ConfigNode *node) {
    const bool all = node->key && strcmp(node->key, "_args_") == 0;
    for (const ConfigNode *child = node->first; child; child = child->next) {
        FAIL_WITH(all && strncmp(item_text(child), "**", 2) == 0,
                  config_malformed(python->source, child->line, "%s is not read: put the arguments that it holds here",
                                   child->text));
        TRY(refuse_unpacked(python, child));
    }
    return STATUS_OK;
}

// Arguments without a name: the Trainer's first is output_dir, and **more of the function itself is its callers'.
static Status check_unnamed(Python *python, const char *at, const ConfigNode *call) {
    const ConfigNode *unnamed = config_child(call, "_args_");
    bool named = false;
    for (const ConfigNode *child = call->first; child; child = child->next) {
        named |= child->key && child->key[0] != '_';
        TRY(child == unnamed ? STATUS_OK : refuse_unpacked(python, child));
    }
    bool takes_first = whole_called(at) != NULL;
    for (const ConfigNode *item = unnamed ? unnamed->first : NULL; item; item = item->next) {
        const char *text = item_text(item);
        const bool stars = text[0] == '*', of_callers = named && strncmp(text, "**", 2) == 0;
        if (!(of_callers && python_takes_more(python->names, at, text + 2)) && (stars || !takes_first)) {
            const int length = (int)dotted_length(at);
            return config_malformed(python->source, item->line,
                                    "%s in %.*s%s is not read: put the arguments that it holds here, with their names",
                                    text, length, at, length > 0 ? "()" : "{}");
        }
        takes_first &= stars;
    }
    return STATUS_OK;
}

// The call at python->at, whose arguments all have names.
static Status read_call(Python *python, ConfigNode **call) {
    const char *at = python->at;
    const int line = python->line, length = (int)dotted_length(at);
    TRY(read_value(python, 0, call));
    FAIL_WITH((*call)->kind != NODE_MAP,
              config_malformed(python->source, line,
                               "%.*s%s is one of several, which is known when the script runs: put one of them there",
                               length, at, length > 0 ? "()" : "{}"));
    return check_unnamed(python, at, *call);
}

// The call at python->at: its named arguments below `above`.
static Status take_arguments(Python *python, ConfigNode *root, const char *above) {
    ConfigNode *value = NULL;
    const int line = python->line;
    TRY(read_call(python, &value));
    for (const ConfigNode *child = value->first; child; child = child->next) {
        if (child->key && child->key[0] != '_') {
            const char *path = arena_format(python->source->arena, "%s%s%s", above, above[0] ? "." : "", child->key);
            TRY(put(python, root, path, child, child->line ? child->line : line));
        }
    }
    return STATUS_OK;
}

// Both branches of an if would be read as one.
static Status only_one(Python *python, int *other, const char *what) {
    FAIL_WITH(*other > 0, config_malformed(python->source, python->line,
                                           "another %s, beside that of line %d: a file of one is read", what, *other));
    *other = python->line;
    return STATUS_OK;
}

static Status claim_whole(Python *python) {
    TRY(claim(python, python->line));
    return only_one(python, &python->whole_line, "configuration");
}

static Status take_whole(Python *python, ConfigNode *root, const char *name) {
    const int line = python->line;
    TRY(claim_whole(python));
    TRY(take_arguments(python, root, ""));
    return put(python, root, name, config_scalar(python->source->arena, name, "true", line), line);
}

// The object itself, and not an attribute of one: Accelerator().local_process_index.
static bool makes_accelerator(const char *at) {
    return is_call_to(at, accelerator) && *behind_brackets(at + dotted_length(at)) != '.';
}

static Status read_accelerator(Python *python) {
    TRY(only_one(python, &python->accelerator_line, accelerator));
    return read_call(python, &python->accelerator);
}

// A script of the Trainer may have several, which nobody asks for: what is wrong is said by place_accelerator().
static void take_accelerator(Python *python) {
    const ConfigSource *source = python->source;
    Error wrong = {0};
    ConfigSource quiet = *source;
    quiet.error = &wrong;
    python->source = &quiet;
    const Status status = read_accelerator(python);
    python->source = source;
    if (status != STATUS_OK && python->no_accelerator.status == STATUS_OK) {
        python->no_accelerator = wrong;
    }
}

// Where no whole configuration is.
static Status place_accelerator(const Python *python, ConfigNode *root) {
    if (python->accelerator_line == 0 || python->whole_line > 0) {
        return STATUS_OK;
    }
    if (python->no_accelerator.status != STATUS_OK) {
        *python->source->error = python->no_accelerator;
        return python->no_accelerator.status;
    }
    ConfigNode *call = python->accelerator;
    call->key = accelerator;
    call->line = python->accelerator_line;
    config_append(python->source->arena, root, call);
    return STATUS_OK;
}

// Is it such an object that stands here?
static Status take_object(Python *python, ConfigNode *root, bool *taken) {
    const char *whole = whole_called(python->at);
    *taken = whole || makes_accelerator(python->at);
    if (whole) {
        return take_whole(python, root, whole);
    }
    if (*taken) {
        take_accelerator(python);
    }
    return STATUS_OK;
}

static Status take_return(Python *python, ConfigNode *root) {
    bool taken = false;
    TRY(take_object(python, root, &taken));
    if (taken) {
        return STATUS_OK;
    }
    if (is_call_of(python->at, "Trainer.Config")) {
        TRY(claim_whole(python));
        return take_arguments(python, root, "");
    }
    if (!is_call_of(python->at, "LoraConfig")) {
        return STATUS_OK;
    }
    TRY(only_one(python, &python->adapter_line, "LoraConfig"));
    return take_arguments(python, root, "peft_config");
}

// Those that a model is loaded with: arguments = {...}, arguments["key"] = value, arguments.update(key=value).
static Status take_model_arguments(Python *python, ConfigNode *root, bool *taken) {
    static const char name[] = "arguments", update[] = "arguments.update", model[] = "model_arguments";
    const char *at = python->at;
    *taken = true;
    if (is_call_of(at, update)) {
        return take_arguments(python, root, model);
    }
    if (strncmp(at, "arguments[\"", strlen("arguments[\"")) == 0) {
        const char *key = at + strlen("arguments[\""), *end = key + strcspn(key, "\"\n");
        const char *path = arena_format(python->source->arena, "%s.%.*s", model, (int)(end - key), key);
        const char *sign = end + strspn(end, "\"] ");
        if (*sign == '=' && sign[1] != '=') {
            ConfigNode *value = NULL;
            const int line = python->line;
            python->at = sign + 1;
            skip_space(python, false);
            TRY(read_value(python, 0, &value));
            return put(python, root, path, value, line);
        }
    }
    const size_t length = strlen(name);
    *taken = dotted_length(at) == length && strncmp(at, name, length) == 0;
    if (!*taken) {
        return STATUS_OK;
    }
    const char *sign = at + length + strspn(at + length, " ");
    *taken = *sign == '=' && sign[1 + strspn(sign + 1, " ")] == '{';
    if (*taken) {
        python->at = sign + 1;
        skip_space(python, false);
        TRY(take_arguments(python, root, model));
    }
    return STATUS_OK;
}

// What NAME = value, self.name: Type = value and NAME = OTHER = value give; `at` where it is none of them.
static const char *value_given(const char *at) {
    for (;;) {
        const size_t length = dotted_length(at);
        const char *sign = at + length + strspn(at + length, " ");
        sign = length > 0 && *sign == ':' ? behind_value(sign + 1) : sign;
        if (length == 0 || sign[0] != '=' || sign[1] == '=') {
            return at;
        }
        at = sign + 1 + strspn(sign + 1, " \t");
    }
}

// NAME = value.
static Status take_name(Python *python) {
    const size_t length = dotted_length(python->at);
    const char *sign = python->at + length + strspn(python->at + length, " ");
    if (length == 0 || memchr(python->at, '.', length) || sign[0] != '=' || sign[1] == '=') {
        return STATUS_OK;
    }
    const char *place = place_of(python, python->at);
    ConfigNode *value = NULL;
    python->at = sign + 1;
    skip_space(python, false);
    python->naming = true;
    TRY(read_value(python, 0, &value));
    python->naming = false;
    value->key = place;
    config_append(python->source->arena, python->values, value);
    return STATUS_OK;
}

static Status take_other(Python *python, ConfigNode *root) {
    bool taken = false;
    if (strncmp(python->at, "return ", 7) == 0) {
        python->at += 7;
        return take_return(python, root);
    }
    TRY(take_model_arguments(python, root, &taken));
    if (taken) {
        return STATUS_OK;
    }
    const char *given = value_given(python->at);
    if (given > python->at && (whole_called(given) || makes_accelerator(given))) {
        go_to(python, given);
        return take_object(python, root, &taken);
    }
    return take_name(python);
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
    bool taken = false;  // config = SFTConfig(...)
    if (count > 0 && strcmp(paths[count - 1], "_base_") == 0) {
        TRY(take_object(python, root, &taken));
    }
    if (!taken) {
        TRY(count == 0 ? take_other(python, root) : take_paths(python, root, paths, count, line));
    }
    while (*python->at && *python->at != '\n') {
        go_to(python, *python->at == '"' || *python->at == '\'' ? behind_string(python->at) : python->at + 1);
    }
    return STATUS_OK;
}

// Constants of the file that say what no argument does.
static void add_constants(const Python *python, ConfigNode *root) {
    static const char *const constants[] = {"MODEL", "SEQUENCE_LENGTH", "MICRO_BATCH"};
    bool whole = config_child(root, accelerator) != NULL;
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++) {
        whole |= config_child(root, wholes[i]) != NULL;
    }
    for (size_t i = 0; whole && i < sizeof constants / sizeof constants[0]; i++) {
        const ConfigNode *value = value_of(python, NULL, constants[i]);
        if (value && value->kind == NODE_SCALAR && !config_child(root, constants[i])) {
            ConfigNode *copy = config_copy(value, python->source->arena);
            copy->key = constants[i];
            config_append(python->source->arena, root, copy);
        }
    }
}

Status config_python(const ConfigSource *source, ConfigNode **root) {
    Python python = {.source = source, .at = source->text, .line = 1};
    *root = config_node(source->arena, NODE_MAP, 1);
    python.names = python_names(source->text, source->arena);
    python.values = config_node(source->arena, NODE_MAP, 1);
    for (skip_space(&python, true); *python.at; skip_space(&python, true)) {
        if (strncmp(python.at, "def ", 4) == 0) {
            python.function = copied(&python, python.at + 4, dotted_length(python.at + 4));
        }
        TRY(read_statement(&python, *root));
    }
    TRY(place_accelerator(&python, *root));
    add_constants(&python, *root);
    return STATUS_OK;
}
