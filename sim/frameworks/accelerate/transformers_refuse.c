// What models of transformers and Liger cannot be trained with. base_model_tp_plan of transformers' configuration_*.py,
// where it is absent or not the split of heads that is modelled.

#include <string.h>

#include "sim/frameworks/accelerate/accelerate.h"

static const struct {
    const char *type, *words;
} plans[] = {
    {"gpt2", "has no tensor-parallel plan for"},
    {"mpt", "has no tensor-parallel plan for"},
    {"phimoe", "splits the experts of, and not the heads of,"},
    {"gpt_oss", "has no tensor-parallel plan for"},
    {"olmoe", "runs all heads on every tp rank (colwise_gather_output), which is not modelled, for"},
    {"llama4_text", "splits experts by rows first, which is not modelled, in"},
    {"deepseek_v2", "splits latent attention in its own way, which is not modelled, in"},
    {"deepseek_v3", "splits the experts of, and not the heads of,"},
    {"kimi_k2", "splits the experts of, and not the heads of,"},
    {"phi3", "runs all heads on every tp rank (colwise_gather_output), which is not modelled, for"},
};

// Types that liger-kernel 0.8.5 has no fused head and loss for.
static const char *const not_of_liger[] = {"gpt2", "gpt_neox", "mpt"};

static const char *liger_refuse(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    for (size_t i = 0; plan->loss == LOSS_FUSED && i < sizeof not_of_liger / sizeof not_of_liger[0]; i++) {
        REFUSE_IF(arena, model->type && strcmp(not_of_liger[i], model->type) == 0,
                  "Liger has no fused head and loss for %s models: use loss whole", model->type);
    }
    return NULL;
}

const char *transformers_refuse(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int tp = plan->mesh.size[AXIS_TP];
    if (target->tp_flavour != TP_HF || tp == 1 || !model->type) {
        return liger_refuse(model, plan, arena);
    }
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        REFUSE_IF(arena, strcmp(plans[i].type, model->type) == 0, "tp=%d: transformers %s %s models: use tp=1", tp,
                  plans[i].words, model->type);
    }
    return NULL;
}
