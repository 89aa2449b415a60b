// The estimate: three memoised pieces (sharding costs of a mesh, a micro-step's overlap, memory curves) and a short
// run over them. A piece that is missing is made from a lowered program, so the estimate follows whatever the lowering
// does; micro-steps and curves take theirs from one program per structure, resized to the plan. Not modelled: see
// contention.c and overlap_run.c.

#include "sim/analytic/analytic_internal.h"

#include <string.h>

#include "sim/analytic/memory_curve.h"
#include "sim/analytic/overlap.h"
#include "sim/plan/plan_fields.h"
#include "sim/step/resizable.h"

enum { DEMAND_WORDS = 3 };

// Where the groups inside a layer lie, as key words.
typedef struct PlacementWords {
    uint64_t tp, cp, sp, experts;
} PlacementWords;

// What one mesh (and stage, and dtype) determines.
typedef struct MeshPiece {
    ShardCosts costs;
    PlacementWords placed;
    Task next_gather;                     // of a layer's updated weights; not there: payload_bytes 0
    Group gathering;                      // its ranks
    uint64_t demand_words[DEMAND_WORDS];  // which demands its tasks have: meshes of equal ones share contention
} MeshPiece;

enum { PROGRAMS_BYTES = 12 << 20 };

Analytic *analytic_new(const ModelSpec *model, const CostModel *cost, Arena *arena) {
    Analytic *analytic = ARENA_NEW(arena, Analytic);
    *analytic =
        (Analytic){.model = *model, .cost = *cost, .arena = arena, .slow = {.compute = 1, .links = 1}, .in_flight = 1};
    analytic->cost.paired = true;
    analytic->memory_of = analytic;
    analytic->traces = &analytic->own_traces;
    analytic->blocks.arena = analytic->fluids.arena = analytic->orders.arena = arena;
    return analytic;
}

void analytic_ignore_contention(Analytic *analytic) {
    analytic->no_contention = true;
}

void analytic_share_memory(Analytic *analytic, Analytic *known) {
    analytic->memory_of = known;
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
    live_traces_free(&analytic->own_traces);
}

static Status lower(Analytic *analytic, const TrainPlan *plan, int micro_steps, StepProgram *program, Error *error) {
    TrainPlan lowered = *plan;
    lowered.grad_accum = micro_steps;
    return step_lower_alone(&analytic->model, &lowered, analytic->cost.target, analytic->stage, &analytic->scratch,
                            program, error);
}

// Enough micro-steps that first, middle and last occur.
enum { ALL_VARIANTS = 3 };

// Of the ranks that the axis stands for. A rank alone has all of its node's as siblings.
static uint64_t placement_word(const Mesh *mesh, Axis axis, AxisMask ranks, int ranks_per_node, int node_size) {
    const GroupPlacement at = mesh->size[axis] > 1 ? mesh_group_placement(mesh, ranks, ranks_per_node)
                                                   : (GroupPlacement){1, 1, 1, node_size, .span = 1};
    return (uint64_t)at.nodes << 43 | (uint64_t)at.per_node << 32 | (uint64_t)at.siblings << 21 | (uint64_t)at.span;
}

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
        if (task->unit == UNIT_LAYER && shard_kind(program, task) == SHARD_REGATHER && task_is_collective(task)) {
            piece->next_gather = *task;
            piece->gathering = program->groups[task->group];
            piece->next_gather.group = 0;
            piece->next_gather.operand_count = 0;  // a price of links reads none
        }
    }
}

// The mesh's costs as they are with the plan's micro-batch and chunks.
static const ShardCosts *costs_of(const Analytic *analytic, const TrainPlan *plan, const MeshPiece *piece,
                                  ShardCosts *room) {
    if (piece->next_gather.payload_bytes == 0) {
        return &piece->costs;
    }
    Group gathering = piece->gathering;
    const StepProgram program = {.model = analytic->model,
                                 .plan = analytic->pipeline ? *analytic->pipeline : *plan,
                                 .target = analytic->cost.target,
                                 .groups = &gathering,
                                 .group_count = 1,
                                 .stage = analytic->stage};
    *room = piece->costs;
    room->seconds[UNIT_LAYER][SHARD_REGATHER] =
        cost_task(&analytic->cost, &program, &piece->next_gather).seconds * analytic->slow.links;
    return room;
}

// Whose experts are exchanged: their ranks follow from these and etp.
static AxisMask expert_axes(const TrainPlan *plan) {
    const int etp = plan->mesh.size[AXIS_EP] > 1 ? plan_expert_tp(plan) : 1;
    return etp > 1 ? axes_nearest(AXES_STAGE_RANKS, etp * plan->mesh.size[AXIS_EP]) : AXIS_BIT(AXIS_EP);
}

static PlacementWords placement_words(const TrainPlan *plan, int ranks_per_node) {
    const Mesh *mesh = &plan->mesh;
    const int world = mesh_world(mesh), per_node = ranks_per_node, node = world < per_node ? world : per_node;
    return (PlacementWords){.tp = placement_word(mesh, AXIS_TP, AXIS_BIT(AXIS_TP), per_node, node),
                            .cp = placement_word(mesh, AXIS_CP, AXIS_BIT(AXIS_CP), per_node, node),
                            .sp = placement_word(mesh, AXIS_SP, AXIS_BIT(AXIS_SP), per_node, node),
                            .experts = placement_word(mesh, AXIS_EP, expert_axes(plan), per_node, node)};
}

static Status make_mesh(Analytic *analytic, const TrainPlan *plan, const MemoKey *key, MeshPiece **made, Error *error) {
    StepProgram program;
    TRY(lower(analytic, plan, plan->update_in_backward ? 1 : ALL_VARIANTS, &program, error));
    const int per_node = cost_ranks_per_node(analytic->cost.profile, &plan->mesh);
    MeshPiece *piece = ARENA_NEW(analytic->arena, MeshPiece);
    shard_costs_add(&analytic->cost, &analytic->slow, &program, &piece->costs);
    piece->placed = placement_words(plan, per_node);
    add_demand_words(analytic, piece);
    keep_next_gather(&program, piece);
    memo_add(&analytic->times->meshes, key, piece, analytic->arena);
    arena_reset(&analytic->scratch);
    *made = piece;
    return STATUS_OK;
}

enum { OTHER_WORDS = MEMO_WORDS - PLAN_KEY_WORDS };  // of a key with choices

// What precedes the choices.
typedef struct KeyWords {
    uint64_t words[OTHER_WORDS];
} KeyWords;

static MemoKey with_choices(KeyWords before, PlanKey choices) {
    MemoKey key;
    memcpy(key.words, before.words, sizeof before.words);
    memcpy(&key.words[OTHER_WORDS], choices.words, sizeof choices.words);
    return key;
}

// A size is at most 2^20: three to a word. Places of the order are four bits each, a word of their own.
enum { SIZE_BITS = 21, SIZES_OF_WORD = 3, SIZE_WORDS = (AXIS_COUNT + SIZES_OF_WORD - 1) / SIZES_OF_WORD };
_Static_assert(SIZE_WORDS + 2 <= (int)OTHER_WORDS && AXIS_COUNT <= 16, "a mesh, its order and a stage fit a key");

static MemoKey mesh_key(const Analytic *analytic, const TrainPlan *plan) {
    KeyWords key = {{[SIZE_WORDS + 1] = (uint64_t)analytic->stage}};
    for (int place = 0; place < AXIS_COUNT; place++) {
        key.words[place / SIZES_OF_WORD] =
            key.words[place / SIZES_OF_WORD] << SIZE_BITS | (uint64_t)plan->mesh.size[place];
        key.words[SIZE_WORDS] = key.words[SIZE_WORDS] << 4 | (uint64_t)mesh_axis_at(&plan->mesh, place);
    }
    // what of a plan a mesh's piece does not read: choices of a micro-step's operations
    const uint64_t without = PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_RECOMPUTE) | PLAN_BIT(PLAN_CP_ROTATE) |
                             PLAN_BIT(PLAN_RECOMPUTE_UNIT) | PLAN_BIT(PLAN_RECOMPUTE_LAYERS) |
                             PLAN_BIT(PLAN_RECOMPUTE_EVERY) | PLAN_BIT(PLAN_RECOMPUTE_MODULES) | PLAN_BIT(PLAN_LOSS) |
                             PLAN_BIT(PLAN_TP_OVERLAP);
    return with_choices(key, plan_key(plan, without));
}

// The axes that cut sequences, layers and the model: cp has 21 bits; tp and sp divide heads, of which there are 2^14 at
// most, and pp layers, 2^10 at most (sim/model/config_fields.h).
static uint64_t inner_word(const TrainPlan *plan) {
    const int *size = plan->mesh.size;
    enum { HEAD_BITS = 15, LAYER_BITS = 11 };
    return (((uint64_t)size[AXIS_CP] << HEAD_BITS | (uint64_t)size[AXIS_SP]) << HEAD_BITS | (uint64_t)size[AXIS_TP])
               << LAYER_BITS |
           (uint64_t)size[AXIS_PP];
}

static uint64_t expert_ranks(const TrainPlan *plan) {
    return (uint64_t)plan->mesh.size[AXIS_EP];
}

// A sequence has fewer than 2^25 tokens, and there are at most as many stages as layers: two numbers fit after them.
static uint64_t lengths_word(const Analytic *analytic, const TrainPlan *plan, int count) {
    enum { COUNT_BITS = 21, STAGE_BITS_OF_WORD = 18 };
    return ((uint64_t)plan->seq << STAGE_BITS_OF_WORD | (uint64_t)analytic->stage) << COUNT_BITS | (uint64_t)count;
}

// Ranks that share the experts of one rank of ep; those of tp are lent to it too.
static int32_t expert_shards(const TrainPlan *plan) {
    const int ep = plan->mesh.size[AXIS_EP], lent = ep > 1 ? plan->mesh.size[AXIS_TP] : 1;
    const int cut = ep > 1 ? plan_expert_tp(plan) : 1;
    return (int32_t)(plan_shard_count(plan) * lent / (ep * cut));
}

unsigned analytic_data_bits(const TrainPlan *plan) {
    return (mesh_group_size(&plan->mesh, AXES_REPLICATE) > 1 ? 4u : 0) | (plan_shard_count(plan) > 1 ? 2u : 0) |
           (expert_shards(plan) > 1 ? 1u : 0);
}

// What changes a micro-step's operations.
static PlanKey choice_key(const TrainPlan *plan, uint64_t without) {
    PlanKey key = plan_key(plan, without);
    plan_key_add(&key, plan->grad_accum > 1, 1);
    plan_key_add(&key, analytic_data_bits(plan), ANALYTIC_DATA_BITS);
    return key;
}

MemoKey analytic_choices_key(const Analytic *analytic, const TrainPlan *plan) {
    const KeyWords words = {{lengths_word(analytic, plan, plan->micro_batch), inner_word(plan), expert_ranks(plan)}};
    return with_choices(words, choice_key(plan, 0));
}

MemoKey analytic_layer_key(const Analytic *analytic, const TrainPlan *plan, uint64_t without, bool marked) {
    const int *size = plan->mesh.size;
    const PlacementWords placed = placement_words(plan, cost_ranks_per_node(analytic->cost.profile, &plan->mesh));
    const KeyWords words = {{(uint64_t)plan->seq << 32 | (uint64_t)plan->micro_batch << 1 | marked, placed.tp,
                             placed.cp, placed.sp, placed.experts,
                             (uint64_t)size[AXIS_TP] << 42 | (uint64_t)size[AXIS_CP] << 21 | (uint64_t)size[AXIS_SP]}};
    return with_choices(words, plan_key(plan, without));
}

static MemoKey overlap_key(const Analytic *analytic, const TrainPlan *plan, const MeshPiece *mesh) {
    const KeyWords words = {{lengths_word(analytic, plan, plan->micro_batch), inner_word(plan), mesh->placed.tp,
                             mesh->placed.cp, mesh->placed.sp, mesh->placed.experts}};
    return with_choices(words, choice_key(plan, 0));
}

// ---- programs, by structure

// What no program shows, only the prices of its tasks and what a target needs in addition to its buffers.
#define NOT_IN_PROGRAMS PLAN_BIT(PLAN_TP_OVERLAP)

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
static Status find_program(Analytic *analytic, const TrainPlan *plan, int micro_steps, bool own_shards,
                           KnownProgram **found, Error *error) {
    TrainPlan lowered = *plan;
    lowered.grad_accum = micro_steps;
    const KeyWords sizes = {{lengths_word(analytic, plan, micro_steps), inner_word(plan),
                             own_shards ? (uint64_t)plan_shard_count(plan) : 0, expert_ranks(plan)}};
    const MemoKey key = with_choices(sizes, choice_key(plan, NOT_IN_PROGRAMS));
    *found = memo_find(&analytic->programs, &key);
    if (*found) {
        return STATUS_OK;
    }
    if (analytic->programs_arena.used_bytes > PROGRAMS_BYTES) {
        arena_reset(&analytic->programs_arena);
        analytic->programs = (Memo){0};
    }
    if (!own_shards) {
        lowered = memory_neighbour(&lowered, FEW_SHARDS);
    }
    *found = ARENA_NEW(&analytic->programs_arena, KnownProgram);
    (*found)->patterns.arena = &analytic->programs_arena;
    TRY(resizable_lower(&analytic->model, &lowered, analytic->cost.target, analytic->stage, &analytic->programs_arena,
                        &analytic->scratch, &(*found)->program, error));
    memo_add(&analytic->programs, &key, *found, &analytic->programs_arena);
    return STATUS_OK;
}

static bool padded_for(const TrainPlan *plan, const Unit *units, int32_t count) {
    const int32_t shards = plan->zero > 0 ? plan_shard_count(plan) : 1;
    bool alike = true;
    for (int32_t u = 0; u < count; u++) {
        const int32_t of_unit = u == UNIT_EXPERTS && plan->zero > 0 ? expert_shards(plan) : shards;
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

static Status micro_step_program(Analytic *analytic, const TrainPlan *plan, int micro_steps, MicroProgram *made,
                                 Error *error) {
    KnownProgram *known;
    const bool planned = target_is_executor(analytic->cost.target);
    TRY(find_program(analytic, plan, micro_steps, planned, &known, error));
    TRY(resizable_at(known->program, plan->micro_batch, &analytic->scratch, &made->program, error));
    made->padding_shows = !planned && copies_whole(known, made->program);
    if (made->padding_shows && !padded_for(plan, made->program->units, made->program->unit_count)) {
        TRY(find_program(analytic, plan, micro_steps, true, &known, error));
        TRY(resizable_at(known->program, plan->micro_batch, &analytic->scratch, &made->program, error));
    }
    TrainPlan placed = *plan;
    placed.grad_accum = micro_steps;
    step_place(made->program, &placed);
    made->patterns = resizable_owns(known->program, made->program) ? &known->patterns : NULL;
    return STATUS_OK;
}

static Status make_overlap(Analytic *analytic, const TrainPlan *plan, MicroStep **made, Error *error) {
    MicroProgram from;
    TRY(micro_step_program(analytic, plan, plan->grad_accum == 1 ? 1 : ALL_VARIANTS, &from, error));
    TaskCost *costs = cost_program(&analytic->cost, from.program, &analytic->scratch);
    for (int32_t i = 0; i < from.program->task_count; i++) {
        costs[i].seconds *= slowdown_of(&analytic->slow, &from.program->tasks[i]);
    }
    MicroStep *step = ARENA_NEW(analytic->arena, MicroStep);
    step->unit_count = from.padding_shows ? from.program->unit_count : 0;
    memcpy(step->units, from.program->units, (size_t)step->unit_count * sizeof *step->units);
    overlap_add(&step->overlap, from.program, costs, from.patterns, &analytic->blocks, &analytic->scratch);
    arena_reset(&analytic->scratch);
    *made = step;
    return STATUS_OK;
}

static Status find_overlap(Analytic *analytic, const TrainPlan *plan, const MemoKey *key, Overlap **found,
                           Error *error) {
    MicroStep *first = memo_find(&analytic->times->overlaps, key), *step = first;
    while (step && !padded_for(plan, step->units, step->unit_count)) {
        step = step->next;
    }
    if (!step) {
        TRY(make_overlap(analytic, plan, &step, error));
        if (first) {
            step->next = first->next;
            first->next = step;
        } else {
            memo_add(&analytic->times->overlaps, key, step, analytic->arena);
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
        contention = ARENA_NEW(analytic->arena, OverlapContention);
        overlap_contention_make(overlap, &mesh->costs, &analytic->cost.profile->interference, &analytic->fluids,
                                contention);
        memo_add(&analytic->times->contentions, &key, contention, analytic->arena);
    }
    return contention;
}

static MemoKey memory_key(const Analytic *analytic, const TrainPlan *plan) {
    const bool is_planned = target_is_executor(analytic->cost.target);  // all of it is in the curve
    const uint64_t planned = (uint64_t)plan->micro_batch << 32 | (uint64_t)plan_shard_count(plan);
    const KeyWords words = {{lengths_word(analytic, plan, memory_micro_steps(plan)), inner_word(plan),
                             is_planned ? planned : 0, expert_ranks(plan)}};
    return with_choices(words, choice_key(plan, is_planned ? 0 : NOT_IN_PROGRAMS));
}

// Which buffers there are, those choices decide; how large one is they do not.
static ShardSizes *find_shard_sizes(Analytic *analytic, const TrainPlan *plan) {
    const uint64_t without =
        PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_RECOMPUTE) | PLAN_BIT(PLAN_CP_ROTATE) | NOT_IN_PROGRAMS;
    const KeyWords lengths = {{lengths_word(analytic, plan, 0), inner_word(plan), expert_ranks(plan)}};
    const MemoKey key = with_choices(lengths, plan_key(plan, without));
    ShardSizes *sizes = memo_find(&analytic->shard_sizes, &key);
    if (!sizes) {
        sizes = ARENA_NEW(analytic->arena, ShardSizes);
        memo_add(&analytic->shard_sizes, &key, sizes, analytic->arena);
    }
    return sizes;
}

static Status make_memory(Analytic *analytic, const TrainPlan *plan, const MemoKey *key, MemoryCurve **made,
                          Error *error) {
    Analytic *owner = analytic->memory_of;
    const int micro_steps = memory_micro_steps(plan);
    *made = ARENA_NEW(owner->arena, MemoryCurve);
    if (target_is_executor(analytic->cost.target)) {
        MicroProgram from;
        TRY(micro_step_program(analytic, plan, micro_steps, &from, error));
        TRY(memory_curve_planned(from.program, owner->traces, &analytic->scratch, owner->arena, *made, error));
    } else {
        CurveSource from = {.model = &analytic->model,
                            .stage = analytic->stage,
                            .sizes = find_shard_sizes(analytic, plan),
                            .sizes_arena = analytic->arena,
                            .traces = owner->traces,
                            .scratch = &analytic->scratch};
        KnownProgram *known;
        TRY(find_program(analytic, plan, micro_steps, false, &known, error));
        from.few_shards = known->program;
        TRY(memory_curve_make(&from, plan, owner->arena, *made, error));
    }
    memo_add(&owner->memories, key, *made, owner->arena);
    arena_reset(&analytic->scratch);
    return STATUS_OK;
}

static void fill_estimate(const OverlapTimes *times, double fixed_s, Estimate *estimate) {
    double rest_s = times->step_s - times->compute_s - times->optimizer_s;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        estimate->exposed_s[axis] = times->exposed_s[axis];
        rest_s -= times->exposed_s[axis];
    }
    estimate->step_s = times->step_s + fixed_s;
    estimate->compute_s = times->compute_s;
    estimate->bubble_s = 0;
    estimate->stage = 0;
    estimate->is_bound = estimate->is_too_large = false;
    estimate->once = times->once;
    estimate->update = times->update;
    estimate->optimizer_s = times->optimizer_s;
    estimate->overhead_s = rest_s + fixed_s;
}

// alone: as if what data ranks do took no time.
static Status time_paired(Analytic *analytic, const TrainPlan *plan, bool alone, Estimate *estimate, Error *error) {
    static const ShardCosts none = {.zero_s = 0};
    const MemoKey key = mesh_key(analytic, plan);
    MeshPiece *mesh = memo_find(&analytic->times->meshes, &key);
    if (!mesh) {
        TRY(make_mesh(analytic, plan, &key, &mesh, error));
    }
    const MemoKey micro_key = overlap_key(analytic, plan, mesh);
    Overlap *overlap;
    TRY(find_overlap(analytic, plan, &micro_key, &overlap, error));
    OverlapTimes times;
    ShardCosts room;
    const bool apart = analytic->no_contention || alone;
    const OverlapContention *contention = apart ? NULL : contention_of(analytic, overlap, mesh);
    const ShardCosts *costs = alone ? &none : costs_of(analytic, plan, mesh, &room);
    const HostStops stops = stage_host_stops(analytic, plan);
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

Status analytic_time_alone(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    return time_paired(analytic, plan, true, estimate, error);
}

// A micro-step without a partner takes what it takes without ep_overlap; pieces do not know how many there are.
Status analytic_time_alike(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    TRY(time_paired(analytic, plan, false, estimate, error));
    if (!plan->ep_overlap) {
        return STATUS_OK;
    }
    TrainPlan without = *plan;
    Estimate unpaired;
    without.ep_overlap = false;
    TRY(time_paired(analytic, &without, false, &unpaired, error));
    analytic_mix_in(estimate, &unpaired, cost_unpaired_share(analytic->pipeline ? analytic->pipeline : plan));
    return STATUS_OK;
}

Status analytic_add_bytes(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    const MemoKey key = memory_key(analytic, plan);
    MemoryCurve *memory = memo_find(&analytic->memory_of->memories, &key);
    if (!memory) {
        TRY(make_memory(analytic, plan, &key, &memory, error));
    }
    const double share = plan->zero > 0 ? 1.0 / plan_shard_count(plan) : 1;
    memory_curve_at(memory, plan->micro_batch, share, analytic->in_flight, estimate);
    if (!target_is_executor(analytic->cost.target)) {
        estimate->reserved_bytes += target_overlap_bytes(analytic->cost.target, &analytic->model, plan);
    }
    return STATUS_OK;
}

bool analytic_bytes_are_known(Analytic *analytic, const TrainPlan *plan, int stage) {
    analytic->stage = stage;
    const MemoKey key = memory_key(analytic, plan);
    analytic->stage = 0;
    return memo_find(&analytic->memory_of->memories, &key) != NULL;
}

bool analytic_is_hopeless(const Analytic *analytic, double step_s) {
    return analytic->limits.step_s > 0 && step_s > analytic->limits.step_s;
}

Status analytic_no_bytes(Estimate *estimate) {
    estimate->is_bound = true;
    estimate->peak_bytes = estimate->reserved_bytes = estimate->carried_bytes = estimate->growing_bytes = 0;
    return STATUS_OK;
}

static Status estimate_alike(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    TRY(analytic_time_alike(analytic, plan, estimate, error));
    estimate->is_bound = analytic->limits.time_only && analytic_is_hopeless(analytic, estimate->step_s);
    return estimate->is_bound ? analytic_no_bytes(estimate) : analytic_add_bytes(analytic, plan, estimate, error);
}

Status analytic_bytes_alike(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    *estimate = (Estimate){0};
    return analytic_add_bytes(analytic, plan, estimate, error);
}

Status analytic_estimate_whole(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    return plan_has_stages(plan) ? analytic_estimate_stages(analytic, plan, estimate, error)
                                 : estimate_alike(analytic, plan, estimate, error);
}

Status analytic_estimate_bytes(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    return plan_has_stages(plan) ? analytic_bytes_of_stages(analytic, plan, estimate, error)
                                 : analytic_bytes_alike(analytic, plan, estimate, error);
}

Status analytic_estimate(Analytic *analytic, const TrainPlan *plan, Estimate *estimate, Error *error) {
    analytic_see_chips(analytic, plan);
    return plan_keeps_layers(plan) ? analytic_estimate_partly(analytic, plan, estimate, error)
                                   : analytic_estimate_whole(analytic, plan, estimate, error);
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
