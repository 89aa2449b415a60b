// The chips whose times an estimate keeps: products wait for the slowest of them, so times of other numbers of ranks,
// or of pipelines whose stages are full in other proportions, are not these ranks'.

#include "sim/analytic/analytic_internal.h"
#include "sim/step/splits/split.h"

static double chip_factor(const Analytic *analytic, const TrainPlan *plan) {
    CostModel cost = analytic->cost;
    cost.chip_factor = 0;
    double loads[SPLIT_MOST_STAGES];
    const bool known = plan_has_stages(plan) && cost.profile->accelerator.chip_spread > 0 &&
                       split_loads(&analytic->model, cost.target, plan, loads);
    return known ? cost_stages_chip_factor(&cost, &plan->mesh, loads) : cost_chip_factor(&cost, &plan->mesh);
}

// All at once: contentions are known by the address of an overlap, runs of fluids by that of a block in it. A mesh is
// seldom asked for again, as a search takes one after another.
static void bound_times(Analytic *analytic) {
    if (analytic->times_arena.used_bytes <= TIMES_BYTES) {
        return;
    }
    arena_reset(&analytic->times_arena);
    analytic->blocks = (BlockMemo){.arena = &analytic->times_arena};
    analytic->fluids.runs = (Memo){0};
    for (AnalyticTimes *times = analytic->first_times; times; times = times->next) {
        times->meshes = times->overlaps = times->contentions = (Memo){0};
    }
}

void analytic_see_chips(Analytic *analytic, const TrainPlan *plan) {
    bound_times(analytic);
    const int world = mesh_world(&plan->mesh);
    const double factor = chip_factor(analytic, plan);
    AnalyticTimes *times = analytic->first_times;
    while (times && (times->world != world || times->chip_factor != factor)) {
        times = times->next;
    }
    if (analytic->times && analytic->times->world != world) {
        analytic->paces = (Memo){0};
    }
    if (!times) {
        times = ARENA_NEW(analytic->arena, AnalyticTimes);
        *times = (AnalyticTimes){.world = world, .chip_factor = factor, .next = analytic->first_times};
        analytic->first_times = times;
    }
    analytic->times = times;
    analytic->cost.chip_factor = factor;
}
