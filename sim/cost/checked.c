// Collectives that ranks check with each other beforehand. With TORCH_DISTRIBUTED_DEBUG=DETAIL torch.distributed wraps
// each group (ProcessGroupWrapper.cpp, runCollectiveChecks): before a collective, and a barrier, its hosts meet at
// gloo's monitoredBarrier, in which rank 0 takes and answers one rank after another, then gather fingerprints twice, in
// rings over TCP. All of that grows with the ranks and is the host's; messages are not checked.

#include "sim/cost/cost.h"

static double all_instances(const StepProgram *program) {
    double count = 0;
    for (int32_t u = 0; u < program->unit_count; u++) {
        count += program->units[u].trainable ? program->units[u].instances : 0;
    }
    return count;
}

// Of gradients and weights a task moves a unit, the framework buckets, or at stage 1 all at once.
static double calls_of(const StepProgram *program, const Task *task) {
    const bool shards = task->lane == LANE_AG || task->lane == LANE_RS || task->lane == LANE_REP;
    if (!shards || task->unit < 0) {
        return 1;
    }
    const Unit *unit = &program->units[task->unit];
    return program->plan.zero > 0 ? 1 / all_instances(program) : (double)unit->hook_buckets / unit->instances;
}

static bool are_checked(const CostModel *model, const Mesh *mesh) {
    const int per_node = cost_ranks_per_node(model->profile, mesh);
    return model->target->runtime.checks_collectives ||
           (mesh->size[AXIS_PP] > 1 && mesh_group_placement(mesh, AXES_STAGE, per_node).nodes > 1);
}

double rank_host_s(const CostModel *model, const StepProgram *program, const Task *task) {
    const Mesh *mesh = &program->plan.mesh;
    const double each_s = model->target->runtime.collective_check_s_per_rank;
    const bool ends_step = task->kind == TASK_CLIP;
    if (each_s == 0 || !(ends_step || task_is_collective(task)) || !are_checked(model, mesh)) {
        return 0;
    }
    if (ends_step) {  // a barrier of all ranks, before the time is read (trainer.py, train_step_logs)
        return each_s * (double)mesh_world(mesh);
    }
    const bool scalar = task->lane == LANE_CTL;  // of few ranks and once, which is not counted
    return scalar ? 0 : each_s * program->groups[task->group].size * calls_of(program, task);
}
