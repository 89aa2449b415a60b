// Requests for tests of autotune: llama-2-7b on dgx-h100 for accelerate, one field changed at a time.

#pragma once

#include "autotune/result.h"

// Leaves everything to the search; model, cluster and target as named. Fails the test when one is unknown.
TuneRequest request_for(Arena *arena, int world, const char *model, const char *cluster, const char *target);

// Compares their texts: structs have padding.
bool plans_equal(const TrainPlan *a, const TrainPlan *b);
