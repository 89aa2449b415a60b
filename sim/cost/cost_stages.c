// How much slower the chips of a pipeline are than the profile's, by the load of its stages (slowest_chip.c). Stages
// share the cores of a processor, so there it is as without them.

#include "sim/cost/compute.h"
#include "sim/step/splits/split.h"

double cost_stages_chip_factor(const CostModel *model, const Mesh *mesh, const double *loads) {
    const Accelerator *accelerator = &model->profile->accelerator;
    if (accelerator->device_class == DEVICE_CLASS_CPU) {
        return cost_chip_factor(model, mesh);
    }
    const int stages = mesh_stages(mesh);
    StageLoads by_load = {0};
    for (int stage = 0; stage < stages; stage++) {
        stage_loads_add(&by_load, loads[stage], (double)mesh_world(mesh) / stages);
    }
    return slowest_stage_factor(accelerator, &by_load);
}

CostModel cost_of_stages(const CostModel *model, const StepProgram *programs, int count, Arena *arena) {
    CostModel seen = *model;
    if (count < 2 || model->chip_factor > 0) {
        return seen;
    }
    double *loads = ARENA_ARRAY(arena, double, count);
    for (int stage = 0; stage < count; stage++) {
        loads[stage] = split_load(&programs[stage].model, &programs[stage].plan, programs[stage].held.head);
    }
    seen.chip_factor = cost_stages_chip_factor(model, &programs[0].plan.mesh, loads);
    return seen;
}
