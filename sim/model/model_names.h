// The common names of models that have a preset.

#pragma once

#include "sim/model/model.h"

// Is "meta-llama/Llama-3.1-8B-Instruct", or "Llama-3.1-8B", the preset? Owner, letter case and the words of a tuned
// variant (-Instruct, -Chat, -Base, -it, -hf), which has the sizes of its base, make no difference.
bool model_is_called(const ModelPreset *preset, const char *name);

// Is it the name of a model, though no preset has it: an identifier of the hub, or of a family that is refused? A path
// that begins with "." or "/" is not.
bool model_is_named(const char *name);

// The error for an unknown name, with near matches.
Status model_unknown(const char *name, Error *error);
