// Memory of all plans that differ only in micro-batch and in how many ranks share a unit: live bytes at each moment of
// a step are affine in both, so the peak is the largest of a few planes.

#pragma once

#include "sim/analytic/analytic.h"
#include "sim/analytic/buffer_sizes.h"
#include "sim/memory/memory_breakdown.h"
#include "sim/step/resizable.h"

typedef struct MemoryPlane {
    double fixed_bytes;     // constant
    double share_bytes;     // x 1 / ranks that share a unit
    double sequence_bytes;  // x micro-batch
} MemoryPlane;

typedef struct MemoryCurve {
    MemoryPlane *planes;          // moments; the largest counts
    int32_t count, drained;       // from this one on, as of LiveMoments
    double fixed_reserved_bytes;  // outside the allocator, without what tp_overlap needs where that is not planned
    double workspace_bytes;       // of them, alive in the allocator
    double slack, moving_slack;   // of the peak; of what is not resident
    MemoryPlane resident;
    double carried_bytes;  // per sequence, from forward to its backward: once in the planes; 0 without a pipeline
    double growing_bytes;  // whole gradients, absent before the first backward
    double first_growing_bytes, last_growing_bytes, early_bytes;  // as in Estimate
} MemoryCurve;

// First, middle, last: more of them need as much.
static inline int memory_micro_steps(const TrainPlan *plan) {
    return plan->grad_accum < 3 ? plan->grad_accum : 3;
}

// The plan with few enough shards that rounding them up is little: large ones.
enum { FEW_SHARDS = 2, MANY_SHARDS = 4 };
TrainPlan memory_neighbour(const TrainPlan *plan, int shards);

typedef struct NeighbourSizes {
    Memo more_shards, twice;  // the micro-batch
} NeighbourSizes;

typedef struct CurveSource {
    const ModelSpec *model;
    int stage;
    ResizableProgram *few_shards;  // of the neighbour with FEW_SHARDS, at any micro-batch
    NeighbourSizes *sizes;         // of the plan's recompute, reshard and rotation
    Arena *sizes_arena;
    LiveTraces *traces;
    Arena *scratch;
} CurveSource;

// From the plan's neighbours with few and more shards and twice the micro-batch.
Status memory_curve_make(const CurveSource *from, const TrainPlan *plan, Arena *arena, MemoryCurve *curve,
                         Error *error);

// Of a target that plans its memory: from the plan's own program.
Status memory_curve_planned(const StepProgram *program, LiveTraces *traces, Arena *scratch, Arena *arena,
                            MemoryCurve *curve, Error *error);

// Fills the byte fields of the estimate. in_flight: micro-steps whose backward has not run, at least 1; a stage that
// drains has run all others' when it begins the last one's.
void memory_curve_at(const MemoryCurve *curve, int micro_batch, double shard_share, double in_flight, bool drains,
                     Estimate *estimate);
