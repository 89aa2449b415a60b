// step_lower: runs the passes once per kind of micro-step (first, middle, last) and once for the optimizer, then
// assembles them in schedule order. Also the small set of helpers that the passes build with.

#include "sim/frameworks/pp_groups.h"
#include "sim/step/lower_ops.h"
#include "sim/step/mixed.h"

#include <stddef.h>
#include <string.h>

static unsigned name_bucket(const char *name) {
    unsigned sum = 0;
    for (const char *letter = name; *letter; letter++) {
        sum = sum * 31 + (unsigned char)*letter;
    }
    return sum % TENSOR_BUCKETS;
}

int32_t lowering_tensor(Lowering *lowering, const char *plain, BufferRole role, Dtype dtype, int64_t elements) {
    const char *name = mixed_name(lowering, plain);
    int32_t *bucket = &lowering->bucket[name_bucket(name)];
    for (int32_t i = *bucket - 1; i >= 0; i = lowering->tensors[i].next) {
        const char *known = lowering->tensors[i].name;
        if (known == name || strcmp(known, name) == 0) {  // equal literals usually share an address
            return i;
        }
    }
    lowering->tensors = arena_grow_uncleared(lowering->arena, lowering->tensors, lowering->tensor_count,
                                             &lowering->tensor_capacity, sizeof(Tensor));
    lowering->tensors[lowering->tensor_count] = (Tensor){.name = name,
                                                         .role = role,
                                                         .dtype = dtype,
                                                         .bytes = elements * dtype_bytes(dtype),
                                                         .scale = -1,
                                                         .lender = -1,
                                                         .share = mixed_share_of(lowering, role, dtype),
                                                         .next = *bucket - 1};
    *bucket = (int32_t)++lowering->tensor_count;
    return *bucket - 1;
}

void op_list_pass(Arena *arena, OpList *list, Op *op) {
    if (list->count == list->capacity) {
        list->ops = arena_grow_uncleared(arena, list->ops, list->count, &list->capacity, sizeof(Op *));
    }
    list->ops[list->count++] = op;
}

Op *op_list_append(Arena *arena, OpList *list, const Op *op) {
    Op *copy = ARENA_UNCLEARED(arena, Op, 1);
    memcpy(copy, op, offsetof(Op, operands) + (size_t)op->operand_count * sizeof *op->operands);
    op_list_pass(arena, list, copy);
    return copy;
}

Op *op_add(Lowering *lowering, Section section, TaskKind kind, Phase phase, const char *name) {
    Op *op = ARENA_NEW(lowering->arena, Op);
    op->task.name = name;
    op->task.kind = kind;
    op->task.phase = phase;
    op->task.lane = LANE_COMPUTE;
    op->task.group = op->task.unit = -1;
    op->task.dtype = lowering->dims.dtype;
    op->task.share = lowering->share;
    op->task.part = lowering->layer_part;
    op->only = lowering->only;
    op_list_pass(lowering->arena, &lowering->lists[section], op);
    return op;
}

Op *op_mark(Lowering *lowering, Section section, Mark mark, const char *name) {
    const Phase phase = section == SECTION_LAYER_BACKWARD || section == SECTION_END ? PHASE_BACKWARD : PHASE_FORWARD;
    Op *op = op_add(lowering, section, TASK_KIND_COUNT, phase, name);
    op->mark = mark;
    return op;
}

OpRef op_whole(const Lowering *lowering, int32_t tensor) {
    return (OpRef){.tensor = tensor, .rank_group = -1, .bytes = lowering->tensors[tensor].bytes};
}

OpRef own_slice(const Lowering *lowering, const Unit *unit, int32_t tensor) {
    OpRef ref = op_whole(lowering, tensor);
    if (unit->shards > 1) {
        ref.bytes /= unit->shards;
        ref.rank_group = unit->shard_group;
        ref.rank_stride_bytes = ref.bytes;
    }
    return ref;
}

OpRef shard_gradient(const Lowering *lowering, const Unit *unit) {
    return unit->gradient_shard == unit->gradient_full ? own_slice(lowering, unit, unit->gradient_shard)
                                                       : op_whole(lowering, unit->gradient_shard);
}

OpRef op_absent(void) {
    return (OpRef){.tensor = -1, .rank_group = -1};
}

void op_operand(Op *op, OpRef ref, Access access) {
    ASSERT(op->operand_count < OP_MAX_OPERANDS);
    ref.access = access;
    op->operands[op->operand_count++] = ref;
}

Op op_collective(const Lowering *lowering, TaskKind kind, LaneId lane, int16_t group, const char *name, Phase phase) {
    return (Op){.task = {.name = name,
                         .kind = kind,
                         .phase = phase,
                         .lane = (int16_t)lane,
                         .group = group,
                         .unit = -1,
                         .dtype = lowering->dims.dtype,
                         .share = lowering->share,
                         .part = lowering->layer_part},
                .only = lowering->only};
}

int lowering_group_size(const Lowering *lowering, int16_t group) {
    return lowering->groups[group].size;
}

bool lowering_fuses(const Lowering *lowering) {
    return lowering->target->fuses_passes && lowering->plan->fused == FUSED_FUSED;
}

bool lowering_has_stages(const Lowering *lowering) {
    return plan_has_stages(lowering->plan);
}

int lowering_local_experts(const Lowering *lowering) {
    return lowering->model->experts.count / lowering->ep;
}

bool lowering_splits_tokens(const Lowering *lowering) {
    return target_tp_flavour(lowering->target, lowering->plan) == TP_SP;
}

bool lowering_adapts(const Lowering *lowering) {
    return plan_has_adapters(lowering->plan);
}

bool lowering_adapters_apart(const Lowering *lowering) {
    return lowering->target->adapter_units && lowering_adapts(lowering);
}

int lowering_expert_unit(const Lowering *lowering) {
    return lowering->ep > 1 ? UNIT_EXPERTS : UNIT_LAYER;
}

int lowering_expert_tp(const Lowering *lowering) {
    return plan_expert_tp(lowering->plan);
}

bool lowering_routes_apart(const Lowering *lowering) {
    return lowering->ep > 1 && lowering->tp > 1;
}

// name NULL: named after the axes.
static int16_t add_group(Lowering *lowering, const char *name, AxisMask axes) {
    const AxisMask named = axes & mesh_named_axes(&lowering->plan->mesh);
    name = name ? name : mesh_axes_words(named, lowering->arena);
    const int size = mesh_group_size(&lowering->plan->mesh, axes);
    lowering->groups[lowering->group_count] = (Group){.name = name, .axes = axes, .size = size};
    return (int16_t)lowering->group_count++;
}

// Ranks that split an expert are nearest, those with other experts next, those with other shards last (Megatron-core,
// parallel_state.py: tp-ep-dp of its expert generator).
static void add_expert_groups(Lowering *lowering) {
    const int etp = lowering_expert_tp(lowering), all = etp * lowering->ep;
    const AxisMask ranks = AXES_STAGE_RANKS | AXIS_BIT(AXIS_EP);
    if (etp > 1) {
        lowering->etp_group = add_group(lowering, "etp", axes_nearest(ranks, etp));
        lowering->ep_group = add_group(lowering, "ep", axes_apart(axes_nearest(ranks, all), etp));
        lowering->expert_ranks_group = add_group(lowering, "etp x ep", axes_nearest(ranks, all));
        lowering->expert_shard_group = add_group(lowering, "experts' shards", axes_apart(AXES_STAGE_RANKS, all));
        return;
    }
    const AxisMask lend = lowering->tp > 1 ? AXES_STAGE_RANKS : AXES_SHARD_GROUP;
    lowering->ep_group = lowering->expert_ranks_group = add_group(lowering, NULL, AXIS_BIT(AXIS_EP));
    lowering->expert_shard_group = add_group(lowering, "experts' shards", lend | AXES_LEFT_BY_EP);
}

// A whole gradient of experts is summed over the ranks with the same ones (expert data parallelism); its square differs
// on all others (expert_tensor_model_pipeline_parallel_group).
static void add_whole_expert_groups(Lowering *lowering) {
    const AxisMask same = lowering->groups[lowering->expert_shard_group].axes;
    const AxisMask others = lowering->groups[lowering->expert_ranks_group].axes;
    const AxisMask stages = lowering_has_stages(lowering) ? AXES_STAGE : 0;
    lowering->expert_data_group = add_group(lowering, "experts' replicas", same | AXES_REPLICATE);
    lowering->expert_norm_group = add_group(lowering, "experts (norm)", others | stages);
}

static void add_groups(Lowering *lowering) {
    lowering->shard_group = add_group(lowering, NULL, AXES_SHARD_GROUP);
    lowering->replicate_group = add_group(lowering, NULL, AXES_REPLICATE);
    lowering->tp_group = add_group(lowering, NULL, AXIS_BIT(AXIS_TP));
    lowering->cp_group = add_group(lowering, NULL, AXIS_BIT(AXIS_CP));
    lowering->data_group = add_group(lowering, NULL, AXES_DATA_GROUP);
    // Loss and norm are over all stages.
    const AxisMask stages = lowering_has_stages(lowering) ? AXES_STAGE : 0;
    lowering->loss_group = stages ? add_group(lowering, NULL, AXES_DATA_GROUP | stages) : lowering->data_group;
    // A whole gradient (stage 0) is the same on every data rank: only its tp slices differ.
    lowering->norm_group = lowering->plan->zero > 0 ? add_group(lowering, NULL, AXES_NORM_GROUP | stages)
                                                    : add_group(lowering, "tp (norm)", AXES_TENSOR | stages);
    if (lowering->plan->reshard_ranks > 1) {
        lowering->near_group =
            add_group(lowering, "near shards", axes_nearest(AXES_SHARD_GROUP, lowering->plan->reshard_ranks));
    }
    if (lowering->sp > 1) {
        lowering->sp_group = add_group(lowering, NULL, AXIS_BIT(AXIS_SP));
    }
    if (lowering->ep > 1) {
        add_expert_groups(lowering);
    }
    if (lowering->ep > 1 && lowering->plan->zero == 0) {
        add_whole_expert_groups(lowering);
    }
    if (lowering->model->experts.balance > 0) {
        lowering->sequence_group = add_group(lowering, NULL, AXIS_BIT(AXIS_CP) | AXIS_BIT(AXIS_SP));
    }
}

static void take_stretch(Lowering *lowering, Variant *variant, Section section) {
    variant->stretches[variant->stretch_count++] =
        (Stretch){.section = section, .list = lowering->lists[section], .first_task = {-1, -1}};
    lowering->lists[section] = (OpList){0};
}

// Deep-copies operations, since later passes may modify them.
static void copy_lists(Lowering *lowering, const OpList from[SECTION_COUNT], OpList to[SECTION_COUNT]) {
    for (Section section = SECTION_BEGIN; section <= SECTION_END; section++) {
        to[section] = (OpList){0};
        for (size_t i = 0; i < from[section].count; i++) {
            const Op *op = from[section].ops[i];
            op_list_append(lowering->arena, &to[section], op)->copy_of = op->copy_of ? op->copy_of : op;
        }
    }
}

// Micro-steps differ in how sharding lowers them, and in fp8 weights, which the first one casts.
static void lower_arithmetic(Lowering *lowering) {
    const bool later = !lowering->first || (lowering->adds && !lowering->choice->alone);
    if (!later || lowering->fp8 != FP8_NONE) {
        lower_layers(lowering);
        lower_tensor_parallel(lowering);
        lower_heads(lowering);
        lower_context_parallel(lowering);
        if (!lowering->last || plan_rounds(lowering->plan) > 1) {
            copy_lists(lowering, lowering->lists, lowering->arithmetic);
        }
    } else {
        copy_lists(lowering, lowering->arithmetic, lowering->lists);
    }
    if (later) {
        lower_summed_loss(lowering);
    }
    lower_frozen(lowering);
}

// A stage as if it were the only one has the micro-steps of one round: where there are several, of a later one.
static bool later_round_alone(const Lowering *lowering) {
    return lowering->choice->alone && plan_rounds(lowering->plan) > 1;
}

static Variant lower_micro_step(Lowering *lowering, MicroKind kind) {
    lowering->first = micro_kind_begins(kind);
    lowering->last = micro_kind_ends(kind);
    lowering->adds = kind >= MICRO_ADD_ONLY || later_round_alone(lowering);
    lower_arithmetic(lowering);
    lower_sharding(lowering);
    lower_recompute(lowering);
    lower_fuse(lowering);
    lower_offload_saved(lowering);
    lower_split(lowering);
    lower_gather_buffers(lowering);
    Variant variant = {0};
    for (Section section = SECTION_BEGIN; section < SECTION_NORM; section++) {
        take_stretch(lowering, &variant, section);
    }
    return variant;
}

static Variant lower_optimizer(Lowering *lowering) {
    lower_update(lowering);
    Variant variant = {0};
    for (Section section = SECTION_NORM; section <= SECTION_UPDATE_LAYER; section++) {
        take_stretch(lowering, &variant, section);
    }
    return variant;
}

static void lower_step(Lowering *lowering, StepProgram *program) {
    const ScheduleShape shape = {.stage = program->stage,
                                 .stages = mesh_stages(&lowering->plan->mesh),
                                 .chunks = lowering->held->chunk_count,
                                 .micro_steps = lowering->plan->grad_accum,
                                 .group = target_other_group(lowering->target, lowering->plan),
                                 .rounds = lowering->choice->alone ? 1 : plan_rounds(lowering->plan)};
    LoweredStep step = {.loops = micro_loops_find(lowering->choice->schedule, &shape, lowering->arena)};
    const MicroLoops *loops = &step.loops;
    bool met[MICRO_KINDS] = {false};
    for (int32_t i = 0; i < loops->work_count; i++) {
        met[loops->works[i].kind] = true;
    }
    for (MicroKind kind = 0; kind < MICRO_KINDS; kind++) {
        if (met[kind]) {
            step.variants[kind] = lower_micro_step(lowering, kind);
        }
    }
    step.messages = lower_messages(lowering, loops);
    step.variants[VARIANT_OPTIMIZER] = lower_optimizer(lowering);
    lower_lanes(lowering, &step, program);
}

// What the stage holds, and its plan as the target runs it.
static void begin_program(const ModelSpec *model, const TrainPlan *plan, const Target *target,
                          const LoweringChoice *choice, Arena *arena, StepProgram *program) {
    *program = (StepProgram){.plan = *plan, .target = target, .stage = choice->stage};
    program->held = stage_layers(model, plan, target, choice->schedule->folded, choice->stage, arena);
    program->model = stage_model(model, &program->held, arena);
    program->layers = program->model.layers;
    program->model.vocab = target_vocab(target, model, plan->mesh.size[AXIS_TP]);
    if (plan_has_stages(plan) && target->pp_keeps_gathered && plan->zero == 3) {
        program->plan.reshard = RESHARD_NEVER;
    }
}

static Lowering begin_lowering(const StepProgram *program, const LoweringChoice *choice, Arena *arena) {
    const TrainPlan *plan = &program->plan;
    const GradSync sync = target_grad_sync(program->target, plan);
    return (Lowering){.arena = arena,
                      .model = &program->model,
                      .plan = plan,
                      .target = program->target,
                      .choice = choice,
                      .held = &program->held,
                      .loss_tensor = -1,
                      .norm_square_tensor = -1,
                      .expert_square_tensor = -1,
                      .norm_tensor = -1,
                      .tp = plan->mesh.size[AXIS_TP],
                      .cp = plan->mesh.size[AXIS_CP],
                      .sp = plan->mesh.size[AXIS_SP],
                      .reduce_each = sync != GRAD_SYNC_LAST,
                      .replicas_each = sync == GRAD_SYNC_EACH || plan_rounds(plan) > 1};
}

// What follows from the model's kinds of layers, once they are chosen.
static void choose_sizes(Lowering *lowering) {
    const ModelSpec *model = lowering->model;
    const TrainPlan *plan = lowering->plan;
    const Target *target = lowering->target;
    const bool fused = target->fused_projections && !lowering_adapters_apart(lowering);
    lowering->ep = model->experts.count > 0 ? plan->mesh.size[AXIS_EP] : 1;
    lowering->fp8 = plan->precision == DTYPE_FP8 ? target->fp8_flavour : FP8_NONE;
    lowering->master_dtype = target->master_fp32 && !plan->bf16_master ? DTYPE_FP32 : plan_activation_dtype(plan);
    lowering->fused_qkv = fused || target->fused_qkv || model->fused_qkv;
    lowering->fused_gate_up = fused || model->fused_gate_up;
    lowering->dims = tensor_parallel_dims(model, plan, target);
    lowering->loss_chunks = target_loss_chunks(target, model, plan);
}

Status step_lower_chosen(const ModelSpec *model, const TrainPlan *plan, const Target *target,
                         const LoweringChoice *choice, Arena *arena, StepProgram *program, Error *error) {
    const char *reason = NULL;
    if (!choice->alone) {
        target_check(target, model, plan, arena, &reason);
    }
    FAIL_IF(reason, error, STATUS_INFEASIBLE, "%s", reason);
    begin_program(model, plan, target, choice, arena, program);
    Lowering lowering = begin_lowering(program, choice, arena);
    const int runs = program->model.run_count;
    if (program->model.experts.count > 0) {  // one list for all layers
        mixed_choose(&lowering, &program->model);
        program->model.run_count = lowering.in_turn ? runs : 0;
    }
    choose_sizes(&lowering);
    add_groups(&lowering);
    lower_units(&lowering);
    lower_unit_tensors(&lowering);
    lower_step(&lowering, program);
    program->model.run_count = lowering_is_mixed(&lowering) ? runs : program->model.run_count;
    return STATUS_OK;
}

Status step_lower_scheduled(const ModelSpec *model, const TrainPlan *plan, const Target *target, LoweringChoice choice,
                            Arena *arena, StepProgram *program, Error *error) {
    choice.schedule = plan_has_stages(plan) ? schedule_of(plan) : schedules[0];
    FAIL_IF(!choice.schedule, error, STATUS_INFEASIBLE, "the schedule %s of a pipeline is not predicted yet",
            pp_schedule_names[plan->pp_schedule]);
    return step_lower_chosen(model, plan, target, &choice, arena, program, error);
}

Status step_lower_stage(const ModelSpec *model, const TrainPlan *plan, const Target *target, int stage, Arena *arena,
                        StepProgram *program, Error *error) {
    return step_lower_scheduled(model, plan, target, (LoweringChoice){.stage = stage}, arena, program, error);
}

Status step_lower_alone(const ModelSpec *model, const TrainPlan *plan, const Target *target, int stage, Arena *arena,
                        StepProgram *program, Error *error) {
    const LoweringChoice choice = {
        .stage = stage, .schedule = schedules[0], .alone = plan_has_stages(plan), .mean = true};
    return step_lower_chosen(model, plan, target, &choice, arena, program, error);
}

Status step_lower(const ModelSpec *model, const TrainPlan *plan, const Target *target, Arena *arena,
                  StepProgram *program, Error *error) {
    return step_lower_stage(model, plan, target, 0, arena, program, error);
}
