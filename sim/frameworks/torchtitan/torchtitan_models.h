// torchtitan's own models.

#pragma once

#include "sim/model/model.h"

typedef struct TitanModel {
    const char *folder, *flavor;  // "llama3" "8B"
    const char *preset;           // ndtune's name of it
    int layers, hidden, vocab;    // by which it is recognised
} TitanModel;

// NULL where torchtitan has no model of these sizes.
const TitanModel *torchtitan_model(const ModelSpec *model);

// By its name and flavor in a file, another attention kernel ("8B_flex") aside; NULL.
const TitanModel *torchtitan_model_named(const char *folder, const char *flavor);

// Why ndtune lacks a model of that name: "a mixture of experts"; NULL = it may have it.
const char *torchtitan_other_model(const char *folder, const char *flavor);
