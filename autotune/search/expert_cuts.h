// Ranks that shard each expert (etp) in addition to ranks that hold whole ones (ep): which degrees a plan could use
// instead of its own, and how the best plan would perform with them.

#pragma once

#include "autotune/result.h"

enum { EXPERT_CUTS = 4, EXPERT_CUTS_REASON_BYTES = 240 };

// The target can shard experts, the model has some, and the request does not set the degree.
bool expert_cuts_open(const TuneRequest *request);

// The plan with that etp degree.
TrainPlan expert_cuts_plan(const TuneRequest *request, const TrainPlan *plan, int cut);

// The legal ones but for the plan's own, rising; their number. *reason: why the first one left out is not legal; NULL.
// Powers of two within a node: what an expert's parts gather and sum in every layer is not sent over a network.
int expert_cuts_find(const TuneRequest *request, const TrainPlan *plan, Arena *arena, int cuts[EXPERT_CUTS],
                     const char **reason);

// Why the best plan has its number and no other one: the same plan with each other one, by the engine.
typedef struct WhyCuts {
    bool offered;  // the target can, and the best has experts on several ranks
    bool asked;    // the request sets the degree
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
