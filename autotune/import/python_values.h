// Values of a Python file as a tree: scalars as they are written, lists, dicts and calls. A call is a map of its named
// arguments with its name as "_target_" and the others as "_args_", as in Hydra; so is what a dict has without a word
// as its key. Nothing is executed: a name that the file gives one value is that value (python_names.h), and sums and
// multiples of lists are the lists that they make.

#pragma once

#include "autotune/import/config_load.h"
#include "autotune/import/python_names.h"

struct PythonOptions;

typedef struct PythonReader {
    const ConfigSource *source;
    const char *at;
    int line;
    PythonNames *names;
    ConfigNode *values;                   // of NAME = value, by python_place()
    bool naming;                          // such a value is read, whose own names stay
    size_t copied_count;                  // nodes, for names
    const struct PythonOptions *options;  // NULL: not looked for
} PythonReader;

char *python_copied(const PythonReader *python, const char *from, size_t length);
void python_skip_space(PythonReader *python, bool lines);
void python_go_to(PythonReader *python, const char *end);
Status python_read_value(PythonReader *python, int depth, ConfigNode **value);  // at python->at, which moves behind it

Status python_read_from(PythonReader *python, const char *at, ConfigNode **value);  // at that place

bool python_is_call_of(const char *at, const char *name);

// Under that path, "model.x"; the previous value is replaced, as it is when the script runs.
Status python_put(PythonReader *python, ConfigNode *root, const char *path, const ConfigNode *value, int line);

// The text of an item as it stands, of **name and name; "..." for what is no word.
const char *python_item_text(const ConfigNode *item);

// Where the value of name["key"] = value is, and its key; NULL where none stands there.
const char *python_item_set(const PythonReader *python, const char *name, const char **key);

const char *python_place(const PythonReader *python, const char *at);
// What the file gave a name at that place; NULL.
const ConfigNode *python_value_of(const PythonReader *python, const char *at, const char *name);
// Adds to the call at that place what the dict of **name holds; of what is no dict there, that there is more.
void python_take_more(const PythonReader *python, const char *at, ConfigNode *call, const char *text, int line);
