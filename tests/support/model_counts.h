// Parameters of a model, counted in ways that only tests need.

#pragma once

#include "sim/model/layer_kinds.h"

static inline int64_t idle_matrices(const ModelSpec *model) {
    int64_t count = 0;
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        count += run.count * layer_kinds[run.kind].idle_matrices(model);
    }
    return count;
}

static inline int64_t idle_vectors(const ModelSpec *model) {
    int64_t count = 0;
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        count += run.count * layer_kinds[run.kind].idle_vectors(model);
    }
    return count;
}

// Parameters active per token.
static inline int64_t active_parameters(const ModelSpec *model) {
    return model_parameters(model) - idle_matrices(model) - idle_vectors(model);
}

// The active parameters without embeddings that are in matrices: no norms, no biases.
static inline int64_t matrix_parameters(const ModelSpec *model) {
    int64_t count = (int64_t)model->vocab * model->hidden - idle_matrices(model);
    for (int i = 0; i < model_run_count(model); i++) {
        const LayerRun run = model_run(model, i);
        count += run.count * layer_kinds[run.kind].matrix_parameters(model);
    }
    return count;
}
