// What a script's own options are unless it is given others: add_argument("--name", default=...) of argparse, fields of
// a dataclass, parameters of a function.

#pragma once

#include "autotune/import/python_values.h"

typedef struct PythonOptions {
    const ConfigNode *given, *parameters;  // by name; used = several have it
} PythonOptions;

PythonOptions *python_options(const PythonReader *python);

// A value that only the running script knows, as args.name and name, becomes that default, where the script has one.
void python_take_default(const PythonReader *python, ConfigNode *value);
