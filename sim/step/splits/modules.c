// As many modules for each, the remainder on the first ones, where embedding, final norm and head are a module each as
// every layer is (Aleph-Alpha/scaling@737f855, core/nn/parallel_module/pipeline_partitioning.py,
// pipe_partition_uniform).

#include "sim/step/splits/split.h"

enum { AFTER_LAYERS = 2 };  // final norm and head

static void cut(const ModelSpec *model, const SplitShape *shape, int32_t *counts) {
    const int32_t chunks = shape->chunks;
    split_evenly(1 + model->layers + AFTER_LAYERS, chunks, counts);
    counts[0]--;
    int32_t left = AFTER_LAYERS;
    for (int32_t i = chunks - 1; i >= 0 && left > 0; i--) {
        const int32_t taken = counts[i] < left ? counts[i] : left;
        counts[i] -= taken;
        left -= taken;
    }
}

extern const LayerSplit layer_split_modules;
const LayerSplit layer_split_modules = {.cut = cut};
