// Micro-steps that go through a chunk of a stage's layers before the next one, where a stage has several.

#pragma once

#include "sim/frameworks/target.h"

int target_pp_group(const Target *target, const TrainPlan *plan);
int target_other_group(const Target *target, const TrainPlan *plan);  // the same; 0 where groups are equal ones
int target_equal_group(const TrainPlan *plan);                        // of GROUPS_EQUAL
int target_least_group(const TrainPlan *plan);                        // of GROUPS_ANY

// Why the plan's cannot be: one sentence, arena text; NULL (group_rules.c).
const char *target_refuse_group(const Target *target, const TrainPlan *plan, Arena *arena);
