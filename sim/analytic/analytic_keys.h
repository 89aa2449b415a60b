// Keys of the memoised pieces of an estimate.

#pragma once

#include "sim/analytic/analytic_internal.h"

// Where the groups inside a layer lie, as key words.
typedef struct PlacementWords {
    uint64_t tp, cp, sp, experts;
} PlacementWords;

PlacementWords analytic_placement(const TrainPlan *plan, int ranks_per_node);

// Of a stage; 0 of a plan without stages.
MemoKey analytic_mesh_key(const TrainPlan *plan, int stage);
MemoKey analytic_overlap_key(const TrainPlan *plan, int stage, const PlacementWords *placed);
MemoKey analytic_program_key(const TrainPlan *plan, int stage, int micro_steps, bool own_shards);
MemoKey analytic_memory_key(const Analytic *analytic, const TrainPlan *plan, int stage);
MemoKey analytic_sizes_key(const TrainPlan *plan);

// Ranks that share the experts of one rank of ep.
int32_t analytic_expert_shards(const TrainPlan *plan);
