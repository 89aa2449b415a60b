// The first and the last chunk of layers hold the given number of layers, the others an equal share: what lists of
// layers or modules by stage are mostly written for. A plan cannot express chunks that differ in the middle.

#include "sim/step/splits/split.h"

static void cut(const ModelSpec *model, const SplitShape *shape, int32_t *counts) {
    const int32_t inner = shape->chunks - 2;
    if (inner > 0) {
        split_evenly(model->layers - shape->first - shape->last, inner, counts + 1);
    }
    counts[0] = shape->first;
    counts[shape->chunks - 1] = shape->last;
}

extern const LayerSplit layer_split_chunks;
const LayerSplit layer_split_chunks = {.cut = cut};
