// base_model_tp_plan of transformers' configuration_*.py, where it is absent or not the split of heads that is
// modelled.

#include <string.h>

#include "sim/frameworks/accelerate/accelerate.h"

static const struct {
    const char *type, *words;
} plans[] = {
    {"gpt2", "has no tensor-parallel plan for"},
    {"mpt", "has no tensor-parallel plan for"},
    {"phi3", "runs all heads on every tp rank (colwise_gather_output), which is not modelled, for"},
};

const char *transformers_refuse(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int tp = plan->mesh.size[AXIS_TP];
    if (target->tp_flavour != TP_HF || tp == 1 || !model->type) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        if (strcmp(plans[i].type, model->type) == 0) {
            return arena_format(arena, "tp=%d: transformers %s %s models: use tp=1", tp, plans[i].words, model->type);
        }
    }
    return NULL;
}
