// Legality axis by axis: does the size divide what the axis cuts? A row for each axis that cuts something.

#pragma once

#include "sim/frameworks/target.h"

// Of an axis larger than 1: why the plan cannot be cut so, in one sentence (arena text); NULL = it can.
typedef const char *(*AxisRule)(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);

// "4096 or 4104": the multiples of step nearest a number.
const char *multiples_around(int64_t number, int64_t step, Arena *arena);

extern const AxisRule axis_rules[AXIS_COUNT];  // NULL = whatever size
