// The order of a plan (pp_schedule file) in JSON: a text of actions for each rank, as a line of its file; null where
// the plan has none.

#pragma once

#include <jansson.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/plan/plan.h"

json_t *order_json(const TrainPlan *plan);

// Sets the plan's order, where it has one.
Status order_json_read(const json_t *lines, Arena *arena, TrainPlan *plan, Error *error);
