// The order of a plan (pp_schedule file) in JSON: one string of actions per rank, as in a line of its file; null if the
// plan has none.

#pragma once

#include <jansson.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/plan/plan.h"

json_t *order_json(const TrainPlan *plan);

// Sets the plan's order, where it has one.
Status order_json_read(const json_t *lines, Arena *arena, TrainPlan *plan, Error *error);
