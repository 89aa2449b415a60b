// Which expert layers and token dispatchers a target runs. Where ep takes its ranks: axis_rules.c.

#include "sim/frameworks/plan_rules.h"

// torchao's products of experts take rows that a dispatcher has padded, which its one user here swaps in with expert
// parallelism alone.
static const char *check_layers(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const bool grouped = target->fp8_flavour == FP8_TORCHAO && plan->fp8_recipe == FP8_MX;
    if (plan->precision != DTYPE_FP8 || target->fp8_flavour == FP8_TRANSFORMER_ENGINE) {
        return NULL;
    }
    REFUSE_IF(arena, !grouped,
              "fp8 of layers of experts (%s) is predicted of Transformer Engine, and of torchao's products in mxfp8: "
              "use precision bf16",
              model->name);
    return plan->mesh.size[AXIS_EP] > 1
               ? NULL
               : arena_format(arena,
                              "fp8_recipe=%s of layers of experts (%s) needs them on several ranks in %s: use ep, or "
                              "precision bf16",
                              fp8_recipe_names[FP8_MX], model->name, target->name);
}

static const char *check_dispatch(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const Dispatch dispatch = target_dispatch(target, plan);
    TrainPlan as_usual = *plan;
    as_usual.dispatch = DISPATCH_TARGET;
    const bool own = dispatch == target_dispatch(target, &as_usual);
    if (plan->mesh.size[AXIS_EP] == 1 || (own && dispatch == DISPATCH_ALLTOALL)) {
        return NULL;
    }
    REFUSE_IF(arena, !own && !(target->dispatchers & DISPATCH_BIT(dispatch)),
              "%s has no dispatcher=%s: use dispatcher target", target->name, dispatch_names[dispatch]);
    REFUSE_IF(arena, model->experts.shared_gate,
              "dispatcher=%s beside the gate of shared experts (%s) is not predicted yet: use %s",
              dispatch_names[dispatch], model->name, own ? "ep=1" : "dispatcher alltoall");
    return NULL;
}

// Megatron-core's transformer_config.py asserts it.
static const char *check_ep_overlap(const Target *target, const TrainPlan *plan, Arena *arena) {
    const char *lacks = choice_rule(target, plan, PLAN_EP_OVERLAP, arena);
    if (lacks || !plan->ep_overlap || plan->mesh.size[AXIS_EP] == 1) {
        return lacks;
    }
    REFUSE_IF(arena, target_dispatch(target, plan) == DISPATCH_ALLGATHER,
              "ep_overlap=on is supported with the alltoall, deepep and hybridep dispatchers: use one of them");
    REFUSE_IF(arena, plan->recompute == RECOMPUTE_FULL,
              "full recomputation must be off with ep_overlap=on: use recompute none or selective");
    REFUSE_IF(arena, plan_has_stages(plan) && plan_chunks(plan) == 1,
              "ep_overlap=on needs virtual stages where pp is %d: use pp_schedule interleaved",
              mesh_stages(&plan->mesh));
    REFUSE_IF(arena, plan->precision == DTYPE_FP32,
              "ep_overlap=on is supported with bf16 and fp16 only: use precision bf16");
    return NULL;
}

// The ranks of an expert's parts, and of all experts, are lent as those of ep are.
static const char *check_lent(const TrainPlan *plan, Arena *arena) {
    const int ep = plan->mesh.size[AXIS_EP], stages = mesh_stages(&plan->mesh), world = mesh_world(&plan->mesh);
    REFUSE_IF(arena, world % (plan->etp * ep * stages) != 0,
              "world_size (%d) is not divisible by expert_tensor_model_pipeline_parallel size (%d): use etp 1", world,
              plan->etp * ep * stages);
    return mesh_lends_ranks(&plan->mesh, AXES_STAGE_RANKS, plan->etp) &&
                   mesh_lends_ranks(&plan->mesh, AXES_STAGE_RANKS, plan->etp * ep)
               ? NULL
               : arena_format(arena,
                              "etp=%d and ep=%d take their ranks from dp_shard x cp x tp, and do not divide their %d "
                              "evenly: use etp 1",
                              plan->etp, ep, mesh_group_size(&plan->mesh, AXES_STAGE_RANKS));
}

// Megatron-core's parallel_state.py and transformer_config.py.
static const char *check_etp(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int etp = plan->etp, ep = plan->mesh.size[AXIS_EP];
    if (plan_expert_tp(plan) == (ep > 1 ? 1 : plan->mesh.size[AXIS_TP])) {
        return NULL;
    }
    REFUSE_IF(arena, !target->cuts_experts, "%s has no tensor parallelism of experts alone (etp=%d): use etp=%d",
              target->name, etp, ep > 1 ? 1 : plan->mesh.size[AXIS_TP]);
    REFUSE_IF(arena, ep == 1, "etp=%d beside tp=%d is predicted with experts on several ranks alone: use ep, or etp=%d",
              etp, plan->mesh.size[AXIS_TP], plan->mesh.size[AXIS_TP]);
    REFUSE_IF(arena, model->experts.ffn % etp != 0, "etp=%d does not divide the %d columns of an expert: use etp 1",
              etp, model->experts.ffn);
    return model->experts.bias ? arena_format(arena,
                                              "bias in MoE is only supported when ETP==1, and the experts of %s have "
                                              "biases: use etp 1 for etp=%d",
                                              model->name, etp)
                               : check_lent(plan, arena);
}

// Megatron-core's transformer_config.py.
static const char *check_capacity(const Target *target, const TrainPlan *plan, Arena *arena) {
    if (plan->expert_capacity == 0) {
        return plan->pad_experts ? "expert_capacity must be set to use pad_experts=on" : NULL;
    }
    REFUSE_IF(arena, !target->cuts_experts, "%s drops no tokens (expert_capacity=%d): use expert_capacity=0",
              target->name, plan->expert_capacity);
    REFUSE_IF(arena,
              plan->pad_experts && plan->mesh.size[AXIS_EP] > 1 && target_dispatch(target, plan) == DISPATCH_DEEPEP,
              "flex token dispatcher with deepep backend does not support pad_experts=on: use dispatcher alltoall");
    return NULL;
}

static const char *check_without(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const char *what = plan->etp > 0 ? "etp" : plan->expert_capacity > 0 ? "expert_capacity" : NULL;
    return what ? arena_format(arena, "%s is of experts, and %s has none: use %s=0", what, model->name, what) : NULL;
}

// Megatron-core's transformer_config.py, of token exchange during another micro-step's layers.
static const char *check_further(const Target *target, const TrainPlan *plan, Arena *arena) {
    REFUSE_IF(arena, !target->predicts_further, "%s has no layers that predict further tokens (mtp=%d): use mtp=0",
              target->name, plan->mtp);
    REFUSE_IF(arena, plan->zero == 3 || plan_has_adapters(plan),
              "layers that predict further tokens (mtp=%d) are predicted of %s: use mtp=0", plan->mtp,
              plan->zero == 3 ? "whole parameters alone" : "full training alone");
    REFUSE_IF(arena, plan->ep_overlap && plan->mtp > 1,
              "MTP supports at most one layer when enabling ep_overlap=on: use mtp=1");
    return NULL;
}

const char *expert_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const char *reason = plan->mtp > 0 ? check_further(target, plan, arena) : NULL;
    if (reason || model->experts.count == 0) {
        return reason ? reason : check_without(model, plan, arena);
    }
    reason = check_layers(target, model, plan, arena);
    reason = reason ? reason : check_etp(target, model, plan, arena);
    reason = reason ? reason : check_capacity(target, plan, arena);
    reason = reason ? reason : check_dispatch(target, model, plan, arena);
    return reason ? reason : check_ep_overlap(target, plan, arena);
}
