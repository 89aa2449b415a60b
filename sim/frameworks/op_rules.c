// Legality of Transformer Engine's fused operations and of its kernel of queries, keys and values.

#include "sim/frameworks/plan_rules.h"

// Attention asserts it in the first words (transformer/attention.py); its latent kind never asks, and the kernel takes
// no factor of cosines, which YaRN has (gpt_oss).
static const char *refuse_qkv(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const bool turns = model->position == POSITION_ROTARY && model->latent.kv_rank == 0 && !model->experts.bias;
    REFUSE_IF(arena, !target->qkv_rope, "%s@%s has no qkv_rope=on: use qkv_rope off", target->name, target->version);
    REFUSE_IF(arena, plan->pack > 0 || model->qk_norm != QK_NORM_NONE || !turns,
              "fused_single_qkv_rope requested but not available/supported for the config: it takes no packed "
              "sequences, norms of queries and keys, latents or YaRN: use qkv_rope off");
    return NULL;
}

// An adapter wraps the layer that TEFusedMLP asks for, whose words are the second refusal. Of experts Megatron's switch
// fuses all products and the activation (transformer/moe/experts.py, _is_fused_impl_supported), in fp8 or not.
const char *op_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const bool adapts_mlp = plan_has_adapters(plan) && plan->lora_targets == LORA_ALL;
    REFUSE_IF(arena, plan->op_fuser && !target->op_fuser, "%s@%s has no op_fuser=on: use op_fuser off", target->name,
              target->version);
    REFUSE_IF(arena, plan->op_fuser && adapts_mlp,
              "TEFusedMLP expects FC1 to be Transformer Engine LayerNormLinear, but found LoRALinear: use lora_targets "
              "%s, or op_fuser off",
              lora_targets_names[LORA_ATTENTION]);
    REFUSE_IF(
        arena, plan->op_fuser && model->experts.count > 0,
        "op_fuser=on of layers of experts, which %s has, is not predicted, though %s has operations for them: use "
        "op_fuser off",
        model->name, target->name);
    return plan->qkv_rope ? refuse_qkv(target, model, plan, arena) : NULL;
}
