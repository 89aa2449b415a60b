// What a target refuses of layers of experts.

#pragma once

#include "sim/frameworks/target.h"

// One sentence, arena text; NULL: it runs them.
const char *expert_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
