// Enumerates candidates. Micro-batches are powers of two, and with a given global batch also the divisors of one
// rank's share, up to SPACE_MAX_MICRO_BATCH. Given a global batch every candidate meets it exactly; else each (shape,
// micro-batch) takes the nearest multiple. Not searched in this version: sharding stages
// beside the target's usual one.

#include "autotune/space.h"

#include "autotune/rank_orders.h"

typedef struct SpaceBuilder {
    const TuneRequest *request;
    Arena *arena;
    Space *space;
    size_t capacity;
} SpaceBuilder;

int64_t space_nearest_multiple(int64_t wanted, int64_t unit) {
    const int64_t below = wanted / unit * unit;
    const int64_t nearest = wanted - below <= below + unit - wanted ? below : below + unit;
    return nearest > 0 ? nearest : unit;
}

int64_t space_default_batch(int seq) {
    const int64_t sequences = ((int64_t)TUNE_DEFAULT_TOKENS + seq / 2) / seq;
    return sequences > 0 ? sequences : 1;
}

static void add_candidate(SpaceBuilder *builder, int shape, TrainPlan plan, size_t first_alike) {
    Space *space = builder->space;
    plan_canonical(&plan);
    Hash hash = hash_begin();
    plan_hash(&plan, &hash);
    const uint64_t identity = hash_end(&hash);
    for (size_t i = first_alike; i < (size_t)space->candidate_count; i++) {
        if (space->candidates[i].content_hash == identity) {
            return;
        }
    }
    space->candidates = arena_grow(builder->arena, space->candidates, (size_t)space->candidate_count,
                                   &builder->capacity, sizeof *space->candidates);
    space->candidates[space->candidate_count++] = (Candidate){.plan = plan, .shape = shape, .content_hash = identity};
}

// Values of one choice: the asked one, or all that the target has.
static int choices(int asked, int count, const bool *available, int *values) {
    if (asked != TUNE_ANY) {
        values[0] = asked;
        return 1;
    }
    int found = 0;
    for (int value = 0; value < count; value++) {
        if (available[value]) {
            values[found++] = value;
        }
    }
    return found;
}

// The choices that may come to the same plan.
static void add_choices(SpaceBuilder *builder, int shape, TrainPlan plan) {
    const TuneRequest *request = builder->request;
    const size_t first_alike = (size_t)builder->space->candidate_count;
    const bool reshards[RESHARD_COUNT] = {true, plan.zero == 3 && !request->target->always_reshards};
    const bool recomputes[RECOMPUTE_COUNT] = {true, true, request->target->selective_flavour != SELECTIVE_NONE};
    const bool several = plan.mesh.size[AXIS_CP] > 1;
    const bool ring = request->target->cp_ring || !several;
    const bool rotates[CP_ROTATE_COUNT] = {ring, request->target->cp_allgather && several};
    int recompute[RECOMPUTE_COUNT], reshard[RESHARD_COUNT], rotate[CP_ROTATE_COUNT];
    const int recompute_count = choices(request->recompute, RECOMPUTE_COUNT, recomputes, recompute);
    const int reshard_count = choices(request->reshard, RESHARD_COUNT, reshards, reshard);
    int rotate_count = choices(request->cp_rotate, CP_ROTATE_COUNT, rotates, rotate);
    if (rotate_count == 0) {  // a target without context parallelism: one candidate, which its legality rule rejects
        rotate[rotate_count++] = target_default_rotate(request->target);
    }
    for (int i = 0; i < recompute_count; i++) {
        for (int j = 0; j < reshard_count; j++) {
            for (int k = 0; k < rotate_count; k++) {
                plan.recompute = (Recompute)recompute[i];
                plan.reshard = (Reshard)reshard[j];
                plan.cp_rotate = (CpRotate)rotate[k];
                add_candidate(builder, shape, plan, first_alike);
            }
        }
    }
}

static bool is_power_of_two(int value) {
    return (value & (value - 1)) == 0;
}

// Accumulation steps for this micro-batch; 0 = the micro-batch is not a choice of this shape.
static int accumulation(const TuneRequest *request, int64_t data_ranks, int micro_batch) {
    const int64_t unit = data_ranks * micro_batch;
    if (request->global_batch > 0) {
        return request->global_batch % unit == 0 ? (int)(request->global_batch / unit) : 0;
    }
    const int64_t wanted = space_default_batch(request->seq);
    if (micro_batch > 1 && micro_batch != request->micro_batch && (!is_power_of_two(micro_batch) || unit > wanted)) {
        return 0;
    }
    return (int)(space_nearest_multiple(wanted, unit) / unit);
}

void space_kernels(const TuneRequest *request, TrainPlan *plan) {
    const Target *target = request->target;
    plan->attention = request->attention != TUNE_ANY ? (AttentionKernel)request->attention : target->default_attention;
    plan->fused = request->fused != TUNE_ANY ? (Fused)request->fused : target->default_fused;
    plan->fp8_recipe = request->fp8_recipe != TUNE_ANY ? (Fp8Recipe)request->fp8_recipe : target_default_fp8(target);
    plan->bf16_master = request->bf16_master;
    plan->reduce_dtype = request->reduce_dtype;
    plan->tp_overlap = request->tp_overlap;
}

static void add_shape(SpaceBuilder *builder, int shape) {
    const TuneRequest *request = builder->request;
    const size_t first = (size_t)builder->space->candidate_count;
    TrainPlan plan = {.mesh = builder->space->meshes[shape]};
    plan.seq = request->seq;
    plan.precision = request->precision;
    space_kernels(request, &plan);
    plan.zero = request->zero != TUNE_ANY ? request->zero : target_default_zero(request->target, &plan.mesh);
    int order_count;
    const AxisOrder *orders = rank_orders_find(request, &plan.mesh, builder->arena, &order_count);
    const int64_t data_ranks = mesh_group_size(&plan.mesh, AXES_BATCH);
    const int lowest = request->micro_batch > 0 ? request->micro_batch : 1;
    const int highest = request->micro_batch > 0 ? request->micro_batch : SPACE_MAX_MICRO_BATCH;
    for (int micro_batch = lowest; micro_batch <= highest; micro_batch++) {
        plan.micro_batch = micro_batch;
        plan.grad_accum = accumulation(request, data_ranks, micro_batch);
        for (int i = 0; i < order_count && plan.grad_accum > 0; i++) {
            plan.mesh.order = orders[i];
            add_choices(builder, shape, plan);
        }
    }
    if ((size_t)builder->space->candidate_count == first) {  // the batch rule will say why
        plan.mesh.order = orders[0];
        plan.micro_batch = lowest;
        plan.grad_accum = 1;
        add_candidate(builder, shape, plan, first);
    }
}

void space_enumerate(const TuneRequest *request, Arena *arena, Space *space) {
    *space = (Space){0};
    const AxisMask axes = AXES_FIRST | target_axes(request->target);
    space->mesh_count = mesh_enumerate(request->world, axes, NULL, 0);
    space->meshes = ARENA_ARRAY(arena, Mesh, space->mesh_count);
    mesh_enumerate(request->world, axes, space->meshes, space->mesh_count);
    SpaceBuilder builder = {.request = request, .arena = arena, .space = space};
    for (int shape = 0; shape < space->mesh_count; shape++) {
        add_shape(&builder, shape);
    }
}
