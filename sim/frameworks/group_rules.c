// Which groups of micro-steps may go through the chunks of a stage one after another (pp_groups.c has their sizes).
// Megatron's words are those of forward_backward_pipelining_with_interleaving (pipeline_parallel/schedules.py of
// Megatron-LM d98e8a64dd; of GROUPS_OF_STAGES, of its 3.0).

#include "sim/frameworks/axis_rules.h"
#include "sim/frameworks/pp_groups.h"

// All are of one size (schedules.py of torch's pipelining).
static const char *refuse_equal(const TrainPlan *plan, Arena *arena) {
    const int micro_steps = plan_round_steps(plan), groups = micro_steps / mesh_stages(&plan->mesh);
    REFUSE_IF(arena, groups > 1 && micro_steps % groups != 0,
              "the %s schedule takes micro-steps in %d equal groups, and grad_accum=%d is no multiple of that: use "
              "grad_accum %s",
              pp_schedule_names[plan->pp_schedule], groups, plan->grad_accum,
              multiples_around(plan->grad_accum, mesh_stages(&plan->mesh) * plan_rounds(plan), arena));
    return NULL;
}

// A size that is taken, in the words of its files too.
static const char *group_text(const Target *target, int group, Arena *arena) {
    return target->group_switch ? arena_format(arena, "%d (%s %d)", group, target->group_switch, group)
                                : arena_format(arena, "%d", group);
}

static const char *refuse_size(const Target *target, const TrainPlan *plan, int group, Arena *arena) {
    const int stages = mesh_stages(&plan->mesh), micro_steps = plan_round_steps(plan), left = micro_steps % group;
    REFUSE_IF(arena, micro_steps < stages,
              "The number of contiguous micro-batches in a virtual pipeline stage should range in [PP=%d, M=%d]: use "
              "grad_accum %d or more",
              stages, micro_steps, stages * plan_rounds(plan));
    REFUSE_IF(arena, group < stages || group > micro_steps,
              "The number of contiguous micro-batches in a virtual pipeline stage should range in [PP=%d, M=%d], and "
              "is %d: use pp_group %s",
              stages, micro_steps, group, group_text(target, target_least_group(plan), arena));
    REFUSE_IF(arena, left > 0 && left < stages,
              "The remainder of M (the total micro-batches, %d) divided by N (number of contiguous micro-batches in a "
              "virtual pipeline stage, %d) should be 0, or larger than or equal to the pipeline-parallel size, but it "
              "is %d: use pp_group %s",
              micro_steps, group, left, group_text(target, target_least_group(plan), arena));
    return NULL;
}

const char *target_refuse_group(const Target *target, const TrainPlan *plan, Arena *arena) {
    const int stages = mesh_stages(&plan->mesh), group = target_pp_group(target, plan);
    if (plan->pp_schedule == PP_ZERO_BUBBLE) {
        return refuse_equal(plan, arena);
    }
    if (plan->pp_schedule != PP_INTERLEAVED) {
        return NULL;
    }
    if (target->group_rule == GROUPS_OF_STAGES) {
        REFUSE_IF(arena, plan_round_steps(plan) % stages != 0,
                  "number of microbatches (%d) is not divisible by pipeline-model-parallel-size (%d) when using "
                  "interleaved schedule: use grad_accum %s",
                  plan_round_steps(plan), stages, multiples_around(plan_round_steps(plan), stages, arena));
        REFUSE_IF(arena, group != stages, "%s@%s has groups of pp=%d micro-steps, not %d: use pp_group 0", target->name,
                  target->version, stages, group);
        return NULL;
    }
    if (target->group_rule == GROUPS_ANY || (target->own_kernels && plan->pp_group > 0)) {
        return refuse_size(target, plan, group, arena);
    }
    const char *equal = refuse_equal(plan, arena);
    REFUSE_IF(arena, !equal && group != target_equal_group(plan),
              "%s has equal groups of %d micro-steps here, and pp_group=%d is not predicted for it: use pp_group 0",
              target->name, target_equal_group(plan), group);
    return equal;
}
