// What a target refuses of optimizers.

#pragma once

#include "sim/frameworks/target.h"

// Why the plan's optimizer is not available: one sentence, arena text; NULL.
const char *optimizer_rule(const Target *target, const TrainPlan *plan, Arena *arena);
