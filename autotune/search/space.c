// Enumerates candidates. Micro-batches are the divisors of one rank's share of the global batch, up to
// SPACE_MAX_MICRO_BATCH. Sharding stages other than the default are searched for targets whose file chooses from them.

#include "autotune/search/space.h"

#include "autotune/search/expert_cuts.h"
#include "autotune/search/prune.h"
#include "autotune/search/rank_orders.h"
#include "autotune/search/search_internal.h"
#include "sim/cost/cost.h"
#include "sim/frameworks/target_choices.h"
#include "sim/step/schedules/schedule.h"
#include "sim/step/splits/split.h"

enum { KNOWN_SPLITS = 32, KNOWN_RUNS = 4, FIRST_CANDIDATES = 16 };

// The most even split of a pipeline, and what it depends on in addition to the model.
typedef struct KnownSplit {
    int stages, schedule, chunks, split, recompute;
    bool gains;
    int first, last;
} KnownSplit;

// The candidates of a shape with one micro-batch and rank order.
typedef struct ChoiceRun {
    TrainPlan plan;  // what they have in common
    bool reaches_neighbours;
    int first, end;
} ChoiceRun;

// A field that the search sets: to each value that is tried, or to what was asked, else the target's own.
typedef struct SearchedField {
    PlanFieldId id;
    bool is_open;
} SearchedField;

typedef struct SpaceBuilder {
    const TuneRequest *request;
    Arena *arena;
    Space *space;
    size_t capacity;
    SearchedField fields[PLAN_FIELD_COUNT];  // slowest first
    int field_count;
    KnownSplit splits[KNOWN_SPLITS];  // the latest ones
    int split_count;
    ChoiceRun runs[KNOWN_RUNS];  // of the shape, the latest ones
    int run_count;
} SpaceBuilder;

// Of the same mesh and batch; the fastest fields first, in which neighbours differ.
static bool same_choices(const SpaceBuilder *builder, const TrainPlan *a, const TrainPlan *b) {
    for (int i = builder->field_count - 1; i >= 0; i--) {
        const PlanFieldId id = builder->fields[i].id;
        if (builder->fields[i].is_open && plan_get(a, id) != plan_get(b, id)) {
            return false;
        }
    }
    const PlanKey left = plan_key(a, 0), right = plan_key(b, 0);
    return plan_keys_equal(&left, &right);
}

static Candidate *room_for_one(SpaceBuilder *builder) {
    Space *space = builder->space;
    if ((size_t)space->candidate_count == builder->capacity) {
        const size_t more = builder->capacity > 0 ? 2 * builder->capacity : FIRST_CANDIDATES;
        space->candidates =
            arena_resize(builder->arena, space->candidates, builder->capacity, more, sizeof *space->candidates);
        builder->capacity = more;
    }
    return &space->candidates[space->candidate_count];
}

static void add_candidate(SpaceBuilder *builder, int shape, const TrainPlan *plan, size_t first_alike) {
    Candidate *added = room_for_one(builder);
    Space *space = builder->space;
    *added = (Candidate){.plan = *plan, .shape = shape};
    target_canonical(builder->request->target, &added->plan);
    for (const Candidate *other = &space->candidates[first_alike]; other < added; other++) {
        if (same_choices(builder, &other->plan, &added->plan)) {
            return;
        }
    }
    space->candidate_count++;
}

// One that can be priced. Compiled kernels outdo others but where backward is split, which is what those are tried for.
static bool is_worth_a_schedule(const TuneRequest *request, const TrainPlan *plan, int value) {
    const Schedule *schedule = schedule_find(pp_schedule_names[value]);
    const bool outdone = request->asked[PLAN_FUSED] == TUNE_ANY && request->target->default_fused == FUSED_COMPILED &&
                         plan->fused != FUSED_COMPILED;
    return schedule && (schedule->splits || !outdone);
}

// Collectives overlapping products copy from neighbours' memory: one node, links beyond PCIe (64 GB/s, of 5.0 x16).
// Grouped products of experts have no such kernel.
static bool reaches_neighbours(const TuneRequest *request, const Mesh *mesh) {
    static const double PCIE_BYTES_PER_S = 64e9;
    const int per_node = cost_ranks_per_node(&request->cluster, mesh);
    return request->model.experts.count == 0 && request->cluster.node.ring.bandwidth_bytes_per_s > PCIE_BYTES_PER_S &&
           mesh_group_placement(mesh, AXIS_BIT(AXIS_TP), per_node).nodes == 1;
}

// Is the schedule that was asked for one that compiled stages, the target's usual ones, cannot have?
static bool splits_compiled(const TuneRequest *request, const TrainPlan *plan) {
    const int asked = request->asked[PLAN_PP_SCHEDULE];
    const Schedule *schedule = asked == TUNE_ANY || asked == PP_FILE ? NULL : schedule_find(pp_schedule_names[asked]);
    return schedule && schedule->splits && plan_has_stages(plan) && request->target->default_fused == FUSED_COMPILED;
}

// A schedule; chunks of equally many layers; neighbours of a node.
static bool can_be_tried(const TuneRequest *request, const TrainPlan *plan, PlanFieldId id, int value) {
    if (id == PLAN_RESHARD_RANKS) {  // fewer take more memory, more leave the node
        return value == 0 || value == cost_ranks_per_node(&request->cluster, &plan->mesh);
    }
    if (id == PLAN_TP_OVERLAP) {
        return value == false || reaches_neighbours(request, &plan->mesh);
    }
    if (!plan_has_stages(plan)) {
        return true;
    }
    const bool chunked = request->asked[PLAN_VIRTUAL_STAGES] != TUNE_ANY && request->asked[PLAN_VIRTUAL_STAGES] > 1;
    const bool grouped = request->asked[PLAN_PP_GROUP] != TUNE_ANY && request->asked[PLAN_PP_GROUP] > 0;
    return id == PLAN_PP_SCHEDULE
               ? is_worth_a_schedule(request, plan, value) && (!chunked || pp_own_chunks((PpSchedule)value) == 0) &&
                     (!grouped || value == PP_INTERLEAVED)
           : id == PLAN_VIRTUAL_STAGES ? value == 1 || space_cuts_evenly(request, plan, value)
                                       : true;
}

bool space_tries(const TuneRequest *request, const TrainPlan *plan, PlanFieldId id, int value) {
    if (id == PLAN_FUSED && splits_compiled(request, plan)) {
        return value == FUSED_EAGER;
    }
    if (!target_offers(request->target, plan, id, value)) {
        return false;
    }
    const int outdoing =
        search_takes(request, SHORTCUT_OUTDONE) ? target_outdoing(request->target, plan, id) : PLAN_ANY;
    return (outdoing == PLAN_ANY || value == outdoing) && can_be_tried(request, plan, id, value);
}

static const KnownSplit *find_split(SpaceBuilder *builder, const TrainPlan *plan) {
    const KnownSplit asked = {.stages = mesh_stages(&plan->mesh),
                              .schedule = (int)plan->pp_schedule,
                              .chunks = plan_chunks(plan),
                              .split = (int)plan->pp_split,
                              .recompute = (int)plan->recompute};
    const int known = builder->split_count < KNOWN_SPLITS ? builder->split_count : KNOWN_SPLITS;
    for (int i = 0; i < known; i++) {
        const KnownSplit *old = &builder->splits[i];
        if (old->stages == asked.stages && old->schedule == asked.schedule && old->chunks == asked.chunks &&
            old->split == asked.split && old->recompute == asked.recompute) {
            return old;
        }
    }
    KnownSplit *made = &builder->splits[builder->split_count++ % KNOWN_SPLITS];
    TrainPlan even = *plan;
    *made = asked;
    made->gains = split_balance(&builder->request->model, builder->request->target, &even);
    made->first = even.pp_first;
    made->last = even.pp_last;
    return made;
}

// Layers of the end stages if not given: the most even split. False if an open search gains nothing from it.
static bool settle_split(SpaceBuilder *builder, TrainPlan *plan) {
    const int *asked = builder->request->asked;
    const bool said = asked[PLAN_PP_FIRST] != TUNE_ANY || asked[PLAN_PP_LAST] != TUNE_ANY;
    if (plan->pp_split < SPLIT_WEIGHTED || !plan_has_stages(plan) || said) {
        return true;
    }
    const KnownSplit *split = find_split(builder, plan);
    plan->pp_first = split->first;
    plan->pp_last = split->last;
    return split->gains || asked[PLAN_PP_SPLIT] != TUNE_ANY;
}

// Whether it has values other than the target's own, or was given. Values that no switch can set are not searched.
static bool is_open(const SpaceBuilder *builder, PlanFieldId id) {
    return plan_fields[id].searched &&
           (builder->request->asked[id] != TUNE_ANY || target_has_choice(builder->request->target, id) ||
            id == PLAN_FUSED);  // what splits backward is not compiled
}

static void find_fields(SpaceBuilder *builder) {
    static const PlanFieldId first[] = {PLAN_ZERO, PLAN_RECOMPUTE, PLAN_RESHARD, PLAN_CP_ROTATE};
    PlanFieldId order[PLAN_FIELD_COUNT];
    plan_fields_from(first, sizeof first / sizeof first[0], order);
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        if (plan_fields[order[i]].searched) {
            builder->fields[builder->field_count++] = (SearchedField){order[i], is_open(builder, order[i])};
        }
    }
}

// Values of a field that a search looks at; what needs memory comes before what may then be spared (search_screen.c).
static int value_count(PlanFieldId id, int asked) {
    return asked != TUNE_ANY           ? 1
           : id == PLAN_REDUCE_BUCKET  ? 2
           : id == PLAN_VIRTUAL_STAGES ? TARGET_MOST_CHUNKS
                                       : plan_fields[id].high - plan_fields[id].low + 1;
}

static int value_at(PlanFieldId id, int asked, int place) {
    return asked != TUNE_ANY          ? asked
           : id == PLAN_REDUCE_BUCKET ? place * TARGET_SMALL_BUCKET
           : id == PLAN_TP_OVERLAP    ? plan_fields[id].high - place
                                      : plan_fields[id].low + place;
}

// The place of the next value that is tried, from one on; value_count where there is none.
static int next_tried(const TuneRequest *request, const TrainPlan *plan, PlanFieldId id, int place) {
    const int asked = request->asked[id], count = value_count(id, asked);
    while (place < count && asked == TUNE_ANY && !space_tries(request, plan, id, value_at(id, asked, place))) {
        place++;
    }
    return place;
}

static bool set_value(SpaceBuilder *builder, PlanFieldId id, int place, TrainPlan *plan) {
    plan_set(plan, id, value_at(id, builder->request->asked[id], place));
    return id != PLAN_PP_SPLIT || settle_split(builder, plan);
}

// Whether a value of the field would matter given the fields that are set.
static bool may_matter(TrainPlan *plan, PlanFieldId id) {
    const int before = plan_get(plan, id);
    plan_set(plan, id, plan_fields[id].high);
    const bool matters = plan_field_matters(plan, id);
    plan_set(plan, id, before);
    return matters;
}

// The searched fields from `at` on, each with the requested value or all that the target offers: different choices may
// lead to the same plan. A field without choices, as in a target without context parallelism, takes its own value,
// which its legality rule rejects.
static void add_choices(SpaceBuilder *builder, int shape, const TrainPlan *chosen, int at, size_t first_alike) {
    const TuneRequest *request = builder->request;
    TrainPlan plan = *chosen;
    for (; at < builder->field_count; at++) {
        const PlanFieldId id = builder->fields[at].id;
        if (!builder->fields[at].is_open || (request->asked[id] == TUNE_ANY && !may_matter(&plan, id))) {
            space_take(request, &plan, id);
            continue;
        }
        const int count = value_count(id, request->asked[id]);
        int place = next_tried(request, &plan, id, 0);
        if (place == count) {
            plan_set(&plan, id, target_usual(request->target, &plan, id));
            continue;
        }
        int next = next_tried(request, &plan, id, place + 1);
        if (next == count) {
            if (!set_value(builder, id, place, &plan)) {
                return;
            }
            continue;
        }
        for (; place < count; place = next, next = place < count ? next_tried(request, &plan, id, place + 1) : count) {
            TrainPlan with = plan;
            if (set_value(builder, id, place, &with)) {
                add_choices(builder, shape, &with, at + 1, first_alike);
            }
        }
        return;
    }
    add_candidate(builder, shape, &plan, first_alike);
}

// Where a layer is missing at each end, embedding and head are there in its place: by the target's rule, or, of
// chunks as even as can be, on the last two ones. Layers that the stages alone do not divide are no worse off in chunks
// where the fullest stage holds as many: 61 of 16 stages are at most 4 each, as one chunk or as two of two.
bool space_cuts_evenly(const TuneRequest *request, const TrainPlan *plan, int chunks) {
    const int stages = mesh_stages(&plan->mesh), parts = stages * chunks, layers = request->model.layers;
    const LayerRule rule = request->target->layer_rule;
    const bool ends = rule == LAYERS_EDGES_IF_UNEVEN || rule == LAYERS_EVEN;
    const int fullest = chunks * ((layers + parts - 1) / parts), alone = (layers + stages - 1) / stages;
    return layers % parts == 0 ||
           (ends && ((layers + 2) % parts == 0 || (layers % stages != 0 && parts <= layers && fullest == alone)));
}

// Accumulation steps for this micro-batch; 0 = the micro-batch is not a choice of this shape.
static int accumulation(const TuneRequest *request, int64_t data_ranks, int micro_batch) {
    const int64_t unit = data_ranks * micro_batch;
    return request->global_batch % unit == 0 ? (int)(request->global_batch / unit) : 0;
}

// One step where no number of them makes the batch.
static int some_accumulation(const TuneRequest *request, const Mesh *mesh, int micro_batch) {
    const int steps = accumulation(request, mesh_group_size(mesh, AXES_BATCH), micro_batch);
    return steps > 0 ? steps : 1;
}

// Which layers are recomputed is open only where it is open whether any are.
bool space_fits(const TuneRequest *request, PlanFieldId id) {
    if (id == PLAN_ETP) {
        return expert_cuts_open(request);
    }
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

// What is the same in all candidates of a shape.
static void begin_plan(const TuneRequest *request, const Mesh *mesh, TrainPlan *plan) {
    *plan = (TrainPlan){.mesh = *mesh, .seq = request->seq};
    space_job(request, plan);
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope == PLAN_OF_SHAPE && !plan_fields[id].searched) {
            space_take(request, plan, (PlanFieldId)id);
        }
    }
    space_take(request, plan, PLAN_ZERO);  // of shapes without a choice too
}

void space_plain_plan(const TuneRequest *request, const Mesh *mesh, TrainPlan *plan) {
    begin_plan(request, mesh, plan);
    plan->micro_batch = request->micro_batch > 0 ? request->micro_batch : 1;
    plan->grad_accum = 1;
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].searched) {
            space_take(request, plan, (PlanFieldId)id);
        }
    }
    target_canonical(request->target, plan);
}

// The plain plan with those choices that the fewest rules reject.
static void lenient_plan(const TuneRequest *request, const Mesh *mesh, TrainPlan *plan) {
    space_plain_plan(request, mesh, plan);
    if (plan->offload == OFFLOAD_ACTIVATIONS && request->asked[PLAN_RECOMPUTE] == TUNE_ANY) {  // or nothing to offload
        plan->recompute = request->target->offloads_saved ? RECOMPUTE_NONE : RECOMPUTE_FULL;
    }
    if (splits_compiled(request, plan) && request->asked[PLAN_FUSED] == TUNE_ANY) {
        plan->fused = FUSED_EAGER;
    }
    target_canonical(request->target, plan);
}

// Are there micro-steps, and not fewer than stages where the micro-batch could be smaller?
static bool is_filled(const TrainPlan *plan) {
    return plan->grad_accum > 0 && (plan->micro_batch == 1 || plan->grad_accum >= mesh_stages(&plan->mesh));
}

// Pipelines for which the plan with the most micro-steps is thrown out whatever its other choices are: too many stages
// for the layers or the batch, or another axis that the model's sizes forbid.
static bool is_hopeless(const TuneRequest *request, const Mesh *mesh, Arena *arena) {
    TrainPlan plan;
    const char *reason = NULL;
    lenient_plan(request, mesh, &plan);
    if (request->asked[PLAN_ZERO] == TUNE_ANY && target_has_choice(request->target, PLAN_ZERO) && plan.zero > 1) {
        plan.zero = 1;  // with which the fewest shapes are rejected
        target_canonical(request->target, &plan);
    }
    plan.grad_accum = some_accumulation(request, mesh, plan.micro_batch);
    return mesh_has_stages(mesh) && search_takes(request, SHORTCUT_STAGES) &&
           prune(request, &plan, NULL, arena, &reason) != NULL;
}

// Candidates that differ from earlier ones in micro-batch, micro-steps and rank order alone.
static void add_alike(SpaceBuilder *builder, const ChoiceRun *earlier, const TrainPlan *plan) {
    Mesh mesh = plan->mesh;
    mesh_canonical_order(&mesh);
    for (int i = earlier->first; i < earlier->end; i++) {
        Candidate *added = room_for_one(builder);
        *added = builder->space->candidates[i];
        added->plan.mesh.order = mesh.order;
        added->plan.micro_batch = plan->micro_batch;
        added->plan.grad_accum = plan->grad_accum;
        builder->space->candidate_count++;
    }
}

// All choices other than the plan's own.
static void add_run(SpaceBuilder *builder, int shape, const TrainPlan *plan) {
    Space *space = builder->space;
    ChoiceRun run = {.plan = *plan,
                     .reaches_neighbours = reaches_neighbours(builder->request, &plan->mesh),
                     .first = space->candidate_count};
    const ChoiceRun *alike = NULL;
    for (int i = 0; i < builder->run_count && i < KNOWN_RUNS && !alike; i++) {
        const ChoiceRun *known = &builder->runs[i];
        const bool same = known->reaches_neighbours == run.reaches_neighbours &&
                          target_choices_alike(builder->request->target, &known->plan, plan);
        alike = same ? known : NULL;
    }
    if (alike) {
        add_alike(builder, alike, plan);
        return;
    }
    add_choices(builder, shape, plan, 0, (size_t)space->candidate_count);
    run.end = space->candidate_count;
    builder->runs[builder->run_count++ % KNOWN_RUNS] = run;
}

// The rule that throws it out whichever way states are sharded.
static const PruneRule *prune_any_zero(const TuneRequest *request, const TrainPlan *plan, Arena *arena) {
    const bool open = request->asked[PLAN_ZERO] == TUNE_ANY;
    const int first = open ? 0 : plan->zero, last = open ? request->target->max_zero : plan->zero;
    const PruneRule *rule = NULL;
    for (int zero = first; zero <= last; zero++) {
        TrainPlan tried = *plan;
        const char *reason;
        tried.zero = zero;
        target_canonical(request->target, &tried);
        const PruneRule *own = prune(request, &tried, NULL, arena, &reason);
        if (!own || (rule && own != rule)) {
            return NULL;
        }
        rule = own;
    }
    return rule;
}

// Where there are many shapes, those without stages that one rule throws out whatever the choices are: with any batch,
// and as many sequences on a rank as there are ranks of tp; or for its weights alone.
static bool is_thrown_out(const TuneRequest *request, const Mesh *mesh, int shapes, Arena *arena) {
    TuneRequest any_batch = *request;
    TrainPlan plan;
    any_batch.global_batch = 0;
    if (mesh_has_stages(mesh) || shapes <= SEARCH_MANY_SHAPES || !search_takes(request, SHORTCUT_STAGES)) {
        return false;
    }
    lenient_plan(request, mesh, &plan);
    plan.grad_accum = accumulation(request, mesh_group_size(mesh, AXES_BATCH), plan.micro_batch);
    const bool makes_batch = plan.grad_accum > 0;
    plan.grad_accum = makes_batch ? plan.grad_accum : 1;
    TrainPlan more = plan;
    more.micro_batch *= mesh->size[AXIS_TP];
    const PruneRule *rule = prune_any_zero(&any_batch, &plan, arena);
    return rule ? rule == prune_any_zero(&any_batch, &more, arena)
                : makes_batch && prune_any_zero(request, &plan, arena);
}

static void add_shape(SpaceBuilder *builder, int shape) {
    const TuneRequest *request = builder->request;
    const size_t first = (size_t)builder->space->candidate_count;
    TrainPlan plan;
    builder->run_count = 0;
    begin_plan(request, &builder->space->meshes[shape], &plan);
    int order_count;
    const AxisOrder *orders = rank_orders_find(request, &plan.mesh, builder->arena, &order_count);
    const int64_t data_ranks = mesh_group_size(&plan.mesh, AXES_BATCH);
    const int lowest = request->micro_batch > 0 ? request->micro_batch : 1;
    const bool hopeless = is_hopeless(request, &plan.mesh, builder->arena) ||
                          is_thrown_out(request, &plan.mesh, builder->space->mesh_count, builder->arena);
    const int highest = hopeless ? 0 : request->micro_batch > 0 ? request->micro_batch : SPACE_MAX_MICRO_BATCH;
    for (int micro_batch = lowest; micro_batch <= highest; micro_batch++) {
        plan.micro_batch = micro_batch;
        plan.grad_accum = accumulation(request, data_ranks, micro_batch);
        for (int i = 0; i < order_count && is_filled(&plan); i++) {
            plan.mesh.order = orders[i];
            add_run(builder, shape, &plan);
        }
    }
    if ((size_t)builder->space->candidate_count == first) {  // a rule will say why, of what was asked
        lenient_plan(request, &builder->space->meshes[shape], &plan);
        plan.mesh.order = orders[0];
        plan.grad_accum = hopeless ? some_accumulation(request, &plan.mesh, lowest) : 1;
        add_candidate(builder, shape, &plan, first);
    }
}

static bool is_legal(const TuneRequest *request, const Mesh *mesh, Arena *arena) {
    TrainPlan plan;
    const char *reason = NULL;
    lenient_plan(request, mesh, &plan);
    plan.grad_accum = some_accumulation(request, mesh, plan.micro_batch);
    target_check(request->target, &request->model, &plan, arena, &reason);
    return !reason;
}

// Where nothing is sharded, ranks of dp_shard are replicas: of meshes that differ in what those are called, the one
// with the most replicas is listed; and the one whose place was asked for.
static bool has_twin(const TuneRequest *request, const Mesh *mesh, Arena *arena) {
    const int shards = mesh->size[AXIS_DP_SHARD];
    const bool asked_for = mesh_same_shape(mesh, &request->baseline);
    if (request->asked[PLAN_ZERO] != 0 || shards == 1 || asked_for || !is_legal(request, mesh, arena)) {
        return false;
    }
    for (int fewer = 1; fewer < shards; fewer++) {
        Mesh twin = *mesh;
        twin.size[AXIS_DP_SHARD] = fewer;
        twin.size[AXIS_DP_REPLICATE] *= shards / fewer;
        if (shards % fewer == 0 && is_legal(request, &twin, arena)) {
            return true;
        }
    }
    return false;
}

void space_meshes(const TuneRequest *request, Arena *arena, Space *space) {
    *space = (Space){0};
    const AxisMask without = request->model.experts.count == 0 ? AXIS_BIT(AXIS_EP) : 0;
    const AxisMask axes = (AXES_FIRST | request->target->axes) & ~without;
    const int count = mesh_enumerate(request->world, axes, NULL, 0);
    space->meshes = ARENA_ARRAY(arena, Mesh, count);
    mesh_enumerate(request->world, axes, space->meshes, count);
    for (int shape = 0; shape < count; shape++) {
        if (!has_twin(request, &space->meshes[shape], arena)) {
            space->meshes[space->mesh_count++] = space->meshes[shape];
        }
    }
}

// Of the axes that are no data ranks at most one is another, twice or half as long.
static bool is_near(const Mesh *mesh, const Mesh *other) {
    bool near = true;
    int others = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const int a = mesh->size[axis], b = other->size[axis];
        const bool is_data = AXES_BATCH >> axis & 1;
        near &= is_data || (a <= 2 * b && b <= 2 * a);
        others += !is_data && a != b;
    }
    return near && others <= 1;
}

void space_enumerate_near(const TuneRequest *request, const Mesh *mesh, Arena *arena, Space *space) {
    space_meshes(request, arena, space);
    int kept = 0;
    for (int shape = 0; shape < space->mesh_count; shape++) {
        if (!mesh || is_near(&space->meshes[shape], mesh)) {
            space->meshes[kept++] = space->meshes[shape];
        }
    }
    space->mesh_count = kept;
    SpaceBuilder builder = {.request = request, .arena = arena, .space = space};
    find_fields(&builder);
    for (int shape = 0; shape < space->mesh_count; shape++) {
        add_shape(&builder, shape);
    }
    space->candidates = arena_resize(arena, space->candidates, builder.capacity, (size_t)space->candidate_count,
                                     sizeof *space->candidates);
}
