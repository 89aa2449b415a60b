// Memory of all plans that differ only in micro-batch and in how many ranks share a unit: live bytes at each moment of
// a step are affine in both, so the peak is the largest of a few planes.

#pragma once

#include "sim/analytic/analytic.h"
#include "sim/memory/memory_breakdown.h"

typedef struct MemoryPlane {
    double fixed_bytes;     // constant
    double share_bytes;     // x 1 / ranks that share a unit
    double sequence_bytes;  // x micro-batch
} MemoryPlane;

typedef struct MemoryCurve {
    MemoryPlane *planes;  // moments; the largest counts
    int32_t count;
    double fixed_reserved_bytes, slack;
} MemoryCurve;

// Whether the target's peak is the planner's arena. An arena's packing is not affine: such a curve holds for its own
// plan only.
bool target_plans_memory(const Target *target);

// First, middle, last: more of them need as much.
static inline int memory_micro_steps(const TrainPlan *plan) {
    return plan->grad_accum < 3 ? plan->grad_accum : 3;
}

// From the plan's neighbours with few shards and twice the micro-batch. lowered: the plan's own program or NULL; it may
// have more or fewer micro-steps, and may be in the scratch, which is empty afterwards.
Status memory_curve_make(const ModelSpec *model, const TrainPlan *plan, const Target *target,
                         const StepProgram *lowered, LiveTraces *traces, Arena *scratch, Arena *arena,
                         MemoryCurve *curve, Error *error);

// Fills peak_bytes and reserved_bytes.
void memory_curve_at(const MemoryCurve *curve, int micro_batch, double shard_share, Estimate *estimate);
