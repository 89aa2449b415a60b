// The plan that a request and a shape name.

#include <string.h>

#include "autotune/request/request.h"
#include "autotune/search/space.h"
#include "sim/frameworks/target_choices.h"

// The accumulation that makes the global batch; where none does, the batch rule says so.
static int accumulation(const TuneRequest *request, const TrainPlan *plan) {
    const int64_t each = plan_global_batch(plan) / plan->grad_accum;
    return request->global_batch >= each && request->grad_accum == 0 ? (int)(request->global_batch / each)
                                                                     : plan->grad_accum;
}

void request_plan(const TuneRequest *request, const Mesh *mesh, TrainPlan *plan) {
    memset(plan, 0, sizeof *plan);
    plan->mesh = *mesh;
    plan->mesh.order = request->order;
    plan->pp_order = request->pp_order;
    plan->seq = request->seq;
    plan->micro_batch = request->micro_batch > 0 ? request->micro_batch : 1;
    plan->grad_accum = request->grad_accum > 0 ? request->grad_accum : 1;
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope != PLAN_OF_BATCH) {
            space_take(request, plan, (PlanFieldId)id);
        }
    }
    plan->grad_accum = accumulation(request, plan);
    target_canonical(request->target, plan);
}
