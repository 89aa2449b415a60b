// Three lowered programs, neighbours of the plan, have the same moments (but for the zeroing of padding, which depends
// on the sharding and is left out): three values per moment give its plane. Planes that are nowhere the largest are
// dropped. Not modelled: that padding and alignment are not affine (both below 0.1 % of a model that needs sharding).

#include "sim/analytic/memory_curve.h"

#include <math.h>
#include <string.h>

typedef struct Sample {
    LiveMoment *moments;
    int32_t count;
} Sample;

static bool is_padding(const StepProgram *program, const LiveMoment *moment) {
    return program->tasks[moment->task].kind == TASK_ZERO && program->tasks[moment->task].unit >= 0;
}

static Status take_sample(const ModelSpec *model, const TrainPlan *plan, const Target *target, LiveTraces *traces,
                          Arena *arena, Sample *sample, Error *error) {
    StepProgram program;
    int32_t count;
    TRY(step_lower(model, plan, target, arena, &program, error));
    TRY(memory_live_moments(&program, &memory_breakdown_cut_options, traces, arena, &sample->moments, &count, error));
    sample->count = 0;
    for (int32_t i = 0; i < count; i++) {
        if (!is_padding(&program, &sample->moments[i])) {
            sample->moments[sample->count++] = sample->moments[i];
        }
    }
    return STATUS_OK;
}

typedef struct Spread {
    double micro_batch, more_micro_batch, share, less_share;
    bool shared;
} Spread;

// The plane through three values.
static MemoryPlane plane_through(const Spread *at, double here, double more_sequences, double more_ranks) {
    MemoryPlane plane = {.sequence_bytes = (more_sequences - here) / (at->more_micro_batch - at->micro_batch)};
    plane.share_bytes = at->shared ? (here - more_ranks) / (at->share - at->less_share) : 0;
    plane.fixed_bytes = here - plane.sequence_bytes * at->micro_batch - plane.share_bytes * at->share;
    return plane;
}

static bool below(const MemoryPlane *a, const MemoryPlane *b) {
    return a->fixed_bytes <= b->fixed_bytes && a->share_bytes <= b->share_bytes &&
           a->sequence_bytes <= b->sequence_bytes;
}

// Keeps the planes that no other one covers everywhere.
static void add_plane(MemoryCurve *curve, const MemoryPlane *plane) {
    int32_t kept = 0;
    for (int32_t i = 0; i < curve->count; i++) {
        if (below(plane, &curve->planes[i])) {
            return;
        }
    }
    for (int32_t i = 0; i < curve->count; i++) {
        if (!below(&curve->planes[i], plane)) {
            curve->planes[kept++] = curve->planes[i];
        }
    }
    curve->planes[kept] = *plane;
    curve->count = kept + 1;
}

static Status join_samples(const Sample samples[3], const Spread *spread, Arena *arena, MemoryCurve *curve,
                           Error *error) {
    if (samples[0].count != samples[1].count || samples[0].count != samples[2].count) {
        return error_set(error, STATUS_INTERNAL, "neighbouring plans lower to programs of %d, %d and %d moments",
                         samples[0].count, samples[1].count, samples[2].count);
    }
    MemoryPlane *planes = ARENA_UNCLEARED(arena, MemoryPlane, samples[0].count + 1);
    curve->planes = planes;
    for (int32_t i = 0; i < samples[0].count; i++) {
        const MemoryPlane plane = plane_through(spread, samples[0].moments[i].bytes, samples[1].moments[i].bytes,
                                                samples[2].moments[i].bytes);
        add_plane(curve, &plane);
    }
    return STATUS_OK;
}

bool target_plans_memory(const Target *target) {
    return strcmp(target->name, "ndtune") == 0;  // as memory_breakdown
}

static Status make_planes(const ModelSpec *model, const TrainPlan *plan, const Target *target, LiveTraces *traces,
                          Arena *scratch, MemoryCurve *curve, Error *error) {
    TrainPlan neighbour = *plan;
    neighbour.mesh.order = (AxisOrder){0};  // bytes are the same in any, and a neighbour may not be legal in the plan's
    TrainPlan plans[3] = {neighbour, neighbour, neighbour};
    for (int i = 0; i < 3 && plan->zero > 0; i++) {
        plans[i].mesh.size[AXIS_DP_SHARD] = i == 2 ? 4 : 2;  // large shards: least rounding
    }
    plans[1].micro_batch *= 2;
    const Spread spread = {.micro_batch = plan->micro_batch,
                           .more_micro_batch = plans[1].micro_batch,
                           .share = 1.0 / plan_shard_count(&plans[0]),
                           .less_share = 1.0 / plan_shard_count(&plans[2]),
                           .shared = plan->zero > 0};
    Sample samples[3];
    for (int i = 0; i < (spread.shared ? 3 : 2); i++) {
        TRY(take_sample(model, &plans[i], target, traces, scratch, &samples[i], error));
    }
    samples[2] = spread.shared ? samples[2] : samples[0];
    return join_samples(samples, &spread, scratch, curve, error);
}

// The plan's own peak where a planner packs, planes elsewhere.
static Status fill_curve(const ModelSpec *model, const TrainPlan *plan, const Target *target,
                         const StepProgram *program, LiveTraces *traces, Arena *scratch, MemoryPlane *planned,
                         MemoryCurve *curve, Error *error) {
    if (!target_plans_memory(target)) {
        curve->fixed_reserved_bytes = memory_outside_bytes(program, scratch);
        return make_planes(model, plan, target, traces, scratch, curve, error);
    }
    MemoryBreakdown breakdown;
    TRY(memory_breakdown_among(program, traces, scratch, &breakdown, error));
    *planned = (MemoryPlane){.fixed_bytes = breakdown.peak_bytes};
    curve->planes = planned;
    curve->count = 1;
    curve->fixed_reserved_bytes = breakdown.reserved_bytes - breakdown.peak_bytes * (1 + curve->slack);
    return STATUS_OK;
}

Status memory_curve_make(const ModelSpec *model, const TrainPlan *plan, const Target *target,
                         const StepProgram *lowered, LiveTraces *traces, Arena *scratch, Arena *arena,
                         MemoryCurve *curve, Error *error) {
    TrainPlan first = *plan;
    first.grad_accum = memory_micro_steps(plan);
    StepProgram own;
    const bool same = lowered && lowered->plan.grad_accum == first.grad_accum;
    Status status = same ? STATUS_OK : step_lower(model, &first, target, scratch, &own, error);
    MemoryPlane planned;
    *curve = (MemoryCurve){.slack = target->runtime.allocator_slack};
    if (status == STATUS_OK) {
        status = fill_curve(model, &first, target, same ? lowered : &own, traces, scratch, &planned, curve, error);
    }
    if (status == STATUS_OK) {
        const MemoryPlane *planes = curve->planes;
        curve->planes = ARENA_ARRAY(arena, MemoryPlane, curve->count);
        memcpy(curve->planes, planes, (size_t)curve->count * sizeof *planes);
    }
    arena_reset(scratch);
    return status == STATUS_OK ? status : error_wrap(error, "memory of neighbouring plans");
}

static double plane_at(const MemoryPlane *plane, double micro_batch, double share) {
    return plane->fixed_bytes + plane->share_bytes * share + plane->sequence_bytes * micro_batch;
}

void memory_curve_at(const MemoryCurve *curve, int micro_batch, double shard_share, Estimate *estimate) {
    double peak = 0;
    for (int32_t i = 0; i < curve->count; i++) {
        const double bytes = plane_at(&curve->planes[i], micro_batch, shard_share);
        peak = bytes > peak ? bytes : peak;  // fmax is a call
    }
    estimate->peak_bytes = peak;
    estimate->reserved_bytes = peak * (1 + curve->slack) + curve->fixed_reserved_bytes;
}
