// What the other target does not have becomes its own.

#include "autotune/explain/other_target.h"

#include "autotune/predict/target_on_cluster.h"
#include "autotune/search/space.h"
#include "sim/frameworks/target_choices.h"

Status other_target_take(const char *target, Arena *arena, TuneRequest *request, Error *error) {
    const Target *found;
    TRY(target_find(target, &found, error));
    found = target_with_kernels(target_on_cluster(found, &request->cluster, arena), request, arena);
    request->asked[PLAN_MASTER_WEIGHTS] = space_master_of_other(request, found);
    request->target = found;
    request->serial_lanes = false;  // which is our executor's way
    request->runner = NULL;
    return STATUS_OK;
}

void other_target_plan(const TuneRequest *request, const TrainPlan *best, TrainPlan *plan) {
    *plan = *best;
    space_job(request, plan);
    if (request->asked[PLAN_RESHARD] != TUNE_ANY) {
        plan->reshard = (Reshard)request->asked[PLAN_RESHARD];
    }
    if (!target_offers(request->target, plan, PLAN_FUSED, (int)plan->fused)) {
        space_take(request, plan, PLAN_FUSED);
    }
    if (request->asked[PLAN_TP_OVERLAP] == TUNE_ANY) {
        plan->tp_overlap = space_tries(request, plan, PLAN_TP_OVERLAP, true);
    } else {
        space_take(request, plan, PLAN_TP_OVERLAP);
    }
    if (!(request->target->grad_syncs & GRAD_SYNC_BIT(plan->grad_sync))) {
        plan->grad_sync = GRAD_SYNC_TARGET;
    }
    if (!(request->target->overlap_stages >> plan->zero & 1)) {
        plan->reduce_overlap = REDUCE_OVERLAP_TARGET;
    }
    static const PlanFieldId offered[] = {PLAN_LOSS, PLAN_CUDA_GRAPHS, PLAN_SEQUENCE_PARALLEL};
    for (size_t i = 0; i < sizeof offered / sizeof offered[0]; i++) {
        if (!target_offers(request->target, plan, offered[i], plan_get(plan, offered[i]))) {
            plan_set(plan, offered[i], 0);  // the target's own
        }
    }
    if (request->asked[PLAN_REDUCE_BUCKET] == TUNE_ANY) {
        plan->reduce_bucket = 0;
    }
    target_canonical(request->target, plan);
}
