// The screening estimate: step time and memory of a plan by look-ups and sums. One unit (layer forward, layer
// backward, edges) is lowered and priced once per (tp, cp, micro-batch, recompute) key and memoised; a candidate adds
// the sharding collectives of its groups. Closed-form counterpart of the engine's pipeline: forward layer =
// max(compute, gather); backward layer = max(compute, gather + reduce) on a shared communicator or max of each on its
// own; edges exposed. Sharing by sibling groups is inside the collective cost.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/cost/cost.h"
#include "sim/memory/memory.h"

typedef struct Analytic Analytic;  // memo; one per (model, cluster, target)

// Memos live in the arena; analytic_free gives back the working memory beside it. *cost is copied, what it points to
// is not.
Analytic *analytic_new(const ModelSpec *model, const CostModel *cost, Arena *arena);

// Every task takes its isolated time, as with the engine's no_contention; otherwise tasks that overlap slow each other
// down.
void analytic_ignore_contention(Analytic *analytic);
void analytic_free(Analytic *analytic);

typedef struct Estimate {
    double step_s;
    double compute_s;
    double exposed_s[AXIS_COUNT];
    double optimizer_s;
    double overhead_s;  // the five terms sum to step_s
    double peak_bytes;
    double reserved_bytes;
} Estimate;

// The plan must be canonical and legal. After the unit of its key is memoised: no allocation, no lowering.
Status analytic_estimate(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error);
