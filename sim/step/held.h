// What a stage of the pipeline holds of the model: chunks of its layers, of which the first stage's first one begins
// with the embedding and the last one of all ends with head and loss.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/frameworks/target.h"
#include "sim/model/model.h"
#include "sim/plan/plan.h"

enum { STAGE_MAX_CHUNKS = 64 };

typedef struct StageChunk {
    int32_t first, count;    // of the layers that the stage holds, counted through
    int32_t first_in_model;  // the model's number of the first
    int32_t before, after;   // stages that forward comes from and goes to; -1 = none
} StageChunk;

typedef struct StageLayers {
    StageChunk *chunks;  // one without a pipeline
    int32_t chunk_count;
    int32_t layers;        // of all chunks
    bool embedding, head;  // that it holds
    int32_t further;       // of these, behind the model's own: plan->mtp, where the head is
    bool further_table;    // and the embedding once more, for their tokens: head and embedding are elsewhere two tables
    int32_t tied_peer;     // the stage that has the other copy of its embedding or head; -1 = none
} StageLayers;

// By the target's rule.
StageLayers stage_layers(const ModelSpec *model, const TrainPlan *plan, const Target *target, bool folded, int stage,
                         Arena *arena);

// The part of a run that lies among these layers; false where none does.
bool layer_run_cut(LayerRun *run, int32_t first, int32_t count);

// The model with the stage's layers only; where the embedding is another stage's, the head is a table of its own.
ModelSpec stage_model(const ModelSpec *model, const StageLayers *held, Arena *arena);

// The model's number of a layer of the stage.
int stage_model_layer(const StageLayers *held, int layer);
