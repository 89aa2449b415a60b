// What a target refuses of packed documents.

#pragma once

#include "sim/frameworks/target.h"

// Why the plan's documents cannot be packed: one sentence, arena text; NULL.
const char *pack_rule(const Target *target, const TrainPlan *plan, Arena *arena);
