// Which layers of experts, and which ways of tokens to them, a target runs. Where ep takes its ranks: axis_rules.c.

#include "sim/frameworks/expert_rules.h"

static const char *check_layers(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    if (plan->precision == DTYPE_FP8 && target->fp8_flavour != FP8_TRANSFORMER_ENGINE) {
        return arena_format(arena,
                            "fp8 of layers of experts (%s) is predicted of Transformer Engine alone: use precision "
                            "bf16",
                            model->name);
    }
    return NULL;
}

static const char *check_dispatch(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const Dispatch dispatch = target_dispatch(target, plan);
    if (plan->mesh.size[AXIS_EP] == 1 || dispatch == DISPATCH_ALLTOALL) {
        return NULL;
    }
    if (!(target->dispatchers & DISPATCH_BIT(dispatch))) {
        return arena_format(arena, "%s has no dispatcher=%s: use dispatcher target", target->name,
                            dispatch_names[dispatch]);
    }
    return model->experts.shared_gate
               ? arena_format(arena,
                              "dispatcher=%s beside the gate of shared experts (%s) is not predicted yet: use "
                              "dispatcher alltoall",
                              dispatch_names[dispatch], model->name)
               : NULL;
}

// Megatron-core's transformer_config.py asserts it.
static const char *check_ep_overlap(const Target *target, const TrainPlan *plan, Arena *arena) {
    if (!plan->ep_overlap || plan->mesh.size[AXIS_EP] == 1) {
        return NULL;
    }
    if (target->ep_overlap_exposed <= 0) {
        return arena_format(arena, "%s runs exchanges of experts by themselves: use ep_overlap off", target->name);
    }
    if (target_dispatch(target, plan) == DISPATCH_ALLGATHER) {
        return "ep_overlap=on is supported with the alltoall, deepep and hybridep dispatchers: use one of them";
    }
    if (plan->recompute == RECOMPUTE_FULL) {
        return "full recomputation must be off with ep_overlap=on: use recompute none or selective";
    }
    if (mesh_stages(&plan->mesh) > 1 && plan_chunks(plan) == 1) {
        return arena_format(arena, "ep_overlap=on needs virtual stages where pp is %d: use pp_schedule interleaved",
                            mesh_stages(&plan->mesh));
    }
    return plan->precision == DTYPE_FP32 ? "ep_overlap=on is supported with bf16 and fp16 only: use precision bf16"
                                         : NULL;
}

const char *expert_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    if (model->experts.count == 0) {
        return NULL;
    }
    const char *reason = check_layers(target, model, plan, arena);
    reason = reason ? reason : check_dispatch(target, model, plan, arena);
    return reason ? reason : check_ep_overlap(target, plan, arena);
}
