// Legality of an optimizer for a target: its row says which it has, and which of them do not take sharded parameters.

#include <string.h>

#include "sim/base/text.h"
#include "sim/frameworks/plan_rules.h"

// "adamw, adamw-fused or lion": what it has where the plan shards as it does.
static const char *those_it_has(const Target *target, const TrainPlan *plan, Arena *arena) {
    const unsigned left = target->optimizers & ~(plan->zero == 3 ? target->unsharded_optimizers : 0);
    return text_of_bits(optimizer_names, left | OPTIMIZER_BIT(OPTIMIZER_TARGET), arena);
}

// ", or target NAME@VERSION": another version that has it; "".
static const char *version_with(const Target *target, unsigned bit, Arena *arena) {
    int count = 0;
    const Target *table = target_table(&count);
    for (int i = 0; i < count; i++) {
        if (strcmp(table[i].name, target->name) == 0 && table[i].optimizers & bit) {
            return arena_format(arena, ", or target %s@%s", table[i].name, table[i].version);
        }
    }
    return "";
}

// Targets that have it reject pipelines and ranks of experts, step with every micro-step, and run its hooks before
// replicas without FSDP have reduced.
static const char *refuse_in_backward(const Target *target, const TrainPlan *plan, Arena *arena) {
    static const Axis without[] = {AXIS_PP, AXIS_EP};
    for (int i = 0; i < 2; i++) {
        REFUSE_IF(arena, plan->mesh.size[without[i]] > 1,
                  "%s has no update_in_backward=on beside %s=%d: use %s=1, or update_in_backward off", target->name,
                  axis_names[without[i]], plan->mesh.size[without[i]], axis_names[without[i]]);
    }
    REFUSE_IF(arena, plan->grad_accum > 1,
              "update_in_backward=on updates with every micro-step, so grad_accum=%d accumulates nothing: use "
              "grad_accum 1, or update_in_backward off",
              plan->grad_accum);
    REFUSE_IF(arena, plan->zero == 0 && mesh_group_size(&plan->mesh, AXES_DATA_GROUP) > 1,
              "update_in_backward=on of replicas alone updates before they have reduced their gradients: use dp_shard, "
              "not dp_replicate=%d alone, or update_in_backward off",
              plan->mesh.size[AXIS_DP_REPLICATE]);
    REFUSE_IF(arena, plan->offload != OFFLOAD_NONE,
              "update_in_backward=on beside offload=%s is not predicted yet: use offload none",
              offload_names[plan->offload]);
    return NULL;
}

// What cuts matrices that must be whole: all of it, and the values that do not.
static const char *refuse_cut_matrices(const Target *target, const TrainPlan *plan, Arena *arena) {
    const struct {
        const char *name, *whole;
        int value, most;
    } cuts[] = {{"zero", target->deals_matrices ? "zero=1" : "dp_replicate alone", plan->zero, target->deals_matrices},
                {"tp", "tp=1", plan->mesh.size[AXIS_TP], 1},
                {"etp", "etp=1", plan->etp, 1}};
    const char *said = "", *whole = "";
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        const char *joint = said[0] ? ", " : "";
        if (cuts[i].value > cuts[i].most) {
            said = arena_format(arena, "%s%s%s=%d", said, joint, cuts[i].name, cuts[i].value);
            whole = arena_format(arena, "%s%s%s", whole, joint, cuts[i].whole);
        }
    }
    REFUSE_IF(arena, said[0],
              "optimizer=muon of matrices that are cut (%s) exchanges them between ranks first, which is not predicted "
              "yet: use %s, or optimizer adamw",
              said, whole);
    return NULL;
}

const char *optimizer_rule(const Target *target, const TrainPlan *plan, Arena *arena) {
    const char *early = choice_rule(target, plan, PLAN_UPDATE_IN_BACKWARD, arena);
    early = early || !plan->update_in_backward ? early : refuse_in_backward(target, plan, arena);
    if (early) {
        return early;
    }
    const Optimizer asked = plan->optimizer;
    const unsigned bit = OPTIMIZER_BIT(asked);
    if (asked == OPTIMIZER_TARGET) {
        return NULL;
    }
    REFUSE_IF(arena, !(target->optimizers & bit), "%s@%s has no optimizer=%s: use optimizer %s%s", target->name,
              target->version, optimizer_names[asked], those_it_has(target, plan, arena),
              version_with(target, bit, arena));
    REFUSE_IF(arena, plan->zero == 3 && (target->unsharded_optimizers & bit),
              "optimizer=%s is of bitsandbytes, whose kernels do not take the sharded parameters (DTensors) of %s: use "
              "optimizer %s",
              optimizer_names[asked], target->name, those_it_has(target, plan, arena));
    REFUSE_IF(arena, plan_offloads_states(plan) && asked != OPTIMIZER_ADAMW_FUSED && asked != OPTIMIZER_ADAMW_FOREACH,
              "offload=%s updates on the host, where optimizer=%s has no kernel that is priced here: use optimizer "
              "adamw or offload none",
              offload_names[plan->offload], optimizer_names[asked]);
    const char *cut = asked == OPTIMIZER_MUON ? refuse_cut_matrices(target, plan, arena) : NULL;
    if (cut) {
        return cut;
    }
    REFUSE_IF(arena, asked == OPTIMIZER_MUON && plan->zero == 1 && plan->mesh.size[AXIS_DP_REPLICATE] > 1,
              "LayerWiseDistributedOptimizer does not support num_distributed_optimizer_instances > 1: use "
              "dp_replicate=1, or zero=0 with dp_shard=1");
    REFUSE_IF(arena, asked == OPTIMIZER_ADAMW_BF16 && plan->bf16_master,
              "with master weights bf16 the states are bf16 already: use optimizer adamw");
    return NULL;
}
