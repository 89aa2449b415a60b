// torchtitan's own models.

#pragma once

#include "sim/model/model.h"

typedef struct TitanModel {
    const char *folder, *flavor;  // "llama3" "8B"
    int layers, hidden, vocab;    // by which it is recognised
} TitanModel;

// NULL where torchtitan has no model of these sizes.
const TitanModel *torchtitan_model(const ModelSpec *model);
