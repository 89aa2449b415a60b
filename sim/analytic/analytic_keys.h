// Keys of the memoised pieces of an estimate.

#pragma once

#include "sim/analytic/analytic_internal.h"

// Where the groups inside a layer lie, as key words.
typedef struct PlacementWords {
    uint64_t tp, cp, sp, experts;
} PlacementWords;

PlacementWords analytic_placement(const TrainPlan *plan, int ranks_per_node);

MemoKey analytic_mesh_key(const Analytic *analytic, const TrainPlan *plan);
MemoKey analytic_overlap_key(const Analytic *analytic, const TrainPlan *plan, const PlacementWords *placed);
MemoKey analytic_program_key(const Analytic *analytic, const TrainPlan *plan, int micro_steps, bool own_shards);
MemoKey analytic_memory_key(const Analytic *analytic, const TrainPlan *plan);
MemoKey analytic_sizes_key(const TrainPlan *plan);

// Ranks that share the experts of one rank of ep.
int32_t analytic_expert_shards(const TrainPlan *plan);
