// Megatron-LM's rule: even if the layers divide, else embedding and loss, or the loss alone, count as a layer if that
// divides (account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split; transformer_config.py). The
// rest needs pipeline_model_parallel_layout: here the surplus is on the first ones.

#include "sim/step/splits/split.h"

static void cut(const ModelSpec *model, const SplitShape *shape, int32_t *counts) {
    const int32_t chunks = shape->chunks;
    const int32_t layers = model->layers;
    const bool even = layers % chunks == 0;
    const int32_t embedding = !even && (layers + 2) % chunks == 0;
    const int32_t loss = embedding || (!even && (layers + 1) % chunks == 0);
    split_evenly(layers + embedding + loss, chunks, counts);
    counts[0] -= embedding;
    counts[chunks - 1] -= loss;
}

extern const LayerSplit layer_split_edges;
const LayerSplit layer_split_edges = {.cut = cut};
