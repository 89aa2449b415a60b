// A recipe in Python as a tree: its assignments to attributes of its configuration; cfg.model.x = 8 is x in the map
// model; the initial configuration, cfg = base(), is the key "_base_". A configuration that is made whole, as by return
// Trainer.Config(...) or SFTConfig(...), is its arguments; those of an Accelerator are a map of its name. A file with
// several functions that assign, or with several configurations that are made whole, is several recipes, and refused.

#include <ctype.h>
#include <string.h>

#include "autotune/import/python_environment.h"
#include "autotune/import/python_model.h"
#include "autotune/import/python_options.h"
#include "sim/base/text.h"

typedef struct Python {
    PythonReader in;
    const char *function, *assigning;  // the current `def`, and the one that assigned; NULL
    int whole_line, accelerator_line;  // where a whole configuration, an Accelerator is; 0
    ConfigNode *accelerator;           // the Accelerator's arguments, until all is read
    Error no_accelerator;              // why they are not read
    const char *whole_name;            // that was given a script's whole configuration; NULL
    ConfigNode *set;                   // of cfg.a.b = value, in order: they count where no script is
    Error several;                     // why they are not read
} Python;

static bool is_config(const char *name, size_t length) {
    return (length == 3 && strncmp(name, "cfg", 3) == 0) || (length == 6 && strncmp(name, "config", 6) == 0);
}

static Status claim(Python *python, int line) {
    FAIL_WITH(python->assigning && python->assigning != python->function && !python->in.source->followed,
              config_malformed(python->in.source, line,
                               "%s() and %s() both set a configuration: a file of one recipe is read, of several the "
                               "one that is named: %s:%s",
                               python->assigning, python->function ? python->function : "the file",
                               python->in.source->path, python->function ? python->function : python->assigning));
    python->assigning = python->function;
    return STATUS_OK;
}

// What is wrong with a recipe is nothing to a script, whose functions may well have something of their own that they
// call config: it is said by place_set().
static void claim_quietly(Python *python, int line) {
    const ConfigSource *source = python->in.source;
    Error wrong = {0};
    ConfigSource quiet = *source;
    quiet.error = &wrong;
    python->in.source = &quiet;
    const Status status = claim(python, line);
    python->in.source = source;
    if (status != STATUS_OK && python->several.status == STATUS_OK) {
        python->several = wrong;
    }
}

static Status take_paths(Python *python, const char **paths, int count, int line) {
    ConfigNode *value = NULL;
    claim_quietly(python, line);
    TRY(python_read_value(&python->in, 0, &value));
    const ConfigNode *class = value->kind == NODE_MAP ? config_child(value, "_target_") : NULL;
    if (class && python->in.source->followed && config_child(python->in.source->followed, class->text)) {
        return STATUS_OK;  // config = base(), which was read before
    }
    for (int i = 0; i < count; i++) {
        ConfigNode *set = config_copy(value, python->in.source->arena);
        set->key = paths[i];
        set->line = line;
        config_append(python->in.source->arena, python->set, set);
    }
    return STATUS_OK;
}

static Status place_set(Python *python, ConfigNode *root) {
    if (python->several.status != STATUS_OK) {
        *python->in.source->error = python->several;
        return python->several.status;
    }
    for (const ConfigNode *node = python->set->first; node; node = node->next) {
        TRY(python_put(&python->in, root, node->key, node, node->line));
    }
    return STATUS_OK;
}

// ---- configurations that are made whole

// Classes whose arguments are one; the last word of a call, "transformers.TrainingArguments".
static const char *const wholes[] = {"TrainingArguments", "Seq2SeqTrainingArguments",
                                     "SFTConfig",         "DPOConfig",
                                     "GRPOConfig",        "KTOConfig",
                                     "ORPOConfig",        "CPOConfig",
                                     "RLOOConfig",        "PPOConfig",
                                     "BCOConfig",         "GKDConfig",
                                     "OnlineDPOConfig",   "RewardConfig",
                                     "PRMConfig"};
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

// **name within: what it holds would be left out.
static Status refuse_unpacked(const Python *python, const ConfigNode *node) {
    const bool all = node->key && strcmp(node->key, "_args_") == 0;
    for (const ConfigNode *child = node->first; child; child = child->next) {
        FAIL_WITH(all && strncmp(python_item_text(child), "**", 2) == 0,
                  config_malformed(python->in.source, child->line,
                                   "%s is not read: put the arguments that it holds here", child->text));
        TRY(refuse_unpacked(python, child));
    }
    return STATUS_OK;
}

// Arguments without a name: the Trainer's first is output_dir, and **more of the function itself is its callers'.
static Status check_unnamed(Python *python, const char *at, ConfigNode *call) {
    const ConfigNode *unnamed = config_child(call, "_args_");
    bool named = false;
    for (const ConfigNode *child = call->first; child; child = child->next) {
        named |= child->key && child->key[0] != '_';
        TRY(child == unnamed ? STATUS_OK : refuse_unpacked(python, child));
    }
    bool takes_first = whole_called(at) != NULL;
    for (const ConfigNode *item = unnamed ? unnamed->first : NULL; item; item = item->next) {
        const char *text = python_item_text(item);
        if (strncmp(text, "**", 2) == 0 && is_call_to(at, accelerator)) {
            python_take_more(&python->in, at, call, text, call->line);
            continue;
        }
        const bool stars = text[0] == '*', of_callers = named && strncmp(text, "**", 2) == 0;
        if (!(of_callers && python_takes_more(python->in.names, at, text + 2)) && (stars || !takes_first)) {
            const int length = (int)dotted_length(at);
            return config_malformed(python->in.source, item->line, "%s in %.*s%s is not read: %s", text, length, at,
                                    length > 0 ? "()" : "{}",
                                    stars ? "put the arguments that it holds here, with their names"
                                          : "give it the name of its argument");
        }
        takes_first &= stars;
    }
    return STATUS_OK;
}

// The call at python->in.at, whose arguments all have names.
static Status read_call(Python *python, ConfigNode **call) {
    const char *at = python->in.at;
    const int line = python->in.line, length = (int)dotted_length(at);
    TRY(python_read_value(&python->in, 0, call));
    FAIL_WITH((*call)->kind != NODE_MAP,
              config_malformed(python->in.source, line,
                               "%.*s%s is one of several, which is known when the script runs: put one of them there",
                               length, at, length > 0 ? "()" : "{}"));
    return check_unnamed(python, at, *call);
}

// The call at python->in.at: its named arguments below `above`.
static Status take_arguments(Python *python, ConfigNode *root, const char *above) {
    ConfigNode *value = NULL;
    const int line = python->in.line;
    TRY(read_call(python, &value));
    for (const ConfigNode *child = value->first; child; child = child->next) {
        if (child->key && child->key[0] != '_') {
            const char *path = arena_format(python->in.source->arena, "%s%s%s", above, above[0] ? "." : "", child->key);
            TRY(python_put(&python->in, root, path, child, child->line ? child->line : line));
        }
    }
    return STATUS_OK;
}

// Both branches of an if would be read as one.
static Status only_one(Python *python, int *other, const char *what) {
    FAIL_WITH(*other > 0, config_malformed(python->in.source, python->in.line,
                                           "another %s, beside that of line %d: a file of one is read", what, *other));
    *other = python->in.line;
    return STATUS_OK;
}

static Status take_whole(Python *python, ConfigNode *root, const char *name) {
    const int line = python->in.line;
    TRY(only_one(python, &python->whole_line, "configuration"));
    TRY(take_arguments(python, root, ""));
    return python_put(&python->in, root, name, config_scalar(python->in.source->arena, name, "true", line), line);
}

// The object itself, and not an attribute of one: Accelerator().local_process_index.
static bool makes_accelerator(const char *at) {
    return is_call_to(at, accelerator) && *behind_brackets(at + dotted_length(at)) != '.';
}

// Does each argument of the one that trains differently for it have the same value in the other?
static bool trains_as(const ConfigNode *call, const ConfigNode *other) {
    static const char *const of_no_matter[] = {"log_with",       "project_dir",     "logging_dir",
                                               "project_config", "kwargs_handlers", "rng_types"};
    enum { COUNT = sizeof of_no_matter / sizeof of_no_matter[0] };
    for (const ConfigNode *child = call->first; child; child = child->next) {
        const ConfigNode *same = config_child(other, child->key);
        if (text_index(of_no_matter, COUNT, child->key) < 0 && !(same && config_same(child, same))) {
            return false;
        }
    }
    return true;
}

// Two that only log otherwise are one.
static Status read_accelerator(Python *python) {
    ConfigNode *call = NULL;
    const PythonReader before = python->in;
    if (python->accelerator) {
        TRY(read_call(python, &call));
        if (trains_as(call, python->accelerator) && trains_as(python->accelerator, call)) {
            return STATUS_OK;
        }
        python->in.at = before.at;
        python->in.line = before.line;
    }
    TRY(only_one(python, &python->accelerator_line, accelerator));
    return read_call(python, &python->accelerator);
}

// A script of the Trainer may have several, which nobody asks for: what is wrong is said by place_accelerator().
static void take_accelerator(Python *python) {
    const ConfigSource *source = python->in.source;
    Error wrong = {0};
    ConfigSource quiet = *source;
    quiet.error = &wrong;
    python->in.source = &quiet;
    const Status status = read_accelerator(python);
    python->in.source = source;
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
        *python->in.source->error = python->no_accelerator;
        return python->no_accelerator.status;
    }
    ConfigNode *call = python->accelerator;
    call->key = accelerator;
    call->line = python->accelerator_line;
    config_append(python->in.source->arena, root, call);
    return STATUS_OK;
}

// Is it such an object that stands here?
static Status take_object(Python *python, ConfigNode *root, bool *taken) {
    const char *whole = whole_called(python->in.at);
    *taken = whole || makes_accelerator(python->in.at);
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
    if (!python_is_call_of(python->in.at, "Trainer.Config")) {
        return STATUS_OK;
    }
    TRY(claim(python, python->in.line));
    TRY(only_one(python, &python->whole_line, "configuration"));
    return take_arguments(python, root, "");
}

// Those that a model is loaded with: arguments = {...}, arguments["key"] = value, arguments.update(key=value).
static Status take_model_arguments(Python *python, ConfigNode *root, bool *taken) {
    static const char name[] = "arguments", update[] = "arguments.update", model[] = "model_arguments";
    const char *at = python->in.at;
    *taken = true;
    if (python_is_call_of(at, update)) {
        return take_arguments(python, root, model);
    }
    const char *key = NULL, *set = python_item_set(&python->in, name, &key);
    if (set) {
        ConfigNode *value = NULL;
        const int line = python->in.line;
        TRY(python_read_from(&python->in, set, &value));
        return python_put(&python->in, root, arena_format(python->in.source->arena, "%s.%s", model, key), value, line);
    }
    const size_t length = strlen(name);
    *taken = dotted_length(at) == length && strncmp(at, name, length) == 0;
    if (!*taken) {
        return STATUS_OK;
    }
    const char *sign = at + length + strspn(at + length, " ");
    *taken = *sign == '=' && sign[1 + strspn(sign + 1, " ")] == '{';
    if (*taken) {
        python->in.at = sign + 1;
        python_skip_space(&python->in, false);
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

static size_t column_of(const Python *python, const char *at) {
    size_t column = 0;
    while (at - column > python->in.source->text && at[-1 - (ptrdiff_t)column] != '\n') {
        column++;
    }
    return column;
}

// args.name = value of a whole configuration that was made before; further in than that was, it is as the script runs.
static Status take_attribute(Python *python, ConfigNode *root, bool *taken) {
    const char *at = python->in.at, *whole = python->whole_name;
    const size_t length = dotted_length(at), own = whole ? dotted_length(whole) : 0;
    const char *sign = at + length + strspn(at + length, " ");
    *taken = own > 0 && length > own + 1 && at[own] == '.' && strncmp(at, whole, own) == 0 && sign[0] == '=' &&
             sign[1] != '=';
    if (!*taken) {
        return STATUS_OK;
    }
    const char *path = python_copied(&python->in, at + own + 1, length - own - 1);
    const bool branches = column_of(python, at) > column_of(python, whole);
    const int line = python->in.line;
    ConfigNode *value = NULL;
    TRY(python_read_from(&python->in, sign + 1, &value));
    value->of_run |= branches;
    return python_put(&python->in, root, path, value, line);
}

// NAME = value.
static Status take_name(Python *python) {
    const size_t length = dotted_length(python->in.at);
    const char *sign = python->in.at + length + strspn(python->in.at + length, " ");
    if (length == 0 || memchr(python->in.at, '.', length) || sign[0] != '=' || sign[1] == '=') {
        return STATUS_OK;
    }
    const char *place = python_place(&python->in, python->in.at);
    ConfigNode *value = NULL;
    python->in.at = sign + 1;
    python_skip_space(&python->in, false);
    python->in.naming = true;
    TRY(python_read_value(&python->in, 0, &value));
    python->in.naming = false;
    value->key = place;
    config_append(python->in.source->arena, python->in.values, value);
    return STATUS_OK;
}

static Status take_other(Python *python, ConfigNode *root) {
    bool taken = false;
    if (strncmp(python->in.at, "return ", 7) == 0) {
        python->in.at += 7;
        return take_return(python, root);
    }
    TRY(take_model_arguments(python, root, &taken));
    if (!taken) {
        TRY(python_take_environment(&python->in, root, &taken));
    }
    if (taken) {
        return STATUS_OK;
    }
    TRY(take_attribute(python, root, &taken));
    if (taken) {
        return STATUS_OK;
    }
    const char *given = value_given(python->in.at);
    if (given > python->in.at && (whole_called(given) || makes_accelerator(given))) {
        python->whole_name = whole_called(given) ? python->in.at : python->whole_name;
        python_go_to(&python->in, given);
        return take_object(python, root, &taken);
    }
    return take_name(python);
}

static Status read_statement(Python *python, ConfigNode *root) {
    enum { PATHS_MOST = 8 };
    const char *paths[PATHS_MOST];
    int count = 0;
    const int line = python->in.line;
    const char *begin = python->in.at;
    while (count < PATHS_MOST && !python->whole_name) {
        const size_t length = dotted_length(python->in.at), first = strcspn(python->in.at, ".=( \t\n");
        const char *sign = python->in.at + length + strspn(python->in.at + length, " ");
        if (length == 0 || first > length || !is_config(python->in.at, first) || sign[0] != '=' || sign[1] == '=') {
            break;
        }
        paths[count++] =
            first < length ? python_copied(&python->in, python->in.at + first + 1, length - first - 1) : "_base_";
        python->in.at = sign + 1;
        python_skip_space(&python->in, false);
    }
    bool taken = false;  // config = SFTConfig(...)
    if (count > 0 && strcmp(paths[count - 1], "_base_") == 0) {
        python->whole_name = whole_called(python->in.at) ? begin : NULL;
        TRY(take_object(python, root, &taken));
    }
    if (!taken) {
        TRY(count == 0 ? take_other(python, root) : take_paths(python, paths, count, line));
    }
    while (*python->in.at && *python->in.at != '\n') {
        python_go_to(&python->in, *python->in.at == '"' || *python->in.at == '\'' ? behind_string(python->in.at)
                                                                                  : python->in.at + 1);
    }
    return STATUS_OK;
}

static bool is_script(const ConfigNode *root) {
    bool whole = config_child(root, accelerator) != NULL;
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++) {
        whole |= config_child(root, wholes[i]) != NULL;
    }
    return whole;
}

// Constants of the file that say what no argument does.
static void add_constants(const Python *python, ConfigNode *root) {
    static const char *const constants[] = {"MODEL", "SEQUENCE_LENGTH", "MICRO_BATCH"};
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        const ConfigNode *value = python_value_of(&python->in, NULL, constants[i]);
        if (value && value->kind == NODE_SCALAR && !config_child(root, constants[i])) {
            ConfigNode *copy = config_copy(value, python->in.source->arena);
            copy->key = constants[i];
            config_append(python->in.source->arena, root, copy);
        }
    }
}

// Of a script whose statements make none, the one within another call: SFTTrainer(args=SFTConfig(...)).
static Status take_nested(Python *python, ConfigNode *root) {
    bool defines = false;
    int line = 1;
    for (const char *at = python->in.source->text; *at;) {
        const size_t length = dotted_length(at);
        const char *whole = length > 0 && !defines ? whole_called(at) : NULL;
        const char *end = *at == '"' || *at == '\'' ? behind_string(at)
                          : *at == '#'              ? at + strcspn(at, "\n")
                                                    : at + (length > 0 ? length : 1);
        if (whole) {
            python->in.at = at;
            python->in.line = line;
            python->in.names = python_names(python->in.source->text, python->in.source->arena);  // go forward
            TRY(take_whole(python, root, whole));
        }
        defines = length > 0 ? length == 5 && strncmp(at, "class", 5) == 0 : defines && isspace((unsigned char)*at);
        for (; at < end; at++) {
            line += *at == '\n';
        }
    }
    return STATUS_OK;
}

// A script whose arguments are those that it is started with.
static Status note_parser(Python *python, ConfigNode *root) {
    static const char *const parsers[] = {"HfArgumentParser(", "TrlParser("};
    for (size_t i = 0; i < sizeof parsers / sizeof parsers[0]; i++) {
        if (strstr(python->in.source->text, parsers[i]) && !root->first) {
            const char *name = python_copied(&python->in, parsers[i], strlen(parsers[i]) - 1);
            config_append(python->in.source->arena, root,
                          config_scalar(python->in.source->arena, PYTHON_PARSER, name, 1));
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

Status config_python(const ConfigSource *source, ConfigNode **root) {
    Python python = {.in = {.source = source, .at = source->text, .line = 1}};
    PythonReader *in = &python.in;
    *root = config_node(source->arena, NODE_MAP, 1);
    in->names = python_names(source->text, source->arena);
    in->values = config_node(source->arena, NODE_MAP, 1);
    in->options = python_options(in);
    python.set = config_node(source->arena, NODE_LIST, 1);
    for (python_skip_space(in, true); *in->at; python_skip_space(in, true)) {
        if (strncmp(in->at, "def ", 4) == 0) {
            python.function = python_copied(in, in->at + 4, dotted_length(in->at + 4));
        }
        TRY(read_statement(&python, *root));
    }
    TRY(python.whole_line == 0 ? take_nested(&python, *root) : STATUS_OK);
    TRY(place_accelerator(&python, *root));
    if (!is_script(*root)) {
        TRY(place_set(&python, *root));
        return note_parser(&python, *root);
    }
    add_constants(&python, *root);
    return python_take_model(in, *root);
}
