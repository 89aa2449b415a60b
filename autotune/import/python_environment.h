// Variables of the environment that a script sets.

#pragma once

#include "autotune/import/python_values.h"

// The statement at python->at, where it sets one: a launcher's is put under "environ".
Status python_take_environment(PythonReader *python, ConfigNode *root, bool *taken);
