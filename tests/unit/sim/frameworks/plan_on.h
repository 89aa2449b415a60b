// A plan of the mesh with the target's defaults.

#pragma once

#include "sim/frameworks/target.h"
#include "sim/frameworks/target_choices.h"

static inline TrainPlan plan_on(const Target *target, const Mesh *mesh) {
    TrainPlan plan = {.mesh = *mesh, .seq = 4096, .micro_batch = 1, .grad_accum = 1, .precision = DTYPE_BF16};
    plan.zero = target_default_zero(target, &plan.mesh);
    plan.cp_rotate = target_default_rotate(target);
    plan_canonical(&plan);
    return plan;
}
