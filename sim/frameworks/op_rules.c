// Legality of Transformer Engine's fused operations and of its kernel of queries, keys and values.

#include "sim/frameworks/plan_rules.h"

// Attention asserts it in the first words (transformer/attention.py); its latent kind never asks, and the kernel takes
// no factor of cosines, which YaRN has (gpt_oss).
static const char *refuse_qkv(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const bool turns = model->position == POSITION_ROTARY && model->latent.kv_rank == 0 && !model->experts.bias;
    REFUSE_IF(arena, plan->pack > 0 || model->qk_norm != QK_NORM_NONE || !turns,
              "fused_single_qkv_rope requested but not available/supported for the config: it takes no packed "
              "sequences, norms of queries and keys, latents or YaRN: use qkv_rope off");
    return NULL;
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
    const char *reason = choice_rule(target, model, plan, PLAN_OP_FUSER, arena);
    reason = reason ? reason : choice_rule(target, model, plan, PLAN_QKV_ROPE, arena);
    reason = reason || !plan->op_fuser ? reason : refuse_fused(plan, arena);
    return reason || !plan->qkv_rope ? reason : refuse_qkv(model, plan, arena);
}
