// What a pipeline stage holds of the model: chunks of its layers. The first chunk of the first stage begins with the
// embedding, and the very last chunk ends with head and loss.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/frameworks/target.h"
#include "sim/model/model.h"
#include "sim/plan/plan.h"

typedef struct StageChunk {
    int32_t first, count;    // in the stage's own layer numbering
    int32_t first_in_model;  // model layer number of the first one
    int32_t before, after;   // stages that forward activations come from and go to; -1 = none
} StageChunk;

typedef struct StageLayers {
    StageChunk *chunks;  // one without a pipeline
    int32_t chunk_count;
    int32_t layers;        // over all chunks
    bool embedding, head;  // whether the stage holds them
    int32_t further;       // how many of them are MTP layers after the model's own: plan->mtp, on the head's stage
    bool further_table;  // and a copy of the embedding table for their tokens, where it is untied and on another stage
    int32_t tied_peer;   // the stage that has the other copy of its embedding or head; -1 = none
} StageLayers;

// Placed by the target's rule.
StageLayers stage_layers(const ModelSpec *model, const TrainPlan *plan, const Target *target, bool folded, int stage,
                         Arena *arena);

// Clips a run to these layers; false where they do not overlap.
bool layer_run_cut(LayerRun *run, int32_t first, int32_t count);

// The model with the stage's layers only; where another stage holds the embedding, the head has its own table.
ModelSpec stage_model(const ModelSpec *model, const StageLayers *held, Arena *arena);

// The unit of the final norm and an untied head.
int unit_of_head(const Target *target);

// The unit with a table that another stage has a copy of, which is summed behind the last backward; -1 = none.
int stage_tied_unit(const StageLayers *held, const Target *target, const TrainPlan *plan);

// The model layer number of a stage's layer.
int stage_model_layer(const StageLayers *held, int layer);
