// Legality of Transformer Engine's fused operations and of its kernel of queries, keys and values.

#include "sim/frameworks/plan_rules.h"

// Attention asserts it in the first words (transformer/attention.py); its latent kind never asks, and the kernel takes
// no factor of cosines, which YaRN has (gpt_oss). Where ranks share a key-value head, get_query_key_value_tensors
// returns before it takes a rank's own queries out of the group's (d98e8a64d, if not split_qkv).
static const char *refuse_qkv(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const bool turns = model->position == POSITION_ROTARY && model->latent.kv_rank == 0 && model->yarn.factor == 0;
    REFUSE_IF(arena, plan->pack > 0 || model->qk_norm != QK_NORM_NONE || !turns,
              "fused_single_qkv_rope requested but not available/supported for the config: it takes no packed "
              "sequences, norms of queries and keys, latents or YaRN: use qkv_rope off");
    const int tp = plan->mesh.size[AXIS_TP];
    REFUSE_IF(
        arena, tp > model->kv_heads,
        "fused_single_qkv_rope takes all heads of a group, of which tp=%d cuts each of the %d key-value heads' of "
        "%s: use qkv_rope off",
        tp, model->kv_heads, model->name);
    return NULL;
}

static const char *refuse_experts(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int recipe = plan->precision == DTYPE_FP8 ? (int)plan->fp8_recipe : PLAN_ANY;
    const char *reason = target_refuses_fused(target, model, recipe, arena);
    REFUSE_IF(
        arena, !reason && (plan->fp8_activation || (plan->recompute_modules & RECOMPUTE_EXPERT_ACTIVATION)),
        "op_fuser=on has the activation of experts in their products, so that its input is not cast and it is not "
        "recomputed: use fp8_activation off, recompute_modules without moe-act, or op_fuser off");
    return reason;
}

// An adapter wraps the layer that TEFusedMLP asks for, whose words these are.
static const char *refuse_fused(const TrainPlan *plan, Arena *arena) {
    REFUSE_IF(arena, plan_has_adapters(plan) && plan->lora_targets == LORA_ALL,
              "TEFusedMLP expects FC1 to be Transformer Engine LayerNormLinear, but found LoRALinear: use lora_targets "
              "%s, or op_fuser off",
              lora_targets_names[LORA_ATTENTION]);
    return NULL;
}

const char *op_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const char *reason = choice_rule(target, plan, PLAN_OP_FUSER, arena);
    reason = reason ? reason : choice_rule(target, plan, PLAN_QKV_ROPE, arena);
    reason = reason || !plan->op_fuser ? reason : refuse_fused(plan, arena);
    reason =
        reason || !plan->op_fuser || model->experts.count == 0 ? reason : refuse_experts(target, model, plan, arena);
    return reason || !plan->qkv_rope ? reason : refuse_qkv(model, plan, arena);
}
