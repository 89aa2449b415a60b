// One function of a file that has several recipes: FILE.py:NAME.

#pragma once

#include "autotune/import/config_load.h"

// NAME of "FILE.py:NAME"; NULL: the whole file is meant.
const char *python_recipe_named(const char *path);

// The text without the other functions at its top, but for those whose configuration NAME begins with: blanks, so that
// lines stay. source->followed are these and NAME.
Status python_recipe_cut(ConfigSource *source, const char *name);
