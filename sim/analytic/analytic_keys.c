// What a plan's pieces are looked up by: sizes and places as words, then the choices that the piece reads.

#include "sim/analytic/analytic_keys.h"

#include <string.h>

#include "sim/analytic/memory_curve.h"
#include "sim/plan/plan_fields.h"

// Of the ranks that the axis stands for. A rank alone has all of its node's as siblings.
static uint64_t placement_word(const Mesh *mesh, Axis axis, AxisMask ranks, int ranks_per_node, int node_size) {
    const GroupPlacement at = mesh->size[axis] > 1 ? mesh_group_placement(mesh, ranks, ranks_per_node)
                                                   : (GroupPlacement){1, 1, 1, node_size, .span = 1};
    return (uint64_t)at.nodes << 43 | (uint64_t)at.per_node << 32 | (uint64_t)at.siblings << 21 | (uint64_t)at.span;
}

// Whose experts are exchanged: their ranks follow from these and etp.
static AxisMask expert_axes(const TrainPlan *plan) {
    const int etp = plan->mesh.size[AXIS_EP] > 1 ? plan_expert_tp(plan) : 1;
    return etp > 1 ? axes_nearest(AXES_STAGE_RANKS, etp * plan->mesh.size[AXIS_EP]) : AXIS_BIT(AXIS_EP);
}

PlacementWords analytic_placement(const TrainPlan *plan, int ranks_per_node) {
    const Mesh *mesh = &plan->mesh;
    const int world = mesh_world(mesh), per_node = ranks_per_node, node = world < per_node ? world : per_node;
    return (PlacementWords){.tp = placement_word(mesh, AXIS_TP, AXIS_BIT(AXIS_TP), per_node, node),
                            .cp = placement_word(mesh, AXIS_CP, AXIS_BIT(AXIS_CP), per_node, node),
                            .sp = placement_word(mesh, AXIS_SP, AXIS_BIT(AXIS_SP), per_node, node),
                            .experts = placement_word(mesh, AXIS_EP, expert_axes(plan), per_node, node)};
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

MemoKey analytic_mesh_key(const TrainPlan *plan, int stage) {
    KeyWords key = {{[SIZE_WORDS + 1] = (uint64_t)stage}};
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
static uint64_t lengths_word(const TrainPlan *plan, int stage, int count) {
    enum { COUNT_BITS = 21, STAGE_BITS_OF_WORD = 18 };
    return ((uint64_t)plan->seq << STAGE_BITS_OF_WORD | (uint64_t)stage) << COUNT_BITS | (uint64_t)count;
}

// Those of tp are lent to ep too.
int32_t analytic_expert_shards(const TrainPlan *plan) {
    const int ep = plan->mesh.size[AXIS_EP], lent = ep > 1 ? plan->mesh.size[AXIS_TP] : 1;
    const int cut = ep > 1 ? plan_expert_tp(plan) : 1;
    return (int32_t)(plan_shard_count(plan) * lent / (ep * cut));
}

unsigned analytic_data_bits(const TrainPlan *plan) {
    return (mesh_group_size(&plan->mesh, AXES_REPLICATE) > 1 ? 4u : 0) | (plan_shard_count(plan) > 1 ? 2u : 0) |
           (analytic_expert_shards(plan) > 1 ? 1u : 0);
}

// What changes a micro-step's operations.
static PlanKey choice_key(const TrainPlan *plan, uint64_t without) {
    PlanKey key = plan_key(plan, without);
    plan_key_add(&key, plan->grad_accum > 1, 1);
    plan_key_add(&key, analytic_data_bits(plan), ANALYTIC_DATA_BITS);
    return key;
}

MemoKey analytic_choices_key(const TrainPlan *plan) {
    const KeyWords words = {{lengths_word(plan, 0, plan->micro_batch), inner_word(plan), expert_ranks(plan)}};
    return with_choices(words, choice_key(plan, 0));
}

MemoKey analytic_layer_key(const Analytic *analytic, const TrainPlan *plan, uint64_t without, bool marked) {
    const int *size = plan->mesh.size;
    const PlacementWords placed = analytic_placement(plan, cost_ranks_per_node(analytic->cost.profile, &plan->mesh));
    const KeyWords words = {{(uint64_t)plan->seq << 32 | (uint64_t)plan->micro_batch << 1 | marked, placed.tp,
                             placed.cp, placed.sp, placed.experts,
                             (uint64_t)size[AXIS_TP] << 42 | (uint64_t)size[AXIS_CP] << 21 | (uint64_t)size[AXIS_SP]}};
    return with_choices(words, plan_key(plan, without));
}

MemoKey analytic_overlap_key(const TrainPlan *plan, int stage, const PlacementWords *placed) {
    const KeyWords words = {{lengths_word(plan, stage, plan->micro_batch), inner_word(plan), placed->tp, placed->cp,
                             placed->sp, placed->experts}};
    return with_choices(words, choice_key(plan, 0));
}

// What no program shows, only the prices of its tasks and what a target needs in addition to its buffers.
#define NOT_IN_PROGRAMS PLAN_BIT(PLAN_TP_OVERLAP)

MemoKey analytic_program_key(const TrainPlan *plan, int stage, int micro_steps, bool own_shards) {
    const KeyWords sizes = {{lengths_word(plan, stage, micro_steps), inner_word(plan),
                             own_shards ? (uint64_t)plan_shard_count(plan) : 0, expert_ranks(plan)}};
    return with_choices(sizes, choice_key(plan, NOT_IN_PROGRAMS));
}

MemoKey analytic_memory_key(const Analytic *analytic, const TrainPlan *plan, int stage) {
    const bool is_planned = target_is_executor(analytic->cost.target);  // all of it is in the curve
    const uint64_t planned = (uint64_t)plan->micro_batch << 32 | (uint64_t)plan_shard_count(plan);
    const KeyWords words = {{lengths_word(plan, stage, memory_micro_steps(plan)), inner_word(plan),
                             is_planned ? planned : 0, expert_ranks(plan)}};
    return with_choices(words, choice_key(plan, is_planned ? 0 : NOT_IN_PROGRAMS));
}

// Which buffers there are, those choices decide, and stages; how large one is they do not.
MemoKey analytic_sizes_key(const TrainPlan *plan) {
    const uint64_t without =
        PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_RECOMPUTE) | PLAN_BIT(PLAN_CP_ROTATE) | NOT_IN_PROGRAMS;
    TrainPlan whole = *plan;
    whole.mesh.size[AXIS_PP] = 1;
    const KeyWords lengths = {{(uint64_t)plan->seq, inner_word(&whole), expert_ranks(plan)}};
    return with_choices(lengths, plan_key(plan, without));
}
