// The rule of sim/engine/attribution.c for whole tasks.

#include "autotune/predict/step_terms.h"

int step_term(const StepProgram *program, const Task *task) {
    if (task_is_message(task)) {
        return (int)axes_slowest(mesh_real_axes(&program->plan.mesh, AXES_STAGE));
    }
    if (!task_is_collective(task)) {
        return task->phase == PHASE_OPTIMIZER ? TERM_OPTIMIZER : TERM_COMPUTE;
    }
    if (task->lane == LANE_CTL) {
        return TERM_OVERHEAD;
    }
    const Axis axis = axes_slowest(program->groups[task->group].axes);
    return axis < AXIS_COUNT ? (int)axis : TERM_OVERHEAD;
}
