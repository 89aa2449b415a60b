// Inside sim/cost: gradients and weights that travel, or are copied, in other pieces than their units.

#pragma once

#include "sim/cost/cost.h"

// Parameters of one, of gradients reduced over that many ranks.
double bucket_parameters(const TargetRuntime *runtime, double ranks);

// Of a unit's gradients or weights, over that many ranks, what travels with it rather than with the embedding; the
// embedding's own is 1 and what it takes along.
double buckets_travelling_share(const StepProgram *program, const Task *task, int ranks);

typedef struct BucketCall {
    CollectiveKind kind;
    const GroupPlacement *group;
    double payload_bytes, number_bytes;  // number_bytes: of one gradient or weight
    double alone_s;                      // its time as one call
} BucketCall;

// Its share of the calls that it is part of, or the sum of those that it is split into.
double buckets_collective_s(const CostModel *model, const StepProgram *program, const Task *task,
                            const BucketCall *call);

// ---- bucket_copies.c

// Of an update's gradients, into the buckets that replicas reduce and back.
double buckets_copied_bytes(const Target *target, const StepProgram *program, const Task *task);
