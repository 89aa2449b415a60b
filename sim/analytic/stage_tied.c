// One table on the first and the last stage: its gradient is summed over both after the last backward, before it is
// reduced (lower_tied.c). Not modelled: what the other stages reduce meanwhile.

#include "sim/analytic/stages.h"
#include "sim/step/stages.h"

static bool has_copies(const Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape) {
    const bool apart = pipeline_part(shape, 0, shape->chunks - 1) != shape->stages * shape->chunks - 1;
    return (analytic->model.tied_embeddings || plan->mtp > 0) && apart && !plan_freezes_base(plan) &&
           !plan->update_in_backward;
}

double stage_tied_s(const Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape) {
    if (!has_copies(analytic, plan, shape)) {
        return 0;
    }
    Dtype dtype;
    const int64_t elements = step_tied_elements(&analytic->model, plan, analytic->cost.target, &dtype);
    const StepProgram program = {.model = analytic->model, .plan = *plan, .target = analytic->cost.target};
    const Task send = {.name = "send tied gradients",
                       .kind = TASK_SEND,
                       .phase = PHASE_OPTIMIZER,
                       .group = -1,
                       .unit = -1,
                       .peer = (int16_t)(shape->stages - 1),
                       .dtype = dtype,
                       .payload_bytes = elements * dtype_bytes(dtype)};
    const Task add = {.name = "add tied gradients",
                      .kind = TASK_ACCUMULATE,
                      .phase = PHASE_OPTIMIZER,
                      .group = -1,
                      .unit = -1,
                      .dtype = dtype,
                      .rows = 1,
                      .cols = elements};
    return cost_task(&analytic->cost, &program, &send).seconds * analytic->slow.links +
           cost_task(&analytic->cost, &program, &add).seconds;
}
