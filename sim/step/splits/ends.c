// The first and the last stage hold the given number of layers, over all of their chunks; the rest is distributed
// evenly (num_layers_in_first_ and num_layers_in_last_pipeline_stage of Megatron-LM's transformer_config.py,
// get_num_layers_to_build in transformer_block.py).

#include "sim/step/splits/split.h"

static void cut(const ModelSpec *model, const SplitShape *shape, int32_t *counts) {
    const int32_t stages = shape->stages, each = shape->chunks / stages;
    const int32_t rest = model->layers - shape->first - shape->last, inner = (stages - 2) * each;
    for (int32_t chunk = 0, middle = 0; chunk < shape->chunks; chunk++) {
        const int32_t stage = chunk % stages;
        if (stage == 0) {
            counts[chunk] = shape->first / each;
        } else if (stage == stages - 1) {
            counts[chunk] = shape->last / each;
        } else {
            counts[chunk] = rest / inner + (middle++ < rest % inner);
        }
    }
}

extern const LayerSplit layer_split_ends;
const LayerSplit layer_split_ends = {.cut = cut};
