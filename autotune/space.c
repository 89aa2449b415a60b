// Enumerates candidates. Micro-batches are powers of two, and with a given global batch also the divisors of one
// rank's share, up to SPACE_MAX_MICRO_BATCH. Given a global batch every candidate meets it exactly; else each (shape,
// micro-batch) takes the nearest multiple. Not searched in this version: sharding stages
// beside the target's usual one.

#include "autotune/space.h"

#include "autotune/rank_orders.h"
#include "sim/frameworks/target_choices.h"

typedef struct SpaceBuilder {
    const TuneRequest *request;
    Arena *arena;
    Space *space;
    size_t capacity;
    PlanFieldId order[PLAN_FIELD_COUNT];  // of the fields, slowest first
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
    target_canonical(builder->request->target, &plan);
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

// The searched fields from `place` of the order on, each with the asked value or all that the target offers: choices
// that may come to the same plan.
static void add_choices(SpaceBuilder *builder, int shape, TrainPlan plan, int place, size_t first_alike) {
    const TuneRequest *request = builder->request;
    while (place < PLAN_FIELD_COUNT && !plan_fields[builder->order[place]].searched) {
        place++;
    }
    if (place == PLAN_FIELD_COUNT) {
        add_candidate(builder, shape, plan, first_alike);
        return;
    }
    const PlanFieldId id = builder->order[place];
    const int asked = request->asked[id];
    bool found = false;
    for (int value = plan_fields[id].low; value <= plan_fields[id].high; value++) {
        if (asked != TUNE_ANY ? value == asked : target_offers(request->target, &plan, id, value)) {
            plan_set(&plan, id, value);
            add_choices(builder, shape, plan, place + 1, first_alike);
            found = true;
        }
    }
    if (!found) {  // as of a target without context parallelism: one candidate, which its legality rule rejects
        plan_set(&plan, id, target_usual(request->target, &plan, id));
        add_choices(builder, shape, plan, place + 1, first_alike);
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

// Which layers are recomputed is open only where it is open whether any are.
bool space_fits(const TuneRequest *request, PlanFieldId id) {
    return target_fits(request->target, id) && request->asked[id] == TUNE_ANY &&
           request->asked[PLAN_RECOMPUTE] == TUNE_ANY;
}

void space_take(const TuneRequest *request, TrainPlan *plan, PlanFieldId id) {
    const int asked = request->asked[id];
    plan_set(plan, id, asked != TUNE_ANY ? asked : target_usual(request->target, plan, id));
}

int space_usual_master(const Target *target, const TuneRequest *request) {
    const TrainPlan plan = {.precision = (Dtype)request->asked[PLAN_PRECISION]};
    return target_usual(target, &plan, PLAN_MASTER_WEIGHTS);
}

int space_master_of_other(const TuneRequest *request, const Target *other) {
    const int asked = request->asked[PLAN_MASTER_WEIGHTS];
    return asked == space_usual_master(request->target, request) ? space_usual_master(other, request) : asked;
}

void space_job(const TuneRequest *request, TrainPlan *plan) {
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope == PLAN_OF_JOB) {
            space_take(request, plan, (PlanFieldId)id);
        }
    }
}

static void add_shape(SpaceBuilder *builder, int shape) {
    const TuneRequest *request = builder->request;
    const size_t first = (size_t)builder->space->candidate_count;
    TrainPlan plan = {.mesh = builder->space->meshes[shape]};
    plan.seq = request->seq;
    space_job(request, &plan);
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope == PLAN_OF_SHAPE && !plan_fields[id].searched) {
            space_take(request, &plan, (PlanFieldId)id);
        }
    }
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
            add_choices(builder, shape, plan, 0, (size_t)builder->space->candidate_count);
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
    const AxisMask axes = AXES_FIRST | request->target->axes;
    space->mesh_count = mesh_enumerate(request->world, axes, NULL, 0);
    space->meshes = ARENA_ARRAY(arena, Mesh, space->mesh_count);
    mesh_enumerate(request->world, axes, space->meshes, space->mesh_count);
    static const PlanFieldId first[] = {PLAN_RECOMPUTE, PLAN_RESHARD, PLAN_CP_ROTATE};
    SpaceBuilder builder = {.request = request, .arena = arena, .space = space};
    plan_fields_from(first, sizeof first / sizeof first[0], builder.order);
    for (int shape = 0; shape < space->mesh_count; shape++) {
        add_shape(&builder, shape);
    }
}
