// A plan as another framework would run it.

#pragma once

#include "autotune/result.h"

// Makes the request one of another target, on the same cluster.
Status other_target_take(const char *target, Arena *arena, TuneRequest *request, Error *error);

// Mesh, batch and ZeRO stage are kept; kernels become those that the target runs, and parameters are resharded where it
// has no other setting, unless the request names them.
void other_target_plan(const TuneRequest *request, const TrainPlan *best, TrainPlan *plan);
