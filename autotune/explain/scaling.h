// The scaling curve: the best shape of each of several worlds.

#pragma once

#include "autotune/result.h"

typedef struct ScalingPoint {
    const TuneRequest *request;  // of this world
    bool feasible;
    Prediction best;
    const char *reason;  // why nothing runs; NULL otherwise
    double efficiency;   // tokens/s per accelerator over that of the smallest world that runs
    SearchCounts search;
} ScalingPoint;

typedef struct ScalingCurve {
    ScalingPoint *points;
    int count;
    int best;  // by the objective: most tokens/s, least memory, least cost per token; -1 = nothing runs
} ScalingCurve;

// Time to a number of tokens, and what it costs; cost 0 = the profile has no price.
double scaling_seconds(const Prediction *prediction, double tokens);
double scaling_usd(const TuneRequest *request, const Prediction *prediction, double tokens);

// Fills efficiency and best from the points' predictions.
void scaling_finish(ScalingCurve *curve, Objective objective);
