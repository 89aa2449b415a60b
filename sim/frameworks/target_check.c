// Legality of a plan for a target: a table of rules, each answers NULL or one sentence with the numbers and what to
// change. The first rule violated is reported. Sources: sim/SOURCES.md P1 (mesh rules), P3
// (sequence split), P4 (sequence parallelism). Memory is not part of legality and is not checked.

#include <string.h>

#include "sim/base/integer.h"
#include "sim/frameworks/axis_rules.h"
#include "sim/frameworks/framework.h"
#include "sim/frameworks/plan_rules.h"
#include "sim/plan/plan_fields.h"

typedef struct Check {
    const Target *target;
    const ModelSpec *model;
    const TrainPlan *plan;
    Arena *arena;
} Check;

typedef const char *(*Rule)(const Check *check);

static int axis_size(const Check *check, Axis axis) {
    return check->plan->mesh.size[axis];
}

static const char *choice_refused(const Check *check, PlanFieldId id) {
    return choice_rule(check->target, check->plan, id, check->arena);
}

static const char *check_positive(const Check *check) {
    const TrainPlan *plan = check->plan;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        REFUSE_IF(check->arena, plan->mesh.size[axis] < 1, "%s must be at least 1, got %d", axis_names[axis],
                  plan->mesh.size[axis]);
    }
    REFUSE_IF(check->arena, plan->seq < 1 || plan->micro_batch < 1 || plan->grad_accum < 1,
              "seq, micro_batch and grad_accum must be at least 1, got %d, %d and %d", plan->seq, plan->micro_batch,
              plan->grad_accum);
    return NULL;
}

static const char *check_axes(const Check *check) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (!(check->target->axes & AXIS_BIT(axis)) && axis_size(check, axis) > 1) {
            const char *why = axis == AXIS_PP ? check->target->stages_note : NULL;
            const Framework *framework = why ? framework_of(check->target->name) : NULL;
            REFUSE_IF(check->arena,
                      framework && (framework->has_pipelines || check->target->axes_unmodelled & AXIS_BIT(axis)),
                      "%s@%s is not predicted with %s: %s; use %s=1", check->target->name, check->target->version,
                      axis_names[axis], why, axis_names[axis]);
            return arena_format(check->arena, "%s has no %s: use %s=1%s%s", check->target->name, axis_names[axis],
                                axis_names[axis], why ? "; " : "", why ? why : "");
        }
    }
    return NULL;
}

static const char *check_order(const Check *check) {
    const Target *target = check->target;
    const Mesh *mesh = &check->plan->mesh;
    if (target_takes_order(target, mesh)) {
        return NULL;
    }
    REFUSE_IF(check->arena, target->rank_order_rule == RANK_ORDER_FIXED,
              "%s lays its mesh over the ranks in one order (%s from slow to fast), not %s: use rank "
              "order default",
              target->name, axes_text(AXES_FIRST | target->axes, ", ", AXES_BUFFER),
              mesh_order_text(mesh, MESH_BUFFER));
    return arena_format(check->arena,
                        "%s has one data-parallel dimension, and its %d instances (dp_replicate) are slices of it and "
                        "cp together: rank order %s must name dp_replicate before cp and right before dp_shard",
                        target->name, axis_size(check, AXIS_DP_REPLICATE), mesh_order_text(mesh, MESH_BUFFER));
}

static const char *check_replicate(const Check *check) {
    const int replicate = axis_size(check, AXIS_DP_REPLICATE);
    const int cp = axis_size(check, AXIS_CP);
    const int tp = axis_size(check, AXIS_TP);
    const ReplicateRule rule = check->target->replicate_rule;
    const bool beside_tp = tp > 1 && cp == 1, beside_either = tp > 1 || cp > 1;
    const bool refused =
        (rule == REPLICATE_NOT_BESIDE_TP && beside_tp) || (rule == REPLICATE_NOT_BESIDE_TP_OR_CP && beside_either);
    REFUSE_IF(check->arena, refused && replicate > 1 && axis_size(check, AXIS_DP_SHARD) == 1,
              "%s refuses dp_replicate=%d with dp_shard=1 beside cp=%d, tp=%d: use dp_shard=%d with dp_replicate=1",
              check->target->name, replicate, cp, tp, replicate);
    return NULL;
}

// Another version of it that has the stage; NULL.
static const Target *shards_further(const Target *target, int zero) {
    int count = 0;
    const Target *rows = target_table(&count);
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].name, target->name) == 0 && rows[i].max_zero >= zero) {
            return &rows[i];
        }
    }
    return NULL;
}

static const char *check_zero(const Check *check) {
    const int zero = check->plan->zero;
    const int shards = plan_shard_count(check->plan);
    if (zero < 0 || zero > check->target->max_zero) {
        const Target *other = zero == 3 ? shards_further(check->target, zero) : NULL;
        return arena_format(check->arena, "zero=%d does not exist for %s: use zero 0 to %d%s%s%s%s", zero,
                            check->target->name, check->target->max_zero, other ? ", or --target " : "",
                            other ? other->name : "", other ? "@" : "", other ? other->version : "");
    }
    REFUSE_IF(check->arena, zero > 0 && shards == 1 && !plan_offloads_states(check->plan),
              "zero=%d has nothing to shard over, dp_shard x cp is 1: use zero=0", zero);
    REFUSE_IF(check->arena, check->target->shard_needs_fsdp && shards > 1 && zero != 3,
              "%s shards fully over dp_shard x cp = %d, zero=%d does not exist there: use zero=3", check->target->name,
              shards, zero);
    return NULL;
}

// From fast to slow: of two axes that object the faster one speaks.
static const char *check_cuts(const Check *check) {
    const char *reason = NULL;
    for (int axis = AXIS_COUNT - 1; axis >= 0 && !reason; axis--) {
        if (axis_rules[axis] && axis_size(check, (Axis)axis) > 1) {
            reason = axis_rules[axis](check->target, check->model, check->plan, check->arena);
        }
    }
    return reason;
}

// One divisor that is asserted on every mesh, whether cp and tp cut or not.
static const char *check_sequence(const Check *check) {
    const int cp = axis_size(check, AXIS_CP), tp = axis_size(check, AXIS_TP);
    const int64_t divisor = INT64_C(2) * cp * tp;
    REFUSE_IF(check->arena, check->target->seq_by_tp && check->plan->seq % divisor != 0,
              "%s takes sequences that are a multiple of 2 x cp x tp = %lld, and seq is %d: use seq %s",
              check->target->name, (long long)divisor, check->plan->seq,
              multiples_around(check->plan->seq, divisor, check->arena));
    return NULL;
}

// A mask of blocks is cut over cp by whole blocks.
static const char *check_blocks(const Check *check) {
    const int64_t divisor = (int64_t)check->target->cp_block * axis_size(check, AXIS_CP);
    REFUSE_IF(check->arena, axis_size(check, AXIS_CP) > 1 && divisor > 0 && check->plan->seq % divisor != 0,
              "%s takes sequences that are a multiple of cp x %d = %lld, and seq is %d: use seq %s",
              check->target->name, check->target->cp_block, (long long)divisor, check->plan->seq,
              multiples_around(check->plan->seq, divisor, check->arena));
    return NULL;
}

static const char *check_local_tokens(const Check *check) {
    const int tp = axis_size(check, AXIS_TP);
    const int parts = mesh_group_size(&check->plan->mesh, AXES_SEQUENCE);
    const int64_t tokens = (int64_t)check->plan->micro_batch * check->plan->seq / parts;
    REFUSE_IF(
        check->arena, target_tp_flavour(check->target, check->plan) == TP_SP && tokens % tp != 0,
        "tp=%d does not divide the %lld tokens that a rank holds (micro_batch %d x seq %d / %s %d), which sequence "
        "parallelism splits: use a micro_batch that is a multiple of %d",
        tp, (long long)tokens, check->plan->micro_batch, check->plan->seq,
        axis_size(check, AXIS_SP) > 1 ? "cp x sp" : "cp", parts, tp / (int)gcd(check->plan->seq / parts, tp));
    return NULL;
}

// What its packages cannot run although the row allows it.
static const char *check_framework(const Check *check) {
    const Framework *framework = framework_of(check->target->name);
    return framework && framework->refuse ? framework->refuse(check->target, check->model, check->plan, check->arena)
                                          : NULL;
}

static const char *check_framework_mesh(const Check *check) {
    const bool spreads = axis_size(check, AXIS_EP) > 1 && check->target->axes & AXES_EP;
    const Framework *framework = spreads ? framework_of(check->target->name) : NULL;
    return framework && framework->refuse_mesh ? framework->refuse_mesh(check->model, check->plan, check->arena) : NULL;
}

// A table of positions ends; a norm over all heads of a token needs them on one rank.
static const char *check_structure(const Check *check) {
    const ModelSpec *model = check->model;
    const int tp = axis_size(check, AXIS_TP);
    REFUSE_IF(check->arena, model->position == POSITION_LEARNED && check->plan->seq > model->max_seq,
              "%s has learned %d positions, seq=%d is longer: use seq %d or less", model->name, model->max_seq,
              check->plan->seq, model->max_seq);
    REFUSE_IF(check->arena, model->qk_norm == QK_NORM_WHOLE && tp > 1,
              "%s norms all heads of a token together, tp=%d would split them: use tp=1", model->name, tp);
    return NULL;
}

static const char *check_rotation(const Check *check) {
    const Target *target = check->target;
    const bool ring = check->plan->cp_rotate == CP_ROTATE_RING;
    REFUSE_IF(check->arena, axis_size(check, AXIS_CP) > 1 && !(ring ? target->cp_ring : target->cp_allgather),
              "%s does not run cp_rotate=%s: use cp_rotate=%s", target->name, cp_rotate_names[check->plan->cp_rotate],
              cp_rotate_names[ring ? CP_ROTATE_ALLGATHER : CP_ROTATE_RING]);
    return NULL;
}

// What layers save: transformer_config.py of Megatron-core raises the first four.
static const char *check_offload_saved(const Check *check) {
    const TrainPlan *plan = check->plan;
    const int layers = check->model->layers;
    REFUSE_IF(check->arena, plan->recompute != RECOMPUTE_NONE,
              "CPU offloading does not work when activation recomputation is enabled: use recompute none");
    REFUSE_IF(check->arena, mesh_has_stages(&plan->mesh),
              "Currently there is no support for Pipeline parallelism with CPU offloading: use pp=1");
    REFUSE_IF(check->arena, plan_offload_layers(plan, layers) >= layers || layers == 1,
              "CPU offloading can be done only for layers less than %d: use offload_layers %d", layers, layers - 1);
    REFUSE_IF(check->arena, target_cuda_graphs(check->target, plan) || plan_graphed_parts(plan),
              "CUDA graphs not supported with CPU offloading: use cuda_graphs off");
    REFUSE_IF(check->arena, check->model->experts.count > 0 || plan_has_adapters(plan),
              "offload=activations of %s is not predicted yet: use offload none",
              plan_has_adapters(plan) ? "adapters' layers" : "layers of experts");
    return NULL;
}

static const char *check_offload(const Check *check) {
    const Offload offload = check->plan->offload;
    if (offload == OFFLOAD_NONE) {
        return NULL;
    }
    REFUSE_IF(check->arena, !(check->target->offloads >> offload & 1), "%s has no offload=%s: use offload %s",
              check->target->name, offload_names[offload],
              check->target->offloads >> OFFLOAD_PARAMETERS & 1 ? offload_names[OFFLOAD_PARAMETERS] : "none");
    if (plan_offloads_activations(check->plan) && check->target->offloads_saved) {
        return check_offload_saved(check);
    }
    REFUSE_IF(check->arena, check->plan->offload_layers > 0,
              "%s offloads the inputs of all recomputed layers: use offload_layers 0", check->target->name);
    REFUSE_IF(check->arena, offload == OFFLOAD_ACTIVATIONS && check->plan->recompute != RECOMPUTE_FULL,
              "offload=activations moves the inputs of recomputed layers, recompute=%s has none: use recompute=full",
              recompute_names[check->plan->recompute]);
    REFUSE_IF(check->arena, offload == OFFLOAD_PARAMETERS && check->plan->zero != 3,
              "offload=%s keeps shards of parameters on the host, zero=%d has none: use zero=3", offload_names[offload],
              check->plan->zero);
    return NULL;
}

static const char *check_fp8(const Check *check) {
    return fp8_rule(check->target, check->model, check->plan, check->arena);
}

static const char *check_experts(const Check *check) {
    return expert_rule(check->target, check->model, check->plan, check->arena);
}

// A version of the same framework that trains them; NULL.
static const Target *finetuning_version(const Check *check) {
    int count;
    const Target *table = target_table(&count);
    for (int i = 0; i < count; i++) {
        if (strcmp(table[i].name, check->target->name) == 0 && table[i].finetunes >> check->plan->finetune & 1) {
            return &table[i];
        }
    }
    return NULL;
}

static const char *refuse_finetune(const Check *check) {
    const Target *other = finetuning_version(check);
    const char *words =
        arena_format(check->arena, "adapters (finetune=%s) of %s@%s are not predicted yet: use ",
                     finetune_names[check->plan->finetune], check->target->name, check->target->version);
    const bool any = check->target->finetunes >> FINETUNE_LORA & 1;
    return other ? arena_format(check->arena, "%s%s@%s", words, other->name, other->version)
                 : arena_format(check->arena, "%sfinetune %s", words, any ? "lora" : "full");
}

static const char *check_finetune(const Check *check) {
    const TrainPlan *plan = check->plan;
    const ModelSpec *model = check->model;
    if (!plan_has_adapters(plan)) {
        return NULL;
    }
    if (!(check->target->finetunes >> plan->finetune & 1)) {
        return refuse_finetune(check);
    }
    REFUSE_IF(check->arena, model->latent.kv_rank > 0,
              "adapters beside the latent attention of %s are not predicted yet", model->name);
    REFUSE_IF(check->arena,
              model->experts.count > 0 && check->target->adapters_of_core && plan->lora_targets == LORA_ALL,
              "%s puts adapters on the experts of %s too, which is not predicted yet: use lora_targets %s",
              check->target->name, model->name, lora_targets_names[LORA_ATTENTION]);
    REFUSE_IF(check->arena, model->experts.count > 0 && plan_packs_base(plan),
              "the experts of %s are plain parameters, which bitsandbytes does not pack: use finetune lora",
              model->name);
    REFUSE_IF(check->arena, plan->precision == DTYPE_FP8 && check->target->fp8_flavour != FP8_TRANSFORMER_ENGINE,
              "adapters beside the fp8 layers of %s are not predicted yet: use precision bf16", check->target->name);
    REFUSE_IF(check->arena, check->target->adapters_of_core && plan_lora_rank(plan) % axis_size(check, AXIS_TP) != 0,
              "the rank of adapters, %d, is cut over tp=%d: use a --lora-rank that it divides", plan_lora_rank(plan),
              axis_size(check, AXIS_TP));
    REFUSE_IF(check->arena, plan->finetune == FINETUNE_LORA_INT8 && plan->zero == 3,
              "bitsandbytes' 8-bit weights cannot be sharded: use dp_replicate alone, or finetune qlora or lora");
    REFUSE_IF(check->arena, check->target->tp_flavour == TP_HF && axis_size(check, AXIS_TP) > 1,
              "adapters beside the tensor parallelism of transformers (tp=%d) are not predicted yet: use tp=1",
              axis_size(check, AXIS_TP));
    return NULL;
}

static const char *check_master(const Check *check) {
    const TrainPlan *plan = check->plan;
    REFUSE_IF(check->arena, check->target->bf16_weights && plan->precision == DTYPE_BF16 && !plan->bf16_master,
              "%s trains in the number format that it loads, without fp32 masters: use master weights bf16",
              check->target->name);
    REFUSE_IF(check->arena, plan->bf16_master && check->target->bf16_optimizer_bytes_per_parameter <= 0,
              "%s has no bf16 master weights: use master weights fp32", check->target->name);
    return NULL;
}

static const char *check_optimizer(const Check *check) {
    return optimizer_rule(check->target, check->plan, check->arena);
}

static const char *check_operations(const Check *check) {
    return op_rule(check->target, check->model, check->plan, check->arena);
}

static const char *check_pack(const Check *check) {
    return pack_rule(check->target, check->plan, check->arena);
}

// Its tensor parallelism shards the model too, always the same way, and knows no context parallelism.
static const char *check_own_sharding(const Check *check) {
    const TrainPlan *plan = check->plan;
    const int cp = axis_size(check, AXIS_CP), tp = axis_size(check, AXIS_TP);
    const char *axis = axis_names[tp > 1 ? AXIS_TP : AXIS_EP];
    const int size = tp > 1 ? tp : axis_size(check, AXIS_EP);
    REFUSE_IF(check->arena, cp > 1,
              "%s shards a model with %s=%d when it is loaded, without context parallelism: use cp=1, not %d, or %s=1",
              check->target->name, axis, size, cp, axis);
    REFUSE_IF(check->arena, plan->zero == 3 && plan->reshard == RESHARD_NEVER,
              "%s shards a model with %s=%d when it is loaded, and frees gathered layers after forward: use reshard "
              "always, or %s=1",
              check->target->name, axis, size, axis);
    return NULL;
}

static const char *check_reshard(const Check *check) {
    if (target_shards_itself(check->target, check->plan)) {
        return check_own_sharding(check);
    }
    REFUSE_IF(
        check->arena, check->target->always_reshards && check->plan->zero == 3 && check->plan->reshard == RESHARD_NEVER,
        "%s frees gathered parameters after forward whatever its file says: use reshard always", check->target->name);
    return NULL;
}

static const char *check_reshard_ranks(const Check *check) {
    const TrainPlan *plan = check->plan;
    const int ranks = plan->reshard_ranks, shards = plan_shard_count(plan);
    const char *lacks = choice_refused(check, PLAN_RESHARD_RANKS);
    if (lacks || !plan_field_matters(plan, PLAN_RESHARD_RANKS)) {
        return lacks;
    }
    REFUSE_IF(check->arena, plan->offload == OFFLOAD_PARAMETERS,
              "a second copy of parameters that live in the host's memory is not predicted: use reshard_ranks 0");
    // Its groups are of consecutive ranks of the world.
    REFUSE_IF(check->arena, shards != mesh_world(&plan->mesh),
              "reshard_ranks=%d beside other axes than shards is not predicted: use 0", ranks);
    REFUSE_IF(check->arena, ranks > shards || shards % ranks != 0,
              "reshard_ranks=%d does not divide the %d ranks that shard: use a divisor", ranks, shards);
    return NULL;
}

static const char *check_reduce_bucket(const Check *check) {
    return choice_refused(check, PLAN_REDUCE_BUCKET);
}

static const char *check_overlap(const Check *check) {
    return choice_refused(check, PLAN_TP_OVERLAP);
}

static const char *check_attention(const Check *check) {
    const Axis axis = axis_size(check, AXIS_SP) > 1 ? AXIS_SP : AXIS_CP;
    const int size = axis_size(check, axis);
    REFUSE_IF(check->arena, check->plan->attention == ATTENTION_EAGER && size > 1,
              "attention=eager cannot be split over %s=%d: use %s=1 or another kernel", axis_names[axis], size,
              axis_names[axis]);
    return NULL;
}

static const char *check_reduce_dtype(const Check *check) {
    const TrainPlan *plan = check->plan;
    if (plan->reduce_dtype != REDUCE_DTYPE_BF16) {
        return NULL;
    }
    REFUSE_IF(check->arena, check->target->reduces_fp32_only,
              "%s reduces gradients in fp32 only: use reduce_dtype fp32 or auto", check->target->name);
    REFUSE_IF(check->arena, plan->precision == DTYPE_FP16,
              "fp16 gradients do not fit bf16's digits: use reduce_dtype fp32 or auto");
    return NULL;
}

static bool runs_sync(const Check *check) {
    const TrainPlan *plan = check->plan;
    const GradSync asked = target_plain_sync(plan, plan->grad_sync);
    const int once_sharded = GRAD_SYNC_BIT(GRAD_SYNC_EACH) | GRAD_SYNC_BIT(GRAD_SYNC_SHARDS);
    const bool alike = asked == GRAD_SYNC_EACH && axis_size(check, AXIS_DP_REPLICATE) == 1;
    return asked == GRAD_SYNC_TARGET || asked == target_plain_sync(plan, target_own_sync(check->target, plan)) ||
           (check->target->grad_syncs & (alike ? once_sharded : GRAD_SYNC_BIT(asked)));
}

static const char *check_grad_sync(const Check *check) {
    const TrainPlan *plan = check->plan;
    const Target *target = check->target;
    if (!plan_field_matters(plan, PLAN_GRAD_SYNC)) {
        return NULL;
    }
    REFUSE_IF(check->arena, !runs_sync(check), "%s has no grad_sync=%s: %s; use grad_sync target%s", target->name,
              grad_sync_names[plan->grad_sync],
              target->grad_sync_note ? target->grad_sync_note : "its own is all there is",
              target->grad_syncs & GRAD_SYNC_BIT(GRAD_SYNC_EACH) ? ", each or last" : "");
    REFUSE_IF(check->arena,
              plan->zero == 1 && target_plain_sync(plan, target_grad_sync(target, plan)) != GRAD_SYNC_LAST,
              "sharding stage 1 keeps whole gradients to the last micro-step, grad_sync=%s is stage 2: use zero=2 or "
              "grad_sync last",
              grad_sync_names[plan->grad_sync]);
    return NULL;
}

static const char *check_reduce_overlap(const Check *check) {
    const TrainPlan *plan = check->plan;
    const Target *target = check->target;
    const bool own =
        target_reduce_overlap(target, plan) == target_reduce_overlap(target, &(TrainPlan){.zero = plan->zero});
    REFUSE_IF(check->arena,
              plan_field_matters(plan, PLAN_REDUCE_OVERLAP) && !own && !(target->overlap_stages >> plan->zero & 1),
              "%s has no reduce_overlap=%s at sharding stage %d: use reduce_overlap target", target->name,
              reduce_overlap_names[plan->reduce_overlap], plan->zero);
    return NULL;
}

static const char *check_loss(const Check *check) {
    const TrainPlan *plan = check->plan;
    const Target *target = check->target;
    const LossForm form = target_loss(target, plan);
    REFUSE_IF(check->arena,
              form != target_own_loss(target) && !((target->losses | target->losses_by_call) & LOSS_BIT(form)),
              "%s has no loss=%s: %s; use loss target", target->name, loss_form_names[form],
              target->loss_note ? target->loss_note : "its own is all there is");
    REFUSE_IF(check->arena, form == LOSS_FUSED && axis_size(check, AXIS_TP) > 1,
              "loss=fused reads the whole head, which tp=%d splits: use tp=1 or another loss",
              axis_size(check, AXIS_TP));
    const int64_t tokens = plan_local_tokens(plan);
    REFUSE_IF(check->arena, form == LOSS_CHUNKED && tokens % target->loss_chunks != 0,
              "loss=chunked cuts the %lld tokens of a rank and micro-step into %d equal parts: use a sequence that is "
              "a multiple of %d x cp, or loss whole",
              (long long)tokens, target->loss_chunks, target->loss_chunks);
    return NULL;
}

static const char *check_cuda_graphs(const Check *check) {
    const Target *target = check->target;
    const bool graphs = target_cuda_graphs(target, check->plan);
    const bool parts = plan_graphed_parts(check->plan) != 0;
    REFUSE_IF(check->arena, parts ? !target->graph_parts : graphs != target->own_graphs && !target->graph_switch,
              "%s@%s has no switch for cuda_graphs=%s: use cuda_graphs target", target->name, target->version,
              cuda_graphs_names[check->plan->cuda_graphs]);
    const int stages = mesh_stages(&check->plan->mesh);
    REFUSE_IF(check->arena, graphs && stages > 1 && target->graphs_note,
              "cuda_graphs=on with pp=%d: %s; use cuda_graphs off", stages, target->graphs_note);
    return NULL;
}

static const char *check_sequence_parallel(const Check *check) {
    const Target *target = check->target;
    const SequenceParallel asked = check->plan->sequence_parallel;
    if (asked == SEQUENCE_PARALLEL_TARGET || axis_size(check, AXIS_TP) == 1) {
        return NULL;
    }
    REFUSE_IF(check->arena, !target->sp_switch,
              "%s@%s has no switch for sequence_parallel=%s: use sequence_parallel target", target->name,
              target->version, sequence_parallel_names[asked]);
    const bool off = asked == SEQUENCE_PARALLEL_OFF;
    // Megatron-LM arguments.py asserts it.
    REFUSE_IF(check->arena, off && check->plan->tp_overlap,
              "tp_overlap=on needs sequence parallelism: use tp_overlap off or sequence_parallel on");
    REFUSE_IF(check->arena, off && check->plan->precision == DTYPE_FP8,
              "fp8 without sequence parallelism is not modelled: use precision bf16 or sequence_parallel on");
    return NULL;
}

// Elsewhere caps are passes of their own over scores and logits, and some attention kernels have none.
static const char *check_caps(const Check *check) {
    const ModelSpec *model = check->model;
    REFUSE_IF(check->arena, (model->attention_cap > 0 || model->logit_cap > 0) && !check->target->own_kernels,
              "the soft caps of scores and logits that %s has are predicted for target ndtune only, whose kernels take "
              "them in passing: use target ndtune",
              model->name);
    return NULL;
}

static const char *check_token_count(const Check *check) {
    const int64_t tokens =
        (int64_t)check->plan->micro_batch * check->plan->seq / mesh_group_size(&check->plan->mesh, AXES_SEQUENCE);
    const int64_t most =
        INT64_C(1) << 30;  // row counts of a task are multiplied by widths in 64 bits; this keeps them far from the end
    REFUSE_IF(check->arena, tokens > most,
              "a rank would hold %lld tokens per micro-step, more than %lld: use a smaller micro_batch",
              (long long)tokens, (long long)most);
    return NULL;
}

static const char *check_recompute(const Check *check) {
    return recompute_rule(check->target, check->model, check->plan, check->arena);
}

void target_check(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena,
                  const char **reason) {
    static const Rule rules[] = {check_positive,
                                 check_framework_mesh,
                                 check_axes,
                                 check_replicate,
                                 check_zero,
                                 check_recompute,
                                 check_reshard,
                                 check_overlap,
                                 check_fp8,
                                 check_experts,
                                 check_finetune,
                                 check_master,
                                 check_attention,
                                 check_cuts,
                                 check_sequence,
                                 check_blocks,
                                 check_local_tokens,
                                 check_rotation,
                                 check_token_count,
                                 check_structure,
                                 check_framework,
                                 check_order,
                                 check_reduce_dtype,
                                 check_grad_sync,
                                 check_offload,
                                 check_reduce_overlap,
                                 check_loss,
                                 check_cuda_graphs,
                                 check_sequence_parallel,
                                 check_optimizer,
                                 check_operations,
                                 check_pack,
                                 check_reshard_ranks,
                                 check_reduce_bucket,
                                 check_caps};
    const Check check = {.target = target, .model = model, .plan = plan, .arena = arena};
    *reason = NULL;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && !*reason; i++) {
        *reason = rules[i](&check);
    }
}
