// How many micro-steps go through a chunk of a stage's layers before the next one (group_rules.c says which may).

#include "sim/frameworks/pp_groups.h"

// The last group of those of a size; 0: there is no smaller one.
static bool fills_stages(int group, int stages, int micro_steps) {
    const int left = micro_steps % group;
    return left == 0 || left >= stages;
}

int target_least_group(const TrainPlan *plan) {
    const int stages = mesh_stages(&plan->mesh), micro_steps = plan_round_steps(plan);
    int group = stages;
    while (group < micro_steps && !fills_stages(group, stages, micro_steps)) {
        group++;
    }
    return group;
}

int target_equal_group(const TrainPlan *plan) {
    const int rounds = plan_round_steps(plan) / mesh_stages(&plan->mesh);
    return plan_round_steps(plan) / (rounds > 1 ? rounds : 1);
}

int target_pp_group(const Target *target, const TrainPlan *plan) {
    return plan->pp_schedule != PP_INTERLEAVED      ? target_equal_group(plan)
           : plan->pp_group > 0                     ? plan->pp_group
           : target->group_rule == GROUPS_EQUAL     ? target_equal_group(plan)
           : target->group_rule == GROUPS_OF_STAGES ? mesh_stages(&plan->mesh)
                                                    : target_least_group(plan);
}

int target_other_group(const Target *target, const TrainPlan *plan) {
    const int group = target_pp_group(target, plan);
    return group == target_equal_group(plan) ? 0 : group;
}
