// The model that a script loads, and its adapters.

#pragma once

#include "autotune/import/python_values.h"

// Wherever they stand: the LoraConfig is put under "peft_config", what the model is loaded with under
// "model_arguments", its name as "MODEL", each unless it is there already. Of several, "peft_config" and
// "from_pretrained" are words.
Status python_take_model(const PythonReader *python, ConfigNode *root);
