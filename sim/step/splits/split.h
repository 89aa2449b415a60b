// How a pipeline cuts the layers of a model into the chunks of its stages: a file and a row each (splits.c). Which rule
// a framework has by itself is its target's (LayerRule), another one is the plan's (pp_split).

#pragma once

#include <stdint.h>

#include "sim/frameworks/target.h"

typedef struct SplitShape {
    int32_t stages, chunks;  // chunks of all stages; looped over them: chunk i is stage i mod stages'
    int32_t first, last;     // of rules that are told layers: pp_first, pp_last
} SplitShape;

typedef struct LayerSplit {
    // Layers of each of the chunks of all stages, in the model's order. Embedding and head are on the first and the
    // last one; a chunk may have no layers.
    void (*cut)(const ModelSpec *model, const SplitShape *shape, int32_t *counts);
} LayerSplit;

extern const LayerSplit *const layer_splits[LAYER_RULE_COUNT];

// By the plan's rule; its chunks of all stages.
int32_t split_parts(const TrainPlan *plan);
void split_layers(const ModelSpec *model, const Target *target, const TrainPlan *plan, int32_t *counts);

// The same where each stage has one chunk: of split chunks, all of its layers.
void split_alone(const ModelSpec *model, TrainPlan *plan);

// pp_first and pp_last with which the stage that computes longest is done soonest, of those that target_check takes;
// false where that gains less than a few per cent over the target's own split.
bool split_balance(const ModelSpec *model, const Target *target, TrainPlan *plan);

void split_evenly(int32_t layers, int32_t chunks, int32_t *counts);  // what is over goes to the first ones
