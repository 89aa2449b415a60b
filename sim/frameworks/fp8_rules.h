// What a target refuses of fp8.

#pragma once

#include "sim/frameworks/target.h"

// Why the plan's layers cannot be in fp8: one sentence, arena text; NULL.
const char *fp8_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
