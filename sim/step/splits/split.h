// How a pipeline cuts the layers of a model into the chunks of its stages: a file and a row each (splits.c). Which rule
// a framework has is its target's (LayerRule).

#pragma once

#include <stdint.h>

#include "sim/frameworks/target.h"

typedef struct LayerSplit {
    // Layers of each of the chunks of all stages, in the model's order. Embedding and head are on the first and the
    // last one; a chunk may have no layers.
    void (*cut)(const ModelSpec *model, int32_t chunks, int32_t *counts);
} LayerSplit;

extern const LayerSplit *const layer_splits[LAYER_RULE_COUNT];

void split_evenly(int32_t layers, int32_t chunks, int32_t *counts);  // what is over goes to the first ones
