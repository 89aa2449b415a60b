// Ranks that cut each expert (etp) beside ranks that hold whole ones (ep): which numbers a plan could have in place of
// its own, and what the best plan would come to with them.

#pragma once

#include "autotune/result.h"

enum { EXPERT_CUTS = 4, EXPERT_CUTS_REASON_BYTES = 240 };

// The target can cut experts, the model has some, and nobody said how many ranks do.
bool expert_cuts_open(const TuneRequest *request);

// The plan with so many.
TrainPlan expert_cuts_plan(const TuneRequest *request, const TrainPlan *plan, int cut);

// The legal ones but for the plan's own, rising; their number. *reason: why the first one left out is not legal; NULL.
// Powers of two within a node: what an expert's parts gather and sum in every layer is not sent over a network.
int expert_cuts_find(const TuneRequest *request, const TrainPlan *plan, Arena *arena, int cuts[EXPERT_CUTS],
                     const char **reason);

// Why the best plan has its number and no other one: the same plan with each other one, by the engine.
typedef struct WhyCuts {
    bool offered;  // the target can, and the best has experts on several ranks
    bool asked;    // somebody said the number
    int used;      // by the best
    int count;     // of the others
    struct OtherCut {
        int cut;
        bool fits;
        double step;            // its step time over the best's, minus one
        double reserved_bytes;  // of it
    } others[EXPERT_CUTS];
    char reason[EXPERT_CUTS_REASON_BYTES];  // why there are none; "" = there are
} WhyCuts;

Status expert_cuts_explain(const TuneResult *result, WhyCuts *why, Error *error);
