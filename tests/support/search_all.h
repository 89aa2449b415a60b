// Searches and spaces of all shapes, of which nothing is kept.

#pragma once

#include "autotune/search/search.h"
#include "autotune/search/space.h"

static inline Status search_run(const TuneRequest *request, const PredictionCache *cache, const Progress *progress,
                                Arena *arena, TuneResult *result, Error *error) {
    return search_run_keeping(request, cache, progress, NULL, arena, result, error);
}

static inline void space_enumerate(const TuneRequest *request, Arena *arena, Space *space) {
    space_enumerate_near(request, NULL, arena, space);
}
