// Recomputation a target refuses: which parts of a layer, how many layers.

#pragma once

#include "sim/frameworks/target.h"

// Why the plan cannot recompute as it says: one sentence, arena text; NULL.
const char *recompute_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
