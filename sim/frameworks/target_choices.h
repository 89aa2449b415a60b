// What a target makes of the fields of a plan that nobody decided: its own value, and the values that a search may try.

#pragma once

#include "sim/frameworks/target.h"
#include "sim/plan/plan_fields.h"

// The value of a field that is left to the target, beside the plan's mesh and the fields above it.
int target_usual(const Target *target, const TrainPlan *plan, PlanFieldId id);

// Do targets differ in it?
bool target_decides(PlanFieldId id);

// Does a search take the value of the field that just fits in memory?
bool target_fits(const Target *target, PlanFieldId id);

// Does a search of the field try this value, beside the plan's mesh and stage? What is no choice there is not tried
// twice; what is not offered may be asked for, and is then judged by target_check.
bool target_offers(const Target *target, const TrainPlan *plan, PlanFieldId id, int value);
