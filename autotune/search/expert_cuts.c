// The rules (prune.c) decide what is legal. Left out: degrees that are not powers of two, and those larger than a node.

#include "autotune/search/expert_cuts.h"

#include <stdio.h>

#include "autotune/predict/predict.h"
#include "autotune/search/prune.h"
#include "sim/cost/cost.h"
#include "sim/frameworks/target_choices.h"

static bool may_cut(const TuneRequest *request) {
    return request->target->cuts_experts && request->model.experts.count > 0;
}

bool expert_cuts_open(const TuneRequest *request) {
    return may_cut(request) && request->asked[PLAN_ETP] == TUNE_ANY;
}

TrainPlan expert_cuts_plan(const TuneRequest *request, const TrainPlan *plan, int cut) {
    TrainPlan made = *plan;
    made.etp = cut;
    target_canonical(request->target, &made);
    return made;
}

int expert_cuts_find(const TuneRequest *request, const TrainPlan *plan, Arena *arena, int cuts[EXPERT_CUTS],
                     const char **reason) {
    const int own = plan_expert_tp(plan), most = cost_ranks_per_node(&request->cluster, &plan->mesh);
    int count = 0;
    *reason = NULL;
    for (int cut = 1; cut <= most && count < EXPERT_CUTS; cut *= 2) {
        const TrainPlan tried = expert_cuts_plan(request, plan, cut);
        const char *refused = NULL;
        if (cut != own && !prune(request, &tried, NULL, arena, &refused)) {
            cuts[count++] = cut;
        }
        *reason = *reason ? *reason : refused;
    }
    return count;
}

// Tells what the plan with another number comes to.
static Status tell(const TuneResult *result, int cut, Arena *arena, struct OtherCut *other, Error *error) {
    const Prediction *best = &result->entries[0];
    const TrainPlan plan = expert_cuts_plan(result->request, &best->plan, cut);
    Prediction prediction;
    TRY(predict_once(result->request, NULL, &plan, arena, &prediction, error));
    *other = (struct OtherCut){.cut = cut,
                               .fits = prediction.fits,
                               .step = prediction.step_s / best->step_s - 1,
                               .reserved_bytes = prediction.memory.reserved_bytes};
    return STATUS_OK;
}

static Status tell_all(const TuneResult *result, Arena *arena, WhyCuts *why, Error *error) {
    int cuts[EXPERT_CUTS];
    const char *reason;
    const int count = expert_cuts_find(result->request, &result->entries[0].plan, arena, cuts, &reason);
    for (int i = 0; i < count; i++) {
        TRY(tell(result, cuts[i], arena, &why->others[why->count++], error));
    }
    if (count == 0) {
        snprintf(why->reason, sizeof why->reason, "%s", reason ? reason : "a node has one rank");
    }
    return STATUS_OK;
}

Status expert_cuts_explain(const TuneResult *result, WhyCuts *why, Error *error) {
    const TrainPlan *best = &result->entries[0].plan;
    *why = (WhyCuts){.offered = may_cut(result->request) && best->mesh.size[AXIS_EP] > 1,
                     .asked = result->request->asked[PLAN_ETP] != TUNE_ANY,
                     .used = plan_expert_tp(best)};
    Arena arena = {0};
    const Status status = why->offered ? tell_all(result, &arena, why, error) : STATUS_OK;
    arena_free(&arena);
    return status;
}
