// Fields without a row here are the same for every target: their usual value, and every value where they are searched.

#include "sim/frameworks/target_choices.h"

#include <stddef.h>
#include <string.h>

#include "sim/frameworks/pp_groups.h"

static int usual_zero(const Target *target, const TrainPlan *plan) {
    return target_default_zero(target, &plan->mesh);
}

static bool offers_zero(const Target *target, const TrainPlan *plan, int value) {
    const int usual = usual_zero(target, plan);
    return value == usual || (usual > 0 && (target->zero_stages >> value & 1));
}

static int usual_rotate(const Target *target, const TrainPlan *plan) {
    (void)plan;
    return (int)target_default_rotate(target);
}

static int usual_attention(const Target *target, const TrainPlan *plan) {
    (void)plan;
    return target->cudnn_here ? ATTENTION_CUDNN : (int)target->default_attention;
}

static int usual_fused(const Target *target, const TrainPlan *plan) {
    (void)plan;
    return (int)target->default_fused;
}

static int usual_fp8(const Target *target, const TrainPlan *plan) {
    (void)plan;
    return (int)target_default_fp8(target);
}

static int usual_master(const Target *target, const TrainPlan *plan) {
    return target->bf16_weights && plan->precision == DTYPE_BF16;
}

static int usual_chunks(const Target *target, const TrainPlan *plan) {
    (void)target;
    return plan->pp_schedule == PP_INTERLEAVED || plan->pp_schedule == PP_ZERO_BUBBLE ? 2 : 1;
}

// Gathered once and reduced once, whatever is said.
static bool keeps_gathered_stages(const Target *target, const TrainPlan *plan) {
    return target->pp_keeps_gathered && plan_has_stages(plan);
}

// Backward in two halves fills most of a bubble, of stages that are not compiled (torch.distributed.pipelining refuses
// others). Compiling gains 15 % (rows titan-0001 and titan-0002: 5,762 and 6,667 tokens/s of 8B), so the bubble of two
// chunks must be worth a tenth of a step at least.
static bool may_split_backward(const Target *target, const TrainPlan *plan) {
    enum { CHUNKS = 2, PARTS = 10 };
    const bool has = target->pp_schedules & (PP_BIT(PP_ZERO_BUBBLE) | PP_BIT(PP_ZBV));
    return has && plan_has_stages(plan) && PARTS * (mesh_stages(&plan->mesh) - 1) >= CHUNKS * plan_round_steps(plan);
}

// GPipe keeps every micro-step and is no faster than 1F1B.
static bool offers_schedule(const Target *target, const TrainPlan *plan, int value) {
    const bool splits = (value == PP_ZERO_BUBBLE || value == PP_ZBV) && plan->fused != FUSED_COMPILED;
    const bool tried = value == PP_1F1B || value == PP_INTERLEAVED || (splits && may_split_backward(target, plan));
    return plan_has_stages(plan) ? (target->pp_schedules & PP_BIT(value)) && tried : value == PP_1F1B;
}

static bool offers_chunks(const Target *target, const TrainPlan *plan, int value) {
    (void)target;
    const bool open = plan_field_matters(plan, PLAN_VIRTUAL_STAGES);
    return open ? value >= (plan->pp_schedule == PP_INTERLEAVED ? 2 : 1) && value <= TARGET_MOST_CHUNKS : value == 1;
}

// By numbers, of which those are tried that come out most even (sim/step/splits/balance.c): by weights, or by chunk
// where weights say too little.
static bool offers_split(const Target *target, const TrainPlan *plan, int value) {
    const int tried = target->edges_weigh_one ? SPLIT_CHUNKS : SPLIT_WEIGHTED;
    return value == SPLIT_TARGET || (plan_has_stages(plan) && value == tried && (target->splits & PP_BIT(tried)));
}

static bool offers_reshard(const Target *target, const TrainPlan *plan, int value) {
    const bool decided =
        target->always_reshards || target_shards_itself(target, plan) || keeps_gathered_stages(target, plan);
    return value == RESHARD_ALWAYS || (plan->zero == 3 && !decided);
}

// Beside replicas, stages and the like no file of it has a second copy (check_reshard_ranks).
static bool offers_near(const Target *target, const TrainPlan *plan, int value) {
    const bool open = target->reshards_near && plan->zero == 3 && plan->reshard == RESHARD_ALWAYS &&
                      plan->offload != OFFLOAD_PARAMETERS;
    const int shards = plan_shard_count(plan);
    return value == 0 ||
           (open && value > 1 && value < shards && shards % value == 0 && shards == mesh_world(&plan->mesh));
}

static bool offers_recompute(const Target *target, const TrainPlan *plan, int value) {
    (void)plan;
    return value != RECOMPUTE_SELECTIVE || target->selective_flavour != SELECTIVE_NONE;
}

static bool offers_rotate(const Target *target, const TrainPlan *plan, int value) {
    const bool several = plan->mesh.size[AXIS_CP] > 1;
    return value == CP_ROTATE_RING ? target->cp_ring || !several : target->cp_allgather && several;
}

static bool offers_fused(const Target *target, const TrainPlan *plan, int value) {
    return value == (int)target->default_fused || (value == FUSED_COMPILED && target->compiles) ||
           (value == FUSED_EAGER && may_split_backward(target, plan));
}

// More often than needed is slower and saves nothing: whole gradients are there anyway at stage 0, and where replicas
// may wait for the last micro-step they do.
static bool offers_sync(const Target *target, const TrainPlan *plan, int value) {
    const GradSync own = target_plain_sync(plan, target_own_sync(target, plan));
    const bool may_wait = (target->grad_syncs & GRAD_SYNC_BIT(GRAD_SYNC_SHARDS)) || own == GRAD_SYNC_SHARDS;
    if (value == GRAD_SYNC_TARGET) {
        return true;
    }
    return !keeps_gathered_stages(target, plan) && plan->zero >= 2 && plan_field_matters(plan, PLAN_GRAD_SYNC) &&
           (target->grad_syncs & GRAD_SYNC_BIT(value)) && target_plain_sync(plan, (GradSync)value) == (GradSync)value &&
           value != (int)own && !(value == GRAD_SYNC_EACH && may_wait);
}

// Collectives that share the tokens overlap products, of which some formats have no such kernel (MX, blocks, 4 bits:
// torch.distributed._symmetric_memory takes scales of tensors and rows); where a compiler finds the pairs, compiled.
static bool offers_tp_overlap(const Target *target, const TrainPlan *plan, int value) {
    const bool scales =
        plan->precision != DTYPE_FP8 ||
        ((FP8_BIT(FP8_TENSORWISE) | FP8_BIT(FP8_ROWWISE) | FP8_BIT(FP8_ROWWISE_BF16) | FP8_BIT(FP8_DELAYED)) &
         FP8_BIT(plan->fp8_recipe));
    const bool compiled = target->default_fused != FUSED_COMPILED || plan->fused == FUSED_COMPILED;
    return !value || (target->tp_overlap_exposed > 0 && plan->mesh.size[AXIS_TP] > 1 && scales && compiled &&
                      target_tp_flavour(target, plan) == TP_SP);
}

// Where the target overlaps by itself, waiting saves no more than a bucket.
static bool offers_overlap(const Target *target, const TrainPlan *plan, int value) {
    return value == REDUCE_OVERLAP_TARGET ||
           (value == REDUCE_OVERLAP_ON && plan_field_matters(plan, PLAN_REDUCE_OVERLAP) &&
            target_searches(target, plan->zero, PLAN_REDUCE_OVERLAP));
}

static bool has_pipelines(const Target *target) {
    return target->axes & AXES_STAGE;
}

static bool offers_loss(const Target *target, const TrainPlan *plan, int value) {
    const bool split = plan->mesh.size[AXIS_TP] > 1;
    return value == LOSS_TARGET || ((target->losses & LOSS_BIT(value)) && value != (int)target_own_loss(target) &&
                                    !(value == LOSS_FUSED && split));
}

static bool offers_graphs(const Target *target, const TrainPlan *plan, int value) {
    const int other = target->own_graphs ? CUDA_GRAPHS_OFF : CUDA_GRAPHS_ON;
    const bool refused = value == CUDA_GRAPHS_ON && plan_offloads_activations(plan) && target->offloads_saved;
    return value == CUDA_GRAPHS_TARGET ||
           (target->graph_switch && !plan_has_stages(plan) && value == other && !refused);
}

// The value that is told of fields whose first value stands for the target's own.
static int told_sync(const Target *target, const TrainPlan *plan) {
    const bool matters = plan_field_matters(plan, PLAN_GRAD_SYNC);
    return (int)(matters ? target_plain_sync(plan, target_grad_sync(target, plan)) : GRAD_SYNC_LAST);
}

static int told_overlap(const Target *target, const TrainPlan *plan) {
    const bool matters = plan_field_matters(plan, PLAN_REDUCE_OVERLAP);
    return matters ? (int)target_reduce_overlap(target, plan) : plan_told(plan, PLAN_REDUCE_OVERLAP);
}

static int told_loss(const Target *target, const TrainPlan *plan) {
    return (int)target_loss(target, plan);
}

static int told_graphs(const Target *target, const TrainPlan *plan) {
    return plan_graphed_parts(plan)           ? (int)plan->cuda_graphs
           : target_cuda_graphs(target, plan) ? CUDA_GRAPHS_ON
                                              : CUDA_GRAPHS_OFF;
}

static int told_sequences(const Target *target, const TrainPlan *plan) {
    const bool shares = plan->mesh.size[AXIS_TP] > 1 && target->tp_flavour == TP_SP;
    return plan->sequence_parallel != SEQUENCE_PARALLEL_TARGET ? (int)plan->sequence_parallel
           : shares                                            ? SEQUENCE_PARALLEL_ON
                                                               : SEQUENCE_PARALLEL_OFF;
}

static bool offers_sequences(const Target *target, const TrainPlan *plan, int value) {
    return value == SEQUENCE_PARALLEL_TARGET || (target->sp_switch && plan->mesh.size[AXIS_TP] > 1);
}

static bool offers_dispatch(const Target *target, const TrainPlan *plan, int value) {
    return value == DISPATCH_TARGET ||
           (plan_field_matters(plan, PLAN_DISPATCH) && (target->dispatchers & DISPATCH_BIT(value)));
}

static int told_dispatch(const Target *target, const TrainPlan *plan) {
    return plan_field_matters(plan, PLAN_DISPATCH) ? (int)target_dispatch(target, plan) : DISPATCH_TARGET;
}

static int told_chunks(const Target *target, const TrainPlan *plan) {
    (void)target;
    return plan_chunks(plan);
}

static int told_rank(const Target *target, const TrainPlan *plan) {
    (void)target;
    return plan_field_matters(plan, PLAN_LORA_RANK) ? plan_lora_rank(plan) : 0;
}

static int told_group(const Target *target, const TrainPlan *plan) {
    return plan_field_matters(plan, PLAN_PP_GROUP) ? target_pp_group(target, plan) : 0;
}

static bool has_groups(const Target *target) {
    return (target->pp_schedules & PP_BIT(PP_INTERLEAVED)) && (target->group_rule == GROUPS_ANY || target->own_kernels);
}

static int told_rounds(const Target *target, const TrainPlan *plan) {
    (void)target;
    return plan_rounds(plan);
}

static bool has_buckets(const Target *target) {
    return target->runtime.reduce_buffer > TARGET_SMALL_BUCKET;
}

static bool offers_bucket(const Target *target, const TrainPlan *plan, int value) {
    return value == 0 || (value == TARGET_SMALL_BUCKET && has_buckets(target) && plan->zero > 0 &&
                          plan_field_matters(plan, PLAN_REDUCE_BUCKET));
}

typedef struct TargetChoice {
    int (*usual)(const Target *target, const TrainPlan *plan);
    bool (*offers)(const Target *target, const TrainPlan *plan, int value);
    size_t member, bytes;               // of a target: not 0 where it has values besides its own; no bytes: no matter
    bool (*has)(const Target *target);  // the same by more than a member; NULL: no matter
    int (*told)(const Target *target, const TrainPlan *plan);
    // Other values than the usual one are refused: where this member is 0, in these words ("": that it has none)
    size_t needed, needed_bytes;
    const char *lacks;
} TargetChoice;

#define HAS(name) .member = offsetof(Target, name), .bytes = sizeof((Target *)0)->name
#define NEEDS(name, words) .needed = offsetof(Target, name), .needed_bytes = sizeof((Target *)0)->name, .lacks = words

static const TargetChoice choices[PLAN_FIELD_COUNT] = {
    [PLAN_ZERO] = {usual_zero, offers_zero, HAS(zero_stages)},
    [PLAN_RESHARD] = {.offers = offers_reshard},
    [PLAN_RESHARD_RANKS] = {.offers = offers_near,
                            HAS(reshards_near),
                            NEEDS(reshards_near, "keeps no second copy of the parameters")},
    [PLAN_RECOMPUTE] = {.offers = offers_recompute},
    [PLAN_CP_ROTATE] = {usual_rotate, offers_rotate},
    [PLAN_ATTENTION] = {.usual = usual_attention},
    [PLAN_FUSED] = {usual_fused, offers_fused, HAS(compiles)},
    [PLAN_TP_OVERLAP] = {.offers = offers_tp_overlap,
                         HAS(tp_overlap_exposed),
                         NEEDS(tp_overlap_exposed, "cannot overlap tp collectives with GEMMs")},
    [PLAN_MASTER_WEIGHTS] = {.usual = usual_master},
    [PLAN_FP8_RECIPE] = {.usual = usual_fp8},
    [PLAN_PP_SCHEDULE] = {.offers = offers_schedule, .has = has_pipelines},
    [PLAN_VIRTUAL_STAGES] = {usual_chunks, offers_chunks, .has = has_pipelines, .told = told_chunks},
    [PLAN_GRAD_SYNC] = {.offers = offers_sync, HAS(grad_syncs), .told = told_sync},
    [PLAN_REDUCE_OVERLAP] = {.offers = offers_overlap, HAS(overlap_stages), .told = told_overlap},
    [PLAN_LOSS] = {.offers = offers_loss, HAS(losses), .told = told_loss},
    [PLAN_CUDA_GRAPHS] = {.offers = offers_graphs, HAS(graph_switch), .told = told_graphs},
    [PLAN_PP_SPLIT] = {.offers = offers_split, HAS(splits)},
    [PLAN_SEQUENCE_PARALLEL] = {.offers = offers_sequences, HAS(sp_switch), .told = told_sequences},
    [PLAN_REDUCE_BUCKET] = {.offers = offers_bucket,
                            .has = has_buckets,
                            NEEDS(runtime.reduce_buffer, "has no size of its own for reductions")},
    [PLAN_PP_GROUP] = {.has = has_groups, .told = told_group},
    [PLAN_LORA_RANK] = {.told = told_rank},
    [PLAN_PP_ROUNDS] = {HAS(pp_rounds), .told = told_rounds},
    [PLAN_P2P_OVERLAP] = {HAS(p2p_switch)},
    [PLAN_FP8_ACTIVATION] = {HAS(fp8_activation), NEEDS(fp8_activation, "")},
    [PLAN_OP_FUSER] = {HAS(op_fuser), NEEDS(op_fuser, "")},
    [PLAN_QKV_ROPE] = {HAS(qkv_rope), NEEDS(qkv_rope, "")},
    [PLAN_FP8_PARAMETERS] = {NEEDS(fp8_parameters, "")},
    [PLAN_UPDATE_IN_BACKWARD] = {NEEDS(updates_in_backward, "")},
    [PLAN_EP_OVERLAP] = {NEEDS(ep_overlap_exposed, "runs exchanges of experts by themselves")},
    [PLAN_DISPATCH] = {.offers = offers_dispatch, HAS(dispatchers), .told = told_dispatch},
};

int target_usual(const Target *target, const TrainPlan *plan, PlanFieldId id) {
    return choices[id].usual ? choices[id].usual(target, plan) : plan_fields[id].usual;
}

bool target_decides(PlanFieldId id) {
    return choices[id].usual != NULL;
}

bool target_offers(const Target *target, const TrainPlan *plan, PlanFieldId id, int value) {
    return !choices[id].offers || choices[id].offers(target, plan, value);
}

// Of micro-steps it matters whether there are several, and how they compare with the stages.
bool target_choices_alike(const Target *target, const TrainPlan *a, const TrainPlan *b) {
    return (a->grad_accum > 1) == (b->grad_accum > 1) && may_split_backward(target, a) == may_split_backward(target, b);
}

bool target_fits(const Target *target, PlanFieldId id) {
    static const PlanFieldId counted[] = {[RECOMPUTE_ALL_ALIKE] = PLAN_FIELD_COUNT,
                                          [RECOMPUTE_FIRST_N] = PLAN_RECOMPUTE_LAYERS,
                                          [RECOMPUTE_EVERY_FIRST] = PLAN_RECOMPUTE_EVERY,
                                          [RECOMPUTE_EVERY_LAST] = PLAN_RECOMPUTE_EVERY};
    return plan_fields[id].fitted && counted[target->recompute_counts] == id;
}

int target_told(const Target *target, const TrainPlan *plan, PlanFieldId id) {
    return choices[id].told ? choices[id].told(target, plan) : plan_told(plan, id);
}

void target_canonical(const Target *target, TrainPlan *plan) {
    const GradSync own = target_plain_sync(plan, target_own_sync(target, plan));
    const GradSync plain = target_plain_sync(plan, plan->grad_sync);
    plan->grad_sync = plain == own ? GRAD_SYNC_TARGET : plain;
    const ReduceOverlap overlap = plan->reduce_overlap;
    plan->reduce_overlap = REDUCE_OVERLAP_TARGET;
    plan->reduce_overlap = overlap == target_reduce_overlap(target, plan) ? REDUCE_OVERLAP_TARGET : overlap;
    plan->loss = plan->loss == target_own_loss(target) ? LOSS_TARGET : plan->loss;
    if ((plan->sequence_parallel == SEQUENCE_PARALLEL_ON) == (target->tp_flavour == TP_SP)) {
        plan->sequence_parallel = SEQUENCE_PARALLEL_TARGET;
    }
    if (target->selective_flavour == SELECTIVE_CORE && plan->recompute_modules == RECOMPUTE_CORE_ATTENTION) {
        plan->recompute_modules = 0;
    }
    const Dispatch dispatch = plan->dispatch;
    plan->dispatch = DISPATCH_TARGET;
    plan->dispatch = dispatch == target_dispatch(target, plan) ? DISPATCH_TARGET : dispatch;
    const int group = plan->pp_group;
    plan->pp_group = 0;
    plan->pp_group = group == target_pp_group(target, plan) ? 0 : group;
    const GraphUse graphs = plan->cuda_graphs;
    const bool whole = target_cuda_graphs(target, plan);
    plan->cuda_graphs = CUDA_GRAPHS_TARGET;
    if (whole != target_cuda_graphs(target, plan) || graphs >= CUDA_GRAPHS_LAYERS) {
        plan->cuda_graphs = graphs;
    }
    const bool even = plan->pp_split == SPLIT_WEIGHTED && plan->pp_first == 0 && plan->pp_last == 0;
    if (target->layer_rule == LAYERS_EVEN && (even || plan->pp_split == SPLIT_EVEN)) {
        plan->pp_split = SPLIT_TARGET;
    }
    const bool foreach = target->own_optimizer == OPTIMIZER_ADAMW_FOREACH;
    const Optimizer update = foreach ? OPTIMIZER_ADAMW_FOREACH : OPTIMIZER_ADAMW_FUSED;
    plan->optimizer = plan->optimizer == update ? OPTIMIZER_TARGET : plan->optimizer;
    plan_canonical(plan);
    if (plan_offloads_activations(plan) && plan->zero == 0 && !target->offloads_saved) {  // FSDP's wrapper does it
        plan->offload = OFFLOAD_NONE;
        plan->offload_layers = 0;
    }
}

// Of no bytes: true.
static bool is_set(const Target *target, size_t member, size_t bytes) {
    static const char zeros[sizeof(double)];
    return bytes == 0 || memcmp((const char *)target + member, zeros, bytes) != 0;
}

bool target_has_choice(const Target *target, PlanFieldId id) {
    const TargetChoice *choice = &choices[id];
    return choice->has ? choice->has(target) : is_set(target, choice->member, choice->bytes);
}

const char *target_refuses(const Target *target, PlanFieldId id, int value, Arena *arena) {
    const TargetChoice *choice = &choices[id];
    const int usual = plan_fields[id].usual;
    if (value == usual || is_set(target, choice->needed, choice->needed_bytes)) {
        return NULL;
    }
    const char *name = plan_fields[id].name, *without = plan_value_text(id, usual, VALUE_BUFFER);
    REFUSE_IF(arena, choice->lacks[0], "%s %s: use %s %s", target->name, choice->lacks, name, without);
    return arena_format(arena, "%s@%s has no %s=%s: use %s %s", target->name, target->version, name,
                        plan_value_text(id, value, VALUE_BUFFER), name, without);
}

// Of experts Megatron's switch fuses all products and the activation (transformer/moe/experts.py,
// _is_fused_impl_supported), in fp8 or not; kernels that anybody timed are those of mxfp8.
const char *target_refuses_fused(const Target *target, const ModelSpec *model, int recipe, Arena *arena) {
    REFUSE_IF(arena, model->experts.count > 0 && recipe != FP8_MX,
              "op_fuser=on of layers of experts, which %s has, is predicted in mxfp8 alone, though %s has operations "
              "for others: use op_fuser off",
              model->name, target->name);
    return NULL;
}

int target_outdoing(const Target *target, const TrainPlan *plan, PlanFieldId id) {
    if (id == PLAN_CUDA_GRAPHS && !target->graphs_hold_gradients && offers_graphs(target, plan, CUDA_GRAPHS_ON)) {
        return CUDA_GRAPHS_ON;  // their memory is there without them too
    }
    if (id == PLAN_TP_OVERLAP && target->tp_overlap_bytes == 0 && offers_tp_overlap(target, plan, true)) {
        return true;  // a buffer of some parts is next to nothing
    }
    return id == PLAN_FUSED && offers_fused(target, plan, FUSED_COMPILED) && !may_split_backward(target, plan)
               ? FUSED_COMPILED
               : PLAN_ANY;
}

bool target_searches(const Target *target, int zero, PlanFieldId id) {
    return id == PLAN_REDUCE_OVERLAP ? (target->serial_stages & target->overlap_stages) >> zero & 1
                                     : target_has_choice(target, id);
}
