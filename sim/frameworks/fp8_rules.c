// Legality of fp8 by framework: recipes and what is kept in it. Which chips have the products: autotune/search/prune.c.

#include "sim/base/text.h"
#include "sim/frameworks/plan_rules.h"

// arguments.py of Megatron-LM asserts the first and the last.
static const char *refuse_parameters(const Target *target, const ModelSpec *model, const TrainPlan *plan,
                                     Arena *arena) {
    const unsigned recipes = target->fp8_parameters;
    const char *lacks = choice_rule(target, plan, PLAN_FP8_PARAMETERS, arena);
    if (!plan->fp8_parameters || lacks) {
        return lacks;
    }
    REFUSE_IF(arena, !(recipes & FP8_BIT(plan->fp8_recipe)),
              "%s has fp8_parameters=on with fp8_recipe %s, not %s: use one of them", target->name,
              text_of_bits(fp8_recipe_names, recipes, arena), fp8_recipe_names[plan->fp8_recipe]);
    REFUSE_IF(arena, plan->zero == 0 && mesh_group_size(&plan->mesh, AXES_DATA_GROUP) > 1,
              "fp8_parameters=on of %s is of its distributed optimizer, zero=0 has none: use zero 1, or fp8_parameters "
              "off",
              target->name);
    REFUSE_IF(arena, plan->bf16_master,
              "fp8_parameters=on keeps no weights in bf16 to be masters: use master weights fp32");
    REFUSE_IF(arena, model->experts.count > 0 && plan->fp8_recipe != FP8_MX,
              "fp8_parameters=on of layers of experts, which %s has, is predicted with fp8_recipe %s alone: use "
              "fp8_parameters off",
              model->name, fp8_recipe_names[FP8_MX]);
    REFUSE_IF(arena, plan->offload == OFFLOAD_OPTIMIZER && plan->fp8_recipe != FP8_DELAYED,
              "fp8_parameters=on of states that are updated on the host goes with fp8_recipe delayed, not %s: use "
              "that, or fp8_parameters off",
              fp8_recipe_names[plan->fp8_recipe]);
    return NULL;
}

// transformer_config.py of Megatron-core says the second, of gpt_oss too: its experts, the ones with biases, have a
// clamped quick_gelu (gpt_oss_bridge.py). Its unfused activation never asks (transformer/mlp.py).
static const char *refuse_activation(const Target *target, const ModelSpec *model, const TrainPlan *plan,
                                     Arena *arena) {
    const bool swiglu = model->mlp == MLP_GATED && model->activation == ACTIVATION_SILU && !model->experts.bias;
    const char *lacks = choice_rule(target, plan, PLAN_FP8_ACTIVATION, arena);
    if (!plan->fp8_activation || lacks) {
        return lacks;
    }
    REFUSE_IF(arena, !swiglu,
              "Storing activation input in FP8 is supported only for SwiGLU, which %s has not: use fp8_activation off",
              model->name);
    REFUSE_IF(arena, plan->fused != FUSED_FUSED,
              "fp8_activation=on is of the fused activation: use kernels fused, or fp8_activation off");
    return NULL;
}

const char *fp8_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int tp = plan->mesh.size[AXIS_TP];
    const char *activation = refuse_activation(target, model, plan, arena);
    if (activation || plan->precision != DTYPE_FP8) {
        return activation;
    }
    REFUSE_IF(arena, target->fp8_flavour == FP8_NONE, "%s does not run fp8: use precision bf16", target->name);
    REFUSE_IF(arena, !(target->fp8_recipes & FP8_BIT(plan->fp8_recipe)), "%s has no fp8_recipe=%s: use fp8_recipe %s",
              target->name, fp8_recipe_names[plan->fp8_recipe],
              text_of_bits(fp8_recipe_names, target->fp8_recipes, arena));
    REFUSE_IF(arena, target->tp_flavour != TP_SP && tp > 1,
              "%s does not run fp8 beside tp=%d: use tp=1 or precision bf16", target->name, tp);
    return refuse_parameters(target, model, plan, arena);
}
