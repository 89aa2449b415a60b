// Hugging Face config.json of model_type llama -> ModelSpec. Private to sim/model.

#pragma once

#include "sim/model/model.h"

// Unknown keys are ignored (config.json is another program's file); what is read is checked field by field.
Status model_config_load(const char *path, Arena *arena, ModelSpec *model, Error *error);
