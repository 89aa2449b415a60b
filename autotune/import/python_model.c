// What a script of one's own says of its model (python_model.h), by the words of its calls: LoraConfig(...),
// AutoModelForCausalLM.from_pretrained(...) and the like, SFTTrainer("model", ...). Nothing is followed: a call that
// stands in a branch is as good as any other.

#include "autotune/import/python_model.h"

#include <ctype.h>
#include <string.h>

#include "sim/frameworks/import_python.h"

typedef struct Calls {
    const char *adapter, *load, *fed, *wrapped;  // the first of each; NULL
    int adapters, loads;
    int adapter_line, load_line, fed_line, wrapped_line;
} Calls;

static bool ends_with(const char *at, size_t length, const char *end) {
    const size_t own = strlen(end);
    return length >= own && strncmp(at + length - own, end, own) == 0;
}

// The last word of a.b.c.
static bool is_last_word(const char *at, size_t length, const char *word) {
    const size_t own = strlen(word);
    return ends_with(at, length, word) && (length == own || at[length - own - 1] == '.');
}

static void note(const char *at, size_t length, int line, Calls *calls) {
    static const char *const loads[] = {"ForCausalLM.from_pretrained", "ForImageTextToText.from_pretrained"};
    if (is_last_word(at, length, "LoraConfig")) {
        calls->adapter = calls->adapters++ == 0 ? at : calls->adapter;
        calls->adapter_line = calls->adapter == at ? line : calls->adapter_line;
    } else if (ends_with(at, length, loads[0]) || ends_with(at, length, loads[1])) {
        calls->load = calls->loads++ == 0 ? at : calls->load;
        calls->load_line = calls->load == at ? line : calls->load_line;
    } else if (!calls->fed && is_last_word(at, length, "SFTTrainer")) {
        calls->fed = at;
        calls->fed_line = line;
    } else if (!calls->wrapped && is_last_word(at, length, "get_peft_model")) {
        calls->wrapped = at;
        calls->wrapped_line = line;
    }
}

// Definitions are no calls, nor is what stands in strings and comments.
static void find_calls(const char *text, Calls *calls) {
    bool defines = false;
    int line = 1;
    for (const char *at = text; *at;) {
        const size_t length = dotted_length(at);
        const char *end = *at == '"' || *at == '\'' ? behind_string(at)
                          : *at == '#'              ? at + strcspn(at, "\n")
                          : length > 0              ? at + length
                                                    : at + 1;
        if (length > 0) {
            if (at[length] == '(' && !defines) {
                note(at, length, line, calls);
            }
            defines = (length == 3 && strncmp(at, "def", 3) == 0) || (length == 5 && strncmp(at, "class", 5) == 0);
        }
        for (; at < end; at++) {
            line += *at == '\n';
        }
        while (length == 0 && isalnum((unsigned char)at[-1]) && isalnum((unsigned char)*at)) {
            at++;  // a number's letters
        }
    }
}

// The named arguments of the call, below `above`; torch_dtype is the older name of dtype.
static Status put_arguments(PythonReader *python, ConfigNode *root, const ConfigNode *call, const char *above) {
    Arena *arena = python->source->arena;
    for (ConfigNode *child = call->first; child; child = child->next) {
        if (!child->key || child->key[0] == '_') {
            continue;
        }
        const bool is_dtype = strcmp(child->key, "torch_dtype") == 0 || strcmp(child->key, "dtype") == 0;
        TRY(python_put(python, root, arena_format(arena, "%s.%s", above, is_dtype ? "dtype" : child->key), child,
                       child->line));
    }
    return config_child(root, above)
               ? STATUS_OK
               : python_put(python, root, above, config_node(arena, NODE_MAP, call->line), call->line);
}

// Those of **name too.
static Status put_all(PythonReader *python, ConfigNode *root, ConfigNode *call, const char *at, const char *above) {
    const ConfigNode *unnamed = config_child(call, "_args_");
    for (const ConfigNode *item = unnamed ? unnamed->first : NULL; item; item = item->next) {
        const char *text = python_item_text(item);
        if (strncmp(text, "**", 2) == 0) {
            python_take_more(python, at, call, text, item->line);
        }
    }
    return put_arguments(python, root, call, above);
}

// Places of names go forward, so those of each call are asked for anew.
static Status read_call(PythonReader *python, const char *at, int line, ConfigNode **call) {
    python->line = line;
    python->names = python_names(python->source->text, python->source->arena);
    return python_read_from(python, at, call);
}

// Of what reads as one: "org/name".
static Status put_name(PythonReader *python, ConfigNode *root, const ConfigNode *name, int line) {
    static const char key[] = "MODEL";
    const bool is_name =
        name && name->kind == NODE_SCALAR && !name->of_run && strchr(name->text, '/') && !strchr(name->text, ' ');
    return !is_name || config_child(root, key) ? STATUS_OK : python_put(python, root, key, name, line);
}

static const ConfigNode *first_argument(const ConfigNode *call, const char *name) {
    const ConfigNode *unnamed = config_child(call, "_args_");
    return unnamed ? unnamed->first : config_child(call, name);
}

static Status take_load(PythonReader *python, ConfigNode *root, const Calls *calls) {
    ConfigNode *call = NULL;
    TRY(read_call(python, calls->load, calls->load_line, &call));
    if (call->kind != NODE_MAP) {
        return STATUS_OK;
    }
    TRY(put_name(python, root, first_argument(call, "pretrained_model_name_or_path"), calls->load_line));
    if (config_child(root, "model_arguments")) {
        return STATUS_OK;
    }
    return put_all(python, root, call, calls->load, "model_arguments");
}

// Of SFTTrainer("model", ...), which loads that one itself.
static Status take_fed(PythonReader *python, ConfigNode *root, const Calls *calls) {
    ConfigNode *call = NULL;
    TRY(read_call(python, calls->fed, calls->fed_line, &call));
    return call->kind == NODE_MAP ? put_name(python, root, first_argument(call, "model"), calls->fed_line) : STATUS_OK;
}

static Status put_open(PythonReader *python, ConfigNode *root, const char *key, const char *text, int line) {
    ConfigNode *open = config_scalar(python->source->arena, key, text, line);
    open->of_run = true;
    return python_put(python, root, key, open, line);
}

// Adapters that are made elsewhere, or are no LoRA.
static Status take_other_adapters(PythonReader *python, ConfigNode *root, const Calls *calls) {
    ConfigNode *call = NULL;
    if (calls->wrapped) {
        return put_open(python, root, "peft_config", "what get_peft_model() adds", calls->wrapped_line);
    }
    TRY(read_call(python, calls->fed, calls->fed_line, &call));
    const ConfigNode *given = call->kind == NODE_MAP ? config_child(call, "peft_config") : NULL;
    return given && (given->kind != NODE_SCALAR || given->text[0])
               ? put_open(python, root, "peft_config", "the peft_config that is given", given->line)
               : STATUS_OK;
}

static Status take_adapter(PythonReader *python, ConfigNode *root, const Calls *calls) {
    ConfigNode *call = NULL;
    TRY(read_call(python, calls->adapter, calls->adapter_line, &call));
    return call->kind == NODE_MAP ? put_all(python, root, call, calls->adapter, "peft_config") : STATUS_OK;
}

// Which of several it is only the running script knows.
static Status put_several(PythonReader *python, ConfigNode *root, const char *key, int line) {
    return python_put(python, root, key, config_scalar(python->source->arena, key, "several", line), line);
}

Status python_take_model(const PythonReader *python, ConfigNode *root) {
    PythonReader reader = *python;
    Calls calls = {0};
    find_calls(reader.source->text, &calls);
    if (calls.loads > 1 && !config_child(root, "model_arguments")) {
        TRY(put_several(&reader, root, "from_pretrained", calls.load_line));
    } else if (calls.loads == 1) {
        TRY(take_load(&reader, root, &calls));
    }
    if (calls.fed) {
        TRY(take_fed(&reader, root, &calls));
    }
    if (calls.adapters > 1 && !config_child(root, "peft_config")) {
        return put_several(&reader, root, "peft_config", calls.adapter_line);
    }
    if (calls.adapters == 1 && !config_child(root, "peft_config")) {
        TRY(take_adapter(&reader, root, &calls));
    }
    if (calls.adapters == 0 && (calls.wrapped || calls.fed) && !config_child(root, "peft_config")) {
        TRY(take_other_adapters(&reader, root, &calls));
    }
    return STATUS_OK;
}
