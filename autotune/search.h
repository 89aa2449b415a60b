// The search: enumerate, prune with reasons, screen with the closed form, simulate the promising, rank.

#pragma once

#include "autotune/predict.h"
#include "autotune/result.h"
#include "sim/base/progress.h"

// Fills *result (in the arena). A request that nothing satisfies is STATUS_OK with no entries. The cache may be NULL.
Status search_run(const TuneRequest *request, const PredictionCache *cache, const Progress *progress, Arena *arena,
                  TuneResult *result, Error *error);
