// The table of layer kinds: what one layer of a kind holds and computes.

#pragma once

#include "sim/model/model.h"

typedef struct LayerKindRow {
    const char *name;
    int64_t (*matrix_parameters)(const ModelSpec *model);
    int64_t (*vector_parameters)(const ModelSpec *model);  // norms and biases
    int64_t (*idle_matrices)(const ModelSpec *model);      // of these, those not active for a token
    int64_t (*idle_vectors)(const ModelSpec *model);
    double (*attention_flops)(const ModelSpec *model, int seq);  // of training, per token; the full square
} LayerKindRow;

extern const LayerKindRow layer_kinds[LAYER_KIND_COUNT];

int64_t model_norm_parameters(const ModelSpec *model);  // of one norm
