// How a pipeline splits the layers of a model into the chunks of its stages: one file and one row each (splits.c). A
// framework's default rule is its target's (LayerRule), another one is the plan's (pp_split).

#pragma once

#include <stdint.h>

#include "sim/frameworks/target.h"

typedef struct SplitShape {
    int32_t stages, chunks;  // chunks of all stages; looped: chunk i is on stage i mod stages
    int32_t first, last;     // for rules that take layer counts: pp_first, pp_last
} SplitShape;

typedef struct LayerSplit {
    // Layers of each of the chunks of all stages, in model order. Embedding and head are on the first and the last one;
    // a chunk may have no layers.
    void (*cut)(const ModelSpec *model, const SplitShape *shape, int32_t *counts);
} LayerSplit;

extern const LayerSplit *const layer_splits[LAYER_RULE_COUNT];

// By the plan's rule, over the chunks of all stages.
void split_layers(const ModelSpec *model, const Target *target, const TrainPlan *plan, int32_t *counts);

// The same with one chunk per stage: all layers of the stage's chunks together.
void split_alone(const ModelSpec *model, TrainPlan *plan);

// pp_first and pp_last that minimize the slowest stage's time, among those that target_check accepts; false where that
// gains less than a few percent over the target's own split.
bool split_balance(const ModelSpec *model, const Target *target, TrainPlan *plan);

// What each stage's layers, and head and loss, weigh in its compute; only their ratios mean anything. False where a
// model or a pipeline has more parts than are weighed.
enum { SPLIT_MOST_STAGES = 512 };
bool split_loads(const ModelSpec *model, const Target *target, const TrainPlan *plan, double *of_stage);

// The same of one stage, from the model that it holds.
double split_load(const ModelSpec *held, const TrainPlan *plan, bool head);

void split_evenly(int32_t layers, int32_t chunks, int32_t *counts);  // the remainder goes to the first ones
