// DeepSpeed's 'parameters' (PipelineModule's default partition_method): minimizes the heaviest chunk, by trainable
// parameters; embedding and head are separate blocks (runtime/utils.py partition_balanced). Each chunk in order takes
// what fits under that weight.

#include "sim/model/layer_kinds.h"
#include "sim/step/splits/split.h"

typedef struct Weights {
    const ModelSpec *model;
    int64_t edge;                     // of the embedding and of the head, each
    int64_t layer[LAYER_KIND_COUNT];  // by kind
} Weights;

static Weights weights_of(const ModelSpec *model) {
    Weights weights = {.model = model, .edge = (int64_t)model->vocab * model->hidden};
    weights.layer[LAYER_DENSE] = layer_kinds[LAYER_DENSE].matrix_parameters(model);
    if (model->experts.count > 0) {
        weights.layer[LAYER_DENSE] = model_layer_parameters(model, LAYER_DENSE);
        weights.layer[LAYER_EXPERTS] = model_layer_parameters(model, LAYER_EXPERTS);
    }
    return weights;
}

// Layers of each chunk if none may exceed a weight; false if that weight is too small.
static bool fill(const Weights *weights, int64_t most, int32_t chunks, int32_t *counts) {
    int run = 0;
    int32_t left = model_run(weights->model, 0).count, taken = 0;
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        int64_t held = (chunk == 0 ? weights->edge : 0) + (chunk == chunks - 1 ? weights->edge : 0);
        counts[chunk] = 0;
        if (held > most) {
            return false;
        }
        while (taken < weights->model->layers) {
            const int64_t layer = weights->layer[model_run(weights->model, run).kind];
            if (held + layer > most) {
                break;
            }
            held += layer;
            counts[chunk]++;
            taken++;
            if (--left == 0 && taken < weights->model->layers) {
                left = model_run(weights->model, ++run).count;
            }
        }
    }
    return taken == weights->model->layers;
}

static void cut(const ModelSpec *model, const SplitShape *shape, int32_t *counts) {
    const int32_t chunks = shape->chunks;
    const Weights weights = weights_of(model);
    int64_t too_little = 0, enough = 2 * weights.edge;
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        enough += run.count * weights.layer[run.kind];
    }
    while (enough - too_little > 1) {
        const int64_t middle = too_little + (enough - too_little) / 2;
        *(fill(&weights, middle, chunks, counts) ? &enough : &too_little) = middle;
    }
    fill(&weights, enough, chunks, counts);
}

extern const LayerSplit layer_split_parameters;
const LayerSplit layer_split_parameters = {.cut = cut};
