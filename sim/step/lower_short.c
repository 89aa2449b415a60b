// A stage of a step with few of its micro-steps, to see what it holds.

#include "sim/frameworks/pp_groups.h"
#include "sim/step/lower.h"
#include "sim/step/stages.h"

// It holds as much with more groups of them than a few, whatever the schedule but GPipe, and with more than two rounds.
// Where only some layers recompute, chunks differ in what they carry, and it takes a group more. The few are of the
// plan's size, with what is left over for a last, smaller one.
static TrainPlan with_few_micro_steps(const Target *target, const TrainPlan *plan) {
    TrainPlan few = *plan;
    const int group = target_pp_group(target, plan), groups = plan_keeps_layers(plan) ? 4 : 3;
    int steps = plan_round_steps(plan);
    const bool cut = steps / group > groups && plan->pp_schedule != PP_GPIPE && plan->pp_schedule != PP_FILE;
    steps = cut ? groups * group + (plan->pp_schedule == PP_INTERLEAVED ? steps % group : 0) : steps;
    few.pp_rounds = plan_rounds(plan) > 1 ? 2 : 1;
    few.grad_accum = steps * plan_rounds(&few);
    few.pp_group = cut && target_pp_group(target, &few) != group ? group : plan->pp_group;
    return few;
}

Status step_lower_short(const ModelSpec *model, const TrainPlan *plan, const Target *target, int stage, Arena *arena,
                        StepProgram *program, Error *error) {
    const TrainPlan few = with_few_micro_steps(target, plan);
    const LoweringChoice choice = {.stage = stage, .buffered_steps = plan_round_steps(plan)};
    return step_lower_scheduled(model, &few, target, choice, arena, program, error);
}
