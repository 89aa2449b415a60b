// What trains by accelerate extends it.

#pragma once

#include "sim/frameworks/framework.h"

extern const TargetVersion accelerate_1_15;
extern const TargetVersion accelerate_1_13;

// Models whose tensor parallelism transformers has not.
const char *transformers_refuse(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
