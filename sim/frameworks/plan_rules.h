// What a target refuses of a plan, by choice: why, in one sentence (arena text); NULL: it runs it.

#pragma once

#include "sim/frameworks/target_choices.h"

// Of the plan's value of a field, whatever else it says.
static inline const char *choice_rule(const Target *target, const TrainPlan *plan, PlanFieldId id, Arena *arena) {
    const int value = plan_get(plan, id);
    return value == plan_fields[id].usual ? NULL : target_refuses(target, id, value, arena);
}

const char *expert_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
const char *fp8_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
const char *op_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
const char *optimizer_rule(const Target *target, const TrainPlan *plan, Arena *arena);
const char *pack_rule(const Target *target, const TrainPlan *plan, Arena *arena);
const char *recompute_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
