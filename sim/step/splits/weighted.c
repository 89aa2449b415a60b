// Embedding and head count as that many layers, and all are distributed evenly, the remainder to the first chunks
// (generate_llm_fqn_per_model_part of first_ and last_stage_less_layers; account_for_embedding_ and
// account_for_loss_in_pipeline_split with one each).

#include "sim/step/splits/split.h"

static void cut(const ModelSpec *model, const SplitShape *shape, int32_t *counts) {
    split_evenly(model->layers + shape->first + shape->last, shape->chunks, counts);
    counts[0] -= shape->first;
    counts[shape->chunks - 1] -= shape->last;
}

extern const LayerSplit layer_split_weighted;
const LayerSplit layer_split_weighted = {.cut = cut};
