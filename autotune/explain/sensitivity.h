// Sensitivity of a plan's time: the plan is simulated again with one quantity a fifth smaller, then a fifth larger.

#pragma once

#include "autotune/result.h"
#include "sim/base/progress.h"

enum { SENSITIVITY_MOST = 12 };

typedef struct SensitivityEnd {
    double factor;  // of the quantity; 0 = not asked: no plan is that near
    double change;  // of the time per token: 0.1 = a tenth more
    bool fits;      // in memory
} SensitivityEnd;

typedef struct Sensitivity {
    const char *name, *sentence;  // "fabric_bandwidth", "network between nodes"
    SensitivityEnd less, more;
} Sensitivity;

typedef struct Sensitivities {
    Sensitivity rows[SENSITIVITY_MOST];  // what moves most first
    int count;
} Sensitivities;

// Scales what calibration calls by that name; false = the profile has no such thing, or the name is NULL.
bool sensitivity_scale(const char *name, double factor, ClusterProfile *cluster, TargetRuntime *runtime, Arena *arena);

// The plan must be canonical and legal for the request.
Status sensitivity_run(const TuneRequest *request, const TrainPlan *plan, const Progress *progress,
                       Sensitivities *sensitivities, Error *error);
