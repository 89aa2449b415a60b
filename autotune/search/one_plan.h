// A plan that was named, not searched for: is it legal, what does it take, can it run?

#pragma once

#include "autotune/search/prune.h"

typedef struct OnePlan {
    Prediction prediction;  // where it is legal; else its plan alone
    bool legal;
    const PruneRule *rule;  // that rejects it, with the reason; NULL = it can run
    const char *reason;
} OnePlan;

// As a result with one entry, or with the one reason why it cannot run.
void one_plan_result(const TuneRequest *request, const OnePlan *one, Arena *arena, TuneResult *result);
