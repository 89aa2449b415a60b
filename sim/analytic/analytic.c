// The estimate: three memoised pieces (sharding costs of a mesh, a micro-step's overlap, memory curves) and a short
// run over them. A piece that is missing is made from a lowered program, so the estimate follows whatever the lowering
// does; micro-steps and curves take theirs from one program per structure, resized to the plan. Not modelled: see
// contention.c and overlap_run.c.

#include "sim/analytic/analytic_internal.h"

#include <string.h>

#include "sim/analytic/analytic_keys.h"
#include "sim/analytic/memory_curve.h"
#include "sim/analytic/overlap.h"
#include "sim/step/resizable.h"

enum { DEMAND_WORDS = 3 };

// What one mesh (and stage, and dtype) determines.
typedef struct MeshPiece {
    ShardCosts costs;
    PlacementWords placed;
    Task next_gather[UNIT_COUNT];         // of updated weights beside forward; not there: payload_bytes 0
    Group gathering[UNIT_COUNT];          // its ranks
    Unit units[UNIT_COUNT];               // whose parameters share its buckets
    uint64_t demand_words[DEMAND_WORDS];  // which demands its tasks have: meshes of equal ones share contention
} MeshPiece;

enum { PROGRAMS_BYTES = 12 << 20 };

Analytic *analytic_new(const ModelSpec *model, const CostModel *cost, Arena *arena) {
    Analytic *analytic = ARENA_NEW(arena, Analytic);
    *analytic = (Analytic){.model = *model, .cost = *cost, .arena = arena, .slow = {.compute = 1, .links = 1}};
    analytic->cost.paired = true;
    analytic->memory_of = analytic->programs_of = analytic;
    analytic->traces = &analytic->own_traces;
    analytic->orders.arena = analytic->fluids.arena = arena;
    analytic->blocks.arena = analytic->fluids.runs_arena = &analytic->times_arena;
    return analytic;
}

void analytic_ignore_contention(Analytic *analytic) {
    analytic->no_contention = true;
}

void analytic_share_memory(Analytic *analytic, Analytic *known) {
    analytic->memory_of = known;
}

void analytic_share_programs(Analytic *analytic, Analytic *known) {
    analytic->programs_of = known;
}

void analytic_share_traces(Analytic *analytic, LiveTraces *traces) {
    analytic->traces = traces;
}

void analytic_set_slowdowns(Analytic *analytic, double compute_slowdown, double link_slowdown) {
    analytic->slow = (Slowdowns){.compute = compute_slowdown, .links = link_slowdown};
}

void analytic_free(Analytic *analytic) {
    arena_free(&analytic->scratch);
    arena_free(&analytic->programs_arena);
    arena_free(&analytic->times_arena);
    live_traces_free(&analytic->own_traces);
}

static Status lower(Analytic *analytic, const AlonePlan *of, int micro_steps, StepProgram *program, Error *error) {
    TrainPlan lowered = of->plan;
    lowered.grad_accum = micro_steps;
    return step_lower_alone(&analytic->model, &lowered, analytic->cost.target, of->stage, &analytic->scratch, program,
                            error);
}

// Enough micro-steps that first, middle and last occur.
enum { ALL_VARIANTS = 3 };

// All that contention reads of a mesh's costs (overlap_contention.c): demands, and of a layer which kinds occur.
static void add_demand_words(Analytic *analytic, MeshPiece *piece) {
    static const ShardKind kinds[] = {SHARD_GATHER,   SHARD_SCATTER, SHARD_REPLICA, SHARD_ADAMW,
                                      SHARD_REGATHER, SHARD_COPY_IN, SHARD_ADD};
    enum { KINDS = sizeof kinds / sizeof *kinds, DEMAND_BITS = 20, DEMANDS_OF_WORD = 3 };
    _Static_assert((int)KINDS <= (int)DEMANDS_OF_WORD * (int)DEMAND_WORDS, "a number each");
    for (int i = 0; i < KINDS; i++) {
        uint64_t *word = &piece->demand_words[i / DEMANDS_OF_WORD];
        *word = *word << DEMAND_BITS | fluid_demand_number(&analytic->fluids, &piece->costs.demand[kinds[i]]);
    }
    for (int i = 0; i < KINDS; i++) {
        uint64_t *last = &piece->demand_words[DEMAND_WORDS - 1];
        *last = *last << 1 | (piece->costs.seconds[UNIT_LAYER][kinds[i]] > 0);
    }
}

// The exposed part of a gather that overlaps the next forward depends on the micro-batch and on a pipeline's chunks,
// which a mesh does not say.
static void keep_next_gather(const StepProgram *program, MeshPiece *piece) {
    for (int32_t i = 0; i < program->task_count && program->target->runtime.gathers_beside_forward; i++) {
        const Task *task = &program->tasks[i];
        const bool layered = task->unit == UNIT_LAYER || task->unit == UNIT_EXPERTS;
        if (layered && shard_kind(program, task) == SHARD_REGATHER && task_is_collective(task)) {
            Task *next = &piece->next_gather[task->unit];
            *next = *task;
            piece->gathering[task->unit] = program->groups[task->group];
            next->group = 0;
            next->operand_count = 0;  // a price of links reads none
            memcpy(piece->units, program->units, (size_t)program->unit_count * sizeof *piece->units);
        }
    }
}

// The mesh's costs as they are with the plan's micro-batch and chunks.
static const ShardCosts *costs_of(const Analytic *analytic, const AlonePlan *of, const MeshPiece *piece,
                                  ShardCosts *room) {
    if (piece->next_gather[UNIT_LAYER].payload_bytes == 0 && piece->next_gather[UNIT_EXPERTS].payload_bytes == 0) {
        return &piece->costs;
    }
    Unit units[UNIT_COUNT];
    memcpy(units, piece->units, sizeof units);
    *room = piece->costs;
    for (int unit = 0; unit < UNIT_COUNT; unit++) {
        if (piece->next_gather[unit].payload_bytes == 0) {
            continue;
        }
        Group gathering = piece->gathering[unit];
        const StepProgram program = {.model = analytic->model,
                                     .plan = of->pipeline ? *of->pipeline : of->plan,
                                     .target = analytic->cost.target,
                                     .groups = &gathering,
                                     .group_count = 1,
                                     .units = units,
                                     .unit_count = UNIT_COUNT,
                                     .stage = of->stage};
        room->seconds[unit][SHARD_REGATHER] =
            cost_task(&analytic->cost, &program, &piece->next_gather[unit]).seconds * analytic->slow.links;
    }
    return room;
}

static Status make_mesh(Analytic *analytic, const AlonePlan *of, const MemoKey *key, MeshPiece **made, Error *error) {
    const TrainPlan *plan = &of->plan;
    StepProgram program;
    TRY(lower(analytic, of, plan->update_in_backward ? 1 : ALL_VARIANTS, &program, error));
    const int per_node = cost_ranks_per_node(analytic->cost.profile, &plan->mesh);
    MeshPiece *piece = ARENA_NEW(&analytic->times_arena, MeshPiece);
    shard_costs_add(&analytic->cost, &analytic->slow, &program, &piece->costs);
    piece->placed = analytic_placement(plan, per_node);
    add_demand_words(analytic, piece);
    keep_next_gather(&program, piece);
    memo_add(&analytic->times->meshes, key, piece, &analytic->times_arena);
    arena_reset(&analytic->scratch);
    *made = piece;
    return STATUS_OK;
}

typedef struct KnownProgram {
    ResizableProgram *program;
    OverlapPatterns patterns;
    bool looked_at, copies_whole;  // whether it copies whole gradients, once that was looked for
} KnownProgram;

// What a micro-step's overlap is made from.
typedef struct MicroProgram {
    StepProgram *program;
    OverlapPatterns *patterns;  // of its structure; NULL where it is a program of its own
    bool padding_shows;         // in what its blocks take
} MicroProgram;

// Where padding shows, one for each that plans of the same key need, so that none depends on which of them came first.
typedef struct MicroStep {
    Overlap overlap;
    int32_t unit_count;  // whose padding shows
    Unit units[UNIT_COUNT];
    struct MicroStep *next;
} MicroStep;

// For the plan with that many micro-steps; a neighbour's with few shards unless its own are requested.
static Status find_program(Analytic *analytic, const TrainPlan *plan, int stage, int micro_steps, bool own_shards,
                           KnownProgram **found, Error *error) {
    TrainPlan lowered = *plan;
    lowered.grad_accum = micro_steps;
    const MemoKey key = analytic_program_key(plan, stage, micro_steps, own_shards);
    Analytic *owner = analytic->programs_of;
    Arena *arena = &owner->programs_arena;
    *found = memo_find(&owner->programs, &key);
    if (*found) {
        return STATUS_OK;
    }
    if (arena->used_bytes > PROGRAMS_BYTES) {
        arena_reset(arena);
        owner->programs = (Memo){0};
    }
    if (!own_shards) {
        lowered = memory_neighbour(&lowered, FEW_SHARDS);
    }
    *found = ARENA_NEW(arena, KnownProgram);
    (*found)->patterns.arena = arena;
    TRY(resizable_lower(&analytic->model, &lowered, analytic->cost.target, stage, arena, &analytic->scratch,
                        &(*found)->program, error));
    memo_add(&owner->programs, &key, *found, arena);
    return STATUS_OK;
}

static bool padded_for(const TrainPlan *plan, const Unit *units, int32_t count) {
    const int32_t shards = plan->zero > 0 ? plan_shard_count(plan) : 1;
    bool alike = true;
    for (int32_t u = 0; u < count; u++) {
        const int32_t of_unit = u == UNIT_EXPERTS && plan->zero > 0 ? analytic_expert_shards(plan) : shards;
        alike &= units[u].padded_elements == unit_padded(units[u].elements, of_unit > 1 ? of_unit : 1);
    }
    return alike;
}

// What sharding makes of a unit is in a mesh's piece, not in a micro-step's. But some targets copy a whole gradient
// inside a block, with the padding that its shards need.
static bool copies_whole(KnownProgram *known, const StepProgram *program) {
    for (int32_t i = 0; i < program->task_count && !known->looked_at && !known->copies_whole; i++) {
        const Task *task = &program->tasks[i];
        known->copies_whole = task->unit >= 0 && shard_kind(program, task) == SHARD_KINDS;
    }
    known->looked_at = true;
    return known->copies_whole;
}

static Status micro_step_program(Analytic *analytic, const TrainPlan *plan, int stage, int micro_steps,
                                 MicroProgram *made, Error *error) {
    KnownProgram *known;
    const bool planned = target_is_executor(analytic->cost.target);
    TRY(find_program(analytic, plan, stage, micro_steps, planned, &known, error));
    TRY(resizable_at(known->program, plan->micro_batch, &analytic->scratch, &made->program, error));
    made->padding_shows = !planned && copies_whole(known, made->program);
    if (made->padding_shows && !padded_for(plan, made->program->units, made->program->unit_count)) {
        TRY(find_program(analytic, plan, stage, micro_steps, true, &known, error));
        TRY(resizable_at(known->program, plan->micro_batch, &analytic->scratch, &made->program, error));
    }
    TrainPlan placed = *plan;
    placed.grad_accum = micro_steps;
    step_place(made->program, &placed);
    made->patterns = resizable_owns(known->program, made->program) ? &known->patterns : NULL;
    return STATUS_OK;
}

static Status make_overlap(Analytic *analytic, const TrainPlan *plan, int stage, MicroStep **made, Error *error) {
    MicroProgram from;
    TRY(micro_step_program(analytic, plan, stage, plan->grad_accum == 1 ? 1 : ALL_VARIANTS, &from, error));
    TaskCost *costs = cost_program(&analytic->cost, from.program, &analytic->scratch);
    for (int32_t i = 0; i < from.program->task_count; i++) {
        costs[i].seconds *= slowdown_of(&analytic->slow, &from.program->tasks[i]);
    }
    MicroStep *step = ARENA_NEW(&analytic->times_arena, MicroStep);
    step->unit_count = from.padding_shows ? from.program->unit_count : 0;
    memcpy(step->units, from.program->units, (size_t)step->unit_count * sizeof *step->units);
    overlap_add(&step->overlap, from.program, costs, from.patterns, &analytic->blocks, &analytic->scratch);
    arena_reset(&analytic->scratch);
    *made = step;
    return STATUS_OK;
}

static Status find_overlap(Analytic *analytic, const TrainPlan *plan, int stage, const MemoKey *key, Overlap **found,
                           Error *error) {
    MicroStep *first = memo_find(&analytic->times->overlaps, key), *step = first;
    while (step && !padded_for(plan, step->units, step->unit_count)) {
        step = step->next;
    }
    if (!step) {
        TRY(make_overlap(analytic, plan, stage, &step, error));
        if (first) {
            step->next = first->next;
            first->next = step;
        } else {
            memo_add(&analytic->times->overlaps, key, step, &analytic->times_arena);
        }
    }
    *found = &step->overlap;
    return STATUS_OK;
}

static const OverlapContention *contention_of(Analytic *analytic, const Overlap *overlap, const MeshPiece *mesh) {
    const MemoKey key = {
        .words = {(uint64_t)(uintptr_t)overlap, mesh->demand_words[0], mesh->demand_words[1], mesh->demand_words[2]}};
    OverlapContention *contention = memo_find(&analytic->times->contentions, &key);
    if (!contention) {
        contention = ARENA_NEW(&analytic->times_arena, OverlapContention);
        overlap_contention_make(overlap, &mesh->costs, &analytic->cost.profile->interference, &analytic->fluids,
                                contention);
        memo_add(&analytic->times->contentions, &key, contention, &analytic->times_arena);
    }
    return contention;
}

static NeighbourSizes *find_sizes(Analytic *analytic, const TrainPlan *plan) {
    const MemoKey key = analytic_sizes_key(plan);
    NeighbourSizes *sizes = memo_find(&analytic->sizes, &key);
    if (!sizes) {
        sizes = ARENA_NEW(analytic->arena, NeighbourSizes);
        memo_add(&analytic->sizes, &key, sizes, analytic->arena);
    }
    return sizes;
}

static Status make_memory(Analytic *analytic, const TrainPlan *plan, int stage, const MemoKey *key, MemoryCurve **made,
                          Error *error) {
    Analytic *owner = analytic->memory_of;
    const int micro_steps = memory_micro_steps(plan);
    *made = ARENA_NEW(owner->arena, MemoryCurve);
    if (target_is_executor(analytic->cost.target)) {
        MicroProgram from;
        TRY(micro_step_program(analytic, plan, stage, micro_steps, &from, error));
        TRY(memory_curve_planned(from.program, owner->traces, &analytic->scratch, owner->arena, *made, error));
    } else {
        CurveSource from = {.model = &analytic->model,
                            .stage = stage,
                            .sizes = find_sizes(analytic, plan),
                            .sizes_arena = analytic->arena,
                            .traces = owner->traces,
                            .scratch = &analytic->scratch};
        KnownProgram *known;
        TRY(find_program(analytic, plan, stage, micro_steps, false, &known, error));
        from.few_shards = known->program;
        TRY(memory_curve_make(&from, plan, owner->arena, *made, error));
    }
    memo_add(&owner->memories, key, *made, owner->arena);
    arena_reset(&analytic->scratch);
    return STATUS_OK;
}

static void fill_estimate(const OverlapTimes *times, double fixed_s, Estimate *estimate) {
    double rest_s = times->step_s - times->compute_s - times->optimizer_s;
    *estimate = (Estimate){.step_s = times->step_s + fixed_s,
                           .compute_s = times->compute_s,
                           .optimizer_s = times->optimizer_s,
                           .forward_lead_s = times->forward_lead_s,
                           .lead_s = times->lead_s,
                           .once = times->once,
                           .update = times->update};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        estimate->exposed_s[axis] = times->exposed_s[axis];
        rest_s -= times->exposed_s[axis];
    }
    estimate->overhead_s = rest_s + fixed_s;
}

static Status find_pieces(Analytic *analytic, const AlonePlan *of, MeshPiece **mesh, Overlap **overlap, Error *error) {
    const MemoKey key = analytic_mesh_key(&of->plan, of->stage);
    *mesh = memo_find(&analytic->times->meshes, &key);
    if (!*mesh) {
        TRY(make_mesh(analytic, of, &key, mesh, error));
    }
    const MemoKey micro_key = analytic_overlap_key(&of->plan, of->stage, &(*mesh)->placed);
    return find_overlap(analytic, &of->plan, of->stage, &micro_key, overlap, error);
}

Status analytic_beside_layers(Analytic *analytic, const AlonePlan *of, const ShareDemand *demand,
                              BesideLayers beside[LAYER_PASSES], Error *error) {
    const Interference *interference = &analytic->cost.profile->interference;
    MeshPiece *mesh;
    Overlap *overlap;
    TRY(find_pieces(analytic, of, &mesh, &overlap, error));
    const uint64_t numbers[BACKGROUNDS] = {[BACKGROUND_GATHER] = fluid_demand_number(&analytic->fluids, demand)};
    for (int pass = 0; pass < LAYER_PASSES; pass++) {
        const FluidBlock *fluid = &overlap->fluid[pass];
        const double alone_s = fluid_run_known(&analytic->fluids, fluid, numbers, 0, interference).seconds;
        const FluidResponse both = fluid_run_known(&analytic->fluids, fluid, numbers, GATHERS, interference);
        beside[pass] = (BesideLayers){both.seconds > 0 ? 1 - alone_s / both.seconds : 0, both.rate[BACKGROUND_GATHER]};
    }
    return STATUS_OK;
}

// alone: as if what data ranks do took no time.
static Status time_paired(Analytic *analytic, const AlonePlan *of, bool alone, Estimate *estimate, Error *error) {
    static const ShardCosts none = {.zero_s = 0};
    const TrainPlan *plan = &of->plan;
    MeshPiece *mesh;
    Overlap *overlap;
    TRY(find_pieces(analytic, of, &mesh, &overlap, error));
    OverlapTimes times;
    ShardCosts room;
    const bool apart = analytic->no_contention || alone;
    const OverlapContention *contention = apart ? NULL : contention_of(analytic, overlap, mesh);
    const ShardCosts *costs = alone ? &none : costs_of(analytic, of, mesh, &room);
    const HostStops stops = stage_host_stops(of);
    Overlap folded;
    // Alone each stage has one end of the model; of a schedule that turns round one stage has both, and one table.
    if (of->pipeline && plan_is_folded(of->pipeline) && !target_reduces_late(analytic->cost.target, plan)) {
        folded = *overlap;
        folded.late_units = 0;
        overlap = &folded;
    }
    overlap_run(overlap, costs, contention, &stops, plan->grad_accum, &times);
    fill_estimate(&times, cost_step_fixed_s(&analytic->cost, &analytic->model, plan), estimate);
    return STATUS_OK;
}

void analytic_mix_in(Estimate *a, const Estimate *b, double share) {
    a->step_s += (b->step_s - a->step_s) * share;
    a->compute_s += (b->compute_s - a->compute_s) * share;
    a->optimizer_s += (b->optimizer_s - a->optimizer_s) * share;
    a->overhead_s += (b->overhead_s - a->overhead_s) * share;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        a->exposed_s[axis] += (b->exposed_s[axis] - a->exposed_s[axis]) * share;
    }
}

Status analytic_time_alone(Analytic *analytic, const AlonePlan *of, Estimate *estimate, Error *error) {
    return time_paired(analytic, of, true, estimate, error);
}

// A micro-step without a partner takes what it takes without ep_overlap; pieces do not know how many there are.
Status analytic_time_alike(Analytic *analytic, const AlonePlan *of, Estimate *estimate, Error *error) {
    TRY(time_paired(analytic, of, false, estimate, error));
    if (!of->plan.ep_overlap) {
        return STATUS_OK;
    }
    AlonePlan without = *of;
    Estimate unpaired;
    without.plan.ep_overlap = false;
    TRY(time_paired(analytic, &without, false, &unpaired, error));
    analytic_mix_in(estimate, &unpaired, cost_unpaired_share(of->pipeline ? of->pipeline : &of->plan));
    return STATUS_OK;
}

Status analytic_add_bytes(Analytic *analytic, const TrainPlan *plan, int stage, double in_flight, bool drains,
                          Estimate *estimate, Error *error) {
    const MemoKey key = analytic_memory_key(analytic, plan, stage);
    MemoryCurve *memory = memo_find(&analytic->memory_of->memories, &key);
    if (!memory) {
        TRY(make_memory(analytic, plan, stage, &key, &memory, error));
    }
    const double share = plan->zero > 0 ? 1.0 / plan_shard_count(plan) : 1;
    memory_curve_at(memory, plan->micro_batch, share, in_flight, drains, estimate);
    if (!target_is_executor(analytic->cost.target)) {
        estimate->reserved_bytes += target_overlap_bytes(analytic->cost.target, &analytic->model, plan);
    }
    return STATUS_OK;
}

bool analytic_bytes_are_known(Analytic *analytic, const TrainPlan *plan, int stage) {
    const MemoKey key = analytic_memory_key(analytic, plan, stage);
    return memo_find(&analytic->memory_of->memories, &key) != NULL;
}

bool analytic_is_hopeless(const Analytic *analytic, double step_s) {
    return analytic->limits.step_s > 0 && step_s > analytic->limits.step_s;
}

bool analytic_wants_bytes(const Analytic *analytic, double step_s) {
    return !analytic->limits.no_bytes && !(analytic->limits.time_only && analytic_is_hopeless(analytic, step_s));
}

Status analytic_no_bytes(Estimate *estimate) {
    estimate->is_bound = true;
    return STATUS_OK;
}

static Status estimate_alike(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    const AlonePlan of = {.plan = *plan};
    TRY(analytic_time_alike(analytic, &of, estimate, error));
    return analytic_wants_bytes(analytic, estimate->step_s)
               ? analytic_add_bytes(analytic, plan, 0, 1, false, estimate, error)
               : analytic_no_bytes(estimate);
}

Status analytic_estimate_whole(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    return plan_has_stages(plan) ? analytic_estimate_stages(analytic, plan, estimate, error)
                                 : estimate_alike(analytic, plan, estimate, error);
}

Status analytic_estimate_bytes(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    if (plan_has_stages(plan)) {
        return analytic_bytes_of_stages(analytic, plan, estimate, error);
    }
    *estimate = (Estimate){0};
    return analytic_add_bytes(analytic, plan, 0, 1, false, estimate, error);
}

Status analytic_estimate(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    analytic_see_chips(analytic, plan);
    TRY(plan_keeps_layers(plan) ? analytic_estimate_partly(analytic, plan, estimate, error)
                                : analytic_estimate_whole(analytic, plan, estimate, error));
    cost_wait_for_data(&analytic->cost, plan, &estimate->step_s, &estimate->overhead_s);
    return STATUS_OK;
}

// To an estimate whose time is known.
static Status add_bytes_alone(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    const Estimate times = *estimate;
    TRY(analytic_estimate_bytes(analytic, plan, estimate, error));
    estimate->step_s = times.step_s;
    estimate->compute_s = times.compute_s;
    estimate->bubble_s = times.bubble_s;
    estimate->is_bound = times.is_bound;
    return STATUS_OK;
}

Status analytic_estimate_within(Analytic *analytic, const TrainPlan *plan, const EstimateLimits *limits,
                                Estimate *estimate, Error *error) {
    Estimate bound;
    if (limits->step_s > 0 && analytic_bound(analytic, plan, &bound) && bound.step_s > limits->step_s) {
        *estimate = bound;
        return limits->time_only ? STATUS_OK : add_bytes_alone(analytic, plan, estimate, error);
    }
    analytic->limits = *limits;
    const Status status = analytic_estimate(analytic, plan, estimate, error);
    analytic->limits = (EstimateLimits){0};
    return status;
}
