// The number of ranks whose times an estimate keeps: products wait for the slowest of their chips, so times of others
// are not these ranks'.

#include "sim/analytic/analytic_internal.h"

void analytic_see_world(Analytic *analytic, const TrainPlan *plan) {
    const int world = mesh_world(&plan->mesh);
    if (analytic->world == world) {
        return;
    }
    CostModel *cost = &analytic->cost;
    analytic->world = world;
    analytic->meshes = analytic->overlaps = analytic->contentions = analytic->heads = analytic->paces = (Memo){0};
    cost->chip_factor = 0;
    cost->chip_factor = cost_chip_factor(cost, &plan->mesh);
}
