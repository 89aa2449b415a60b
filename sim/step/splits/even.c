// The same number of layers on each, whatever the embedding and the head cost.

#include "sim/step/splits/split.h"

void split_evenly(int32_t layers, int32_t chunks, int32_t *counts) {
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        counts[chunk] = layers / chunks + (chunk < layers % chunks);
    }
}

static void cut(const ModelSpec *model, const SplitShape *shape, int32_t *counts) {
    split_evenly(model->layers, shape->chunks, counts);
}

extern const LayerSplit layer_split_even;
const LayerSplit layer_split_even = {.cut = cut};
