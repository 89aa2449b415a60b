// DeepSpeed's 'parameters' (PipelineModule's partition_method by default): the heaviest chunk is as light as it can be,
// by trainable parameters; embedding and head are blocks of their own (runtime/utils.py partition_balanced). Each chunk
// in turn takes what fits under that weight.

#include "sim/step/splits/split.h"

typedef struct Weights {
    int64_t edge, layer;  // of the embedding and of the head each; of a layer
    int32_t layers;
} Weights;

static Weights weights_of(const ModelSpec *model) {
    const int64_t q = (int64_t)model->heads * model->head_dim, kv = (int64_t)model->kv_heads * model->head_dim;
    const int64_t matrices = 2 * q + 2 * kv + (model->mlp == MLP_GATED ? 3 : 2) * (int64_t)model->ffn;
    return (Weights){.edge = (int64_t)model->vocab * model->hidden,
                     .layer = model->experts.count > 0 ? model_layer_parameters(model, LAYER_EXPERTS)
                                                       : matrices * model->hidden,
                     .layers = model->layers};
}

// Layers of each chunk when none may weigh more; false where that is too little.
static bool fill(const Weights *weights, int64_t most, int32_t chunks, int32_t *counts) {
    int32_t left = weights->layers;
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        const int64_t edges = (chunk == 0 ? weights->edge : 0) + (chunk == chunks - 1 ? weights->edge : 0);
        const int64_t room = most < edges ? -1 : (most - edges) / weights->layer;
        if (room < 0) {
            return false;
        }
        counts[chunk] = room < left ? (int32_t)room : left;
        left -= counts[chunk];
    }
    return left == 0;
}

static void cut(const ModelSpec *model, const SplitShape *shape, int32_t *counts) {
    const int32_t chunks = shape->chunks;
    const Weights weights = weights_of(model);
    int64_t too_little = 0, enough = 2 * weights.edge + weights.layer * weights.layers;
    while (enough - too_little > 1) {
        const int64_t middle = too_little + (enough - too_little) / 2;
        *(fill(&weights, middle, chunks, counts) ? &enough : &too_little) = middle;
    }
    fill(&weights, enough, chunks, counts);
}

extern const LayerSplit layer_split_parameters;
const LayerSplit layer_split_parameters = {.cut = cut};
