// Three programs, neighbours of the plan, have the same moments (but for the zeroing of padding, which depends
// on the sharding and is left out): three values per moment give its plane. Planes that are nowhere the largest are
// dropped. Not modelled: that padding and alignment are not affine (both below 0.1 % of a model that needs sharding).

#include "sim/analytic/memory_curve.h"

#include <string.h>

typedef struct Sample {
    LiveMoments moments;
    double resident_bytes;
} Sample;

static bool is_padding(const StepProgram *program, const LiveMoment *moment) {
    return program->tasks[moment->task].kind == TASK_ZERO && program->tasks[moment->task].unit >= 0;
}

static void take_sample(const StepProgram *program, const LiveTrace *who, Arena *arena, Sample *sample) {
    const LiveMoments all = memory_moments_of(program, who, arena);
    int32_t count = 0, drained = 0;
    for (int32_t i = 0; i < all.count; i++) {
        if (!is_padding(program, &all.rows[i])) {
            all.rows[count++] = all.rows[i];
            drained += i < all.drained;
        }
    }
    sample->moments = (LiveMoments){all.rows, count, drained};
    sample->resident_bytes = (double)memory_resident_bytes(program);
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

// Keeps the planes that no other one covers everywhere; drained ones cover none of the others. *covering: one that
// covered the moment before, and mostly covers this one too.
static void add_plane(MemoryCurve *curve, const MemoryPlane *plane, int32_t *covering) {
    if (*covering < curve->count && below(plane, &curve->planes[*covering])) {
        return;
    }
    int32_t kept = curve->drained;
    for (int32_t i = 0; i < curve->count; i++) {
        if (below(plane, &curve->planes[i])) {
            *covering = i;
            return;
        }
    }
    for (int32_t i = curve->drained; i < curve->count; i++) {
        if (!below(&curve->planes[i], plane)) {
            curve->planes[kept++] = curve->planes[i];
        }
    }
    curve->planes[kept] = *plane;
    curve->count = kept + 1;
    *covering = kept;
}

static void add_planes(MemoryCurve *curve, const Sample samples[3], const Spread *spread, int32_t first, int32_t end) {
    const LiveMoment *here = samples[0].moments.rows, *more_sequences = samples[1].moments.rows,
                     *more_ranks = samples[2].moments.rows;
    int32_t covering = curve->count;
    curve->drained = curve->count;
    for (int32_t i = first; i < end; i++) {
        const MemoryPlane plane = plane_through(spread, here[i].bytes, more_sequences[i].bytes, more_ranks[i].bytes);
        add_plane(curve, &plane, &covering);
    }
}

static Status join_samples(const Sample samples[3], const Spread *spread, Arena *arena, MemoryCurve *curve,
                           Error *error) {
    const LiveMoments *moments = &samples[0].moments;
    if (moments->count != samples[1].moments.count || moments->count != samples[2].moments.count) {
        return error_set(error, STATUS_INTERNAL, "neighbouring plans lower to programs of %d, %d and %d moments",
                         moments->count, samples[1].moments.count, samples[2].moments.count);
    }
    curve->planes = ARENA_UNCLEARED(arena, MemoryPlane, moments->count + 1);
    curve->resident =
        plane_through(spread, samples[0].resident_bytes, samples[1].resident_bytes, samples[2].resident_bytes);
    add_planes(curve, samples, spread, 0, moments->drained);
    add_planes(curve, samples, spread, moments->drained, moments->count);
    return STATUS_OK;
}

TrainPlan memory_neighbour(const TrainPlan *plan, int shards) {
    TrainPlan neighbour = *plan;
    neighbour.grad_accum = memory_micro_steps(plan);
    neighbour.mesh.order = (AxisOrder){0};  // bytes are the same in any, and a neighbour may not be legal in the plan's
    const int ep = plan->mesh.size[AXIS_EP];  // and what the expert's ranks take it must go on lending
    const int lent =
        ep > 1 ? mesh_nearest_extent(&plan->mesh, AXES_STAGE_RANKS, ep * plan_expert_tp(plan), AXIS_DP_SHARD) : 1;
    const int near = plan->reshard_ranks > 1 ? plan->reshard_ranks : 1;  // what they hold does not follow the shards
    neighbour.mesh.size[AXIS_DP_SHARD] = plan->zero > 0 ? shards * lent * near : plan->mesh.size[AXIS_DP_SHARD];
    return neighbour;
}

// Padding has a task of its own, and a shard in the place of its whole cuts that into cells.
static bool shards_keep_structure(const StepProgram *program, int32_t shards) {
    bool kept = true;
    for (int32_t u = 0; u < program->unit_count; u++) {
        const Unit *unit = &program->units[u];
        const bool padded = unit->padded_elements > unit->elements;
        const int64_t of_unit = (int64_t)shards * unit->shards / program->units[0].shards;
        kept &= padded == (unit_padded(unit->elements, (int32_t)of_unit) > unit->elements);
    }
    for (int32_t i = 0; i < program->operand_count && kept; i++) {
        const int16_t group = program->operands[i].ref.rank_group;
        for (int32_t u = 0; u < program->unit_count; u++) {
            kept &= group != program->units[u].shard_group;
        }
    }
    return kept;
}

// With more shards: of the same structure if they have it, else of a program of its own.
static Status sample_more_shards(const CurveSource *from, const TrainPlan *plan, const StepProgram *few,
                                 const LiveTrace *who, Sample *sample, Error *error) {
    const TrainPlan neighbour = memory_neighbour(plan, MANY_SHARDS);
    Memo *sizes = &from->sizes->more_shards;
    const bool kept = shards_keep_structure(few, plan_shard_count(&neighbour));
    StepProgram many = *few;
    many.buffers = kept ? buffer_sizes_find(sizes, few, from->scratch) : NULL;
    if (!many.buffers) {
        TRY(step_lower_alone(from->model, &neighbour, few->target, from->stage, from->scratch, &many, error));
        if (kept && step_same_structure(few, &many)) {
            buffer_sizes_add(sizes, few->buffers, &many, from->sizes_arena);
        } else {
            TRY(live_traces_find(from->traces, &many, &memory_breakdown_cut_options, &who, error));
        }
    }
    take_sample(&many, who, from->scratch, sample);
    return STATUS_OK;
}

// Lowered for twice the micro-batch; *who is the program's own again afterwards.
static Status sample_lowered_twice(const CurveSource *from, const StepProgram *program, const LiveTrace **who,
                                   Sample *sample, Error *error) {
    const int micro_batch = program->plan.micro_batch;
    const size_t bytes = (size_t)program->buffer_count * sizeof *program->buffers;
    const Buffer *buffers =
        memcpy(ARENA_UNCLEARED(from->scratch, Buffer, program->buffer_count), program->buffers, bytes);
    StepProgram *twice, *once;
    TRY(resizable_at(from->few_shards, 2 * micro_batch, from->scratch, &twice, error));
    const bool alike = resizable_owns(from->few_shards, twice);
    if (alike) {
        buffer_sizes_add(&from->sizes->twice, buffers, twice, from->sizes_arena);
    } else {
        TRY(live_traces_find(from->traces, twice, &memory_breakdown_cut_options, who, error));
    }
    take_sample(twice, *who, from->scratch, sample);
    TRY(resizable_at(from->few_shards, micro_batch, from->scratch, &once, error));
    return alike ? STATUS_OK : live_traces_find(from->traces, once, &memory_breakdown_cut_options, who, error);
}

static Status sample_twice(const CurveSource *from, const StepProgram *program, const LiveTrace **who, Sample *sample,
                           Error *error) {
    StepProgram twice = *program;
    twice.plan.micro_batch *= 2;
    twice.buffers = buffer_sizes_find(&from->sizes->twice, program, from->scratch);
    if (!twice.buffers) {
        return sample_lowered_twice(from, program, who, sample, error);
    }
    take_sample(&twice, *who, from->scratch, sample);
    return STATUS_OK;
}

// Which buffers are alive when does not depend on the micro-batch.
static Status take_samples(const CurveSource *from, const TrainPlan *plan, Sample samples[3], Error *error) {
    const LiveTrace *who;
    StepProgram *program;
    TRY(resizable_at(from->few_shards, plan->micro_batch, from->scratch, &program, error));
    TRY(live_traces_find(from->traces, program, &memory_breakdown_cut_options, &who, error));
    take_sample(program, who, from->scratch, &samples[0]);
    TRY(sample_twice(from, program, &who, &samples[1], error));
    samples[2] = samples[0];
    return plan->zero > 0 ? sample_more_shards(from, plan, program, who, &samples[2], error) : STATUS_OK;
}

static Status make_planes(const CurveSource *from, const TrainPlan *plan, MemoryCurve *curve, Error *error) {
    const TrainPlan few = memory_neighbour(plan, FEW_SHARDS), many = memory_neighbour(plan, MANY_SHARDS);
    const Spread spread = {.micro_batch = plan->micro_batch,
                           .more_micro_batch = 2 * plan->micro_batch,
                           .share = 1.0 / plan_shard_count(&few),
                           .less_share = 1.0 / plan_shard_count(&many),
                           .shared = plan->zero > 0};
    Sample samples[3];
    TRY(take_samples(from, plan, samples, error));
    return join_samples(samples, &spread, from->scratch, curve, error);
}

// A stage that is lowered alone marks them (step_lower_alone).
static double carried_bytes(const StepProgram *program) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        bytes += buffer->micro_steps > 0 && !buffer->host ? buffer->slots * buffer->slot_bytes : 0;
    }
    return (double)bytes / program->plan.micro_batch;
}

static double passing_bytes(const StepProgram *program, int32_t buffer) {
    const Buffer *of = buffer >= 0 ? &program->buffers[buffer] : NULL;
    return of && !of->persistent ? (double)of->slots * (double)of->slot_bytes : 0;
}

static void take_growing(const StepProgram *program, MemoryCurve *curve) {
    for (int32_t u = 0; u < program->unit_count; u++) {
        curve->growing_bytes += passing_bytes(program, program->units[u].gradient_full);
    }
    if (!program->target->root_unit) {
        curve->first_growing_bytes = passing_bytes(program, program->units[UNIT_EMBEDDING].gradient_full);
        curve->last_growing_bytes = passing_bytes(program, program->units[UNIT_HEAD].gradient_full);
        curve->early_bytes = passing_bytes(program, program->units[UNIT_EMBEDDING].gathered);
    }
}

static void keep_planes(MemoryCurve *curve, Arena *arena) {
    const MemoryPlane *planes = curve->planes;
    curve->planes = ARENA_ARRAY(arena, MemoryPlane, curve->count);
    memcpy(curve->planes, planes, (size_t)curve->count * sizeof *planes);
}

Status memory_curve_make(const CurveSource *from, const TrainPlan *plan, Arena *arena, MemoryCurve *curve,
                         Error *error) {
    StepProgram *program;
    Status status = resizable_at(from->few_shards, plan->micro_batch, from->scratch, &program, error);
    if (status == STATUS_OK) {
        step_place(program, plan);  // its communicators, not the neighbour's
        const double of_overlap = target_overlap_bytes(program->target, &program->model, &program->plan);
        *curve = (MemoryCurve){.slack = program->target->runtime.allocator_slack,
                               .moving_slack = target_moving_slack(program->target, &program->plan),
                               .fixed_reserved_bytes = memory_outside_bytes(program, from->scratch) - of_overlap,
                               .workspace_bytes = runtime_workspace_bytes(&program->target->runtime),
                               .carried_bytes = carried_bytes(program)};
        take_growing(program, curve);
        status = make_planes(from, plan, curve, error);
    }
    if (status != STATUS_OK) {
        return error_wrap(error, "memory of neighbouring plans");
    }
    keep_planes(curve, arena);
    return STATUS_OK;
}

Status memory_curve_planned(const StepProgram *program, LiveTraces *traces, Arena *scratch, Arena *arena,
                            MemoryCurve *curve, Error *error) {
    MemoryBreakdown breakdown;
    TRY(memory_breakdown_among(program, traces, scratch, &breakdown, error));
    MemoryPlane planned = {.fixed_bytes = breakdown.peak_bytes};
    const double resident = (double)memory_resident_bytes(program);
    *curve = (MemoryCurve){.planes = &planned,
                           .count = 1,
                           .drained = 1,
                           .slack = program->target->runtime.allocator_slack,
                           .moving_slack = target_moving_slack(program->target, &program->plan),
                           .resident = {.fixed_bytes = resident},
                           .carried_bytes = carried_bytes(program),
                           .fixed_reserved_bytes = breakdown.reserved_bytes - breakdown.allocator_bytes};
    take_growing(program, curve);
    keep_planes(curve, arena);
    return STATUS_OK;
}

static double plane_at(const MemoryPlane *plane, double micro_batch, double share) {
    return plane->fixed_bytes + plane->share_bytes * share + plane->sequence_bytes * micro_batch;
}

static double largest_at(const MemoryPlane *planes, int32_t count, double micro_batch, double share) {
    double largest = 0;
    for (int32_t i = 0; i < count; i++) {
        const double bytes = plane_at(&planes[i], micro_batch, share);
        largest = bytes > largest ? bytes : largest;  // fmax is a call
    }
    return largest;
}

void memory_curve_at(const MemoryCurve *curve, int micro_batch, double shard_share, double in_flight, bool drains,
                     Estimate *estimate) {
    const int32_t full = drains ? curve->drained : curve->count;
    const double drained = largest_at(curve->planes + full, curve->count - full, micro_batch, shard_share);
    double peak = largest_at(curve->planes, full, micro_batch, shard_share);
    estimate->carried_bytes = curve->carried_bytes * micro_batch;
    estimate->in_flight = in_flight;
    estimate->growing_bytes = curve->growing_bytes;
    estimate->first_growing_bytes = curve->first_growing_bytes;
    estimate->last_growing_bytes = curve->last_growing_bytes;
    estimate->early_bytes = curve->early_bytes;
    peak += estimate->carried_bytes * (in_flight - 1);
    peak = drained > peak ? drained : peak;
    estimate->peak_bytes = peak + curve->workspace_bytes;
    estimate->drained_bytes = drained > 0 ? drained + curve->workspace_bytes : 0;
    const double resident = plane_at(&curve->resident, micro_batch, shard_share);
    estimate->reserved_bytes =
        peak * (1 + curve->slack) + (peak - resident) * curve->moving_slack + curve->fixed_reserved_bytes;
}
