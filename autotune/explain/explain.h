// Why the best shape beats the next one, and what would change the answer.

#pragma once

#include "autotune/explain/sensitivity.h"
#include "autotune/result.h"
#include "autotune/search/expert_cuts.h"
#include "sim/base/progress.h"

// What a question changes, by a factor over 1.
typedef enum { WHAT_IF_NETWORK, WHAT_IF_MEMORY, WHAT_IF_SEQUENCE, WHAT_IF_COUNT } WhatIfKind;

typedef struct WhatIf {
    WhatIfKind kind;
    const char *sentence;  // "twice the network between nodes"
    double factor;         // that was asked about: 2 (sequence: 2 is half)
    bool feasible;         // some shape can run
    Prediction best;       // there, estimated
    bool same_shape;       // as the best of the request by the same estimate
    double gain;           // tokens/s over the old best shape under the same change; 0 = that one cannot run
    // The least factor found at which another shape wins; 0 = none up to searched_to.
    double break_even, searched_to;
    Mesh break_even_mesh;
} WhatIf;

// Why pipeline stages, where the best has some, and why not, where it has none.
typedef struct WhyStages {
    bool offered;               // the target has pipelines; more ranks than one
    bool used;                  // by the best
    int shapes;                 // of the other kind, that were looked at
    const Prediction *other;    // the best of them; NULL = none fits
    const Rejection *rejected;  // else one of them, for its memory if any was
} WhyStages;

typedef struct Explanation {
    const TuneResult *result;  // with at least one entry
    const Prediction *best;
    const Prediction *runner_up;  // NULL = only one shape fits
    Mesh estimated_best;  // the winner by the estimate alone (as explain.c says): what the questions are compared with
    WhyStages stages;
    WhyCuts cuts;
    WhatIf questions[WHAT_IF_COUNT];
    Sensitivities sensitivities;  // of the best plan
} Explanation;

// Asks the questions about a finished search, each by further searches that only estimate, and simulates the best plan
// under small changes.
Status explain_run(const TuneResult *result, const Progress *progress, Explanation *explanation, Error *error);

// Does a plan leave that part of the memory free that the best leaves where it can?
bool explain_leaves_room(const TuneRequest *request, const Prediction *prediction);
