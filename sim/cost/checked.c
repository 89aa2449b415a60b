// Collectives that ranks check with each other beforehand. With TORCH_DISTRIBUTED_DEBUG=DETAIL torch.distributed wraps
// each group (ProcessGroupWrapper.cpp, runCollectiveChecks): before a collective, and a barrier, its hosts meet at
// gloo's monitoredBarrier, in which rank 0 takes and answers one rank after another, then gather fingerprints twice, in
// rings over TCP. All of that grows with the ranks and is the host's; messages between stages are not checked.

#include "sim/cost/cost.h"

static double all_instances(const StepProgram *program) {
    double count = 0;
    for (int32_t u = 0; u < program->unit_count; u++) {
        count += program->units[u].trainable ? program->units[u].instances : 0;
    }
    return count;
}

// Of the buffer of stage 1 and of its weights, which go all at once, a task moves a unit.
static double calls_of(const StepProgram *program, const Task *task) {
    return !lane_is_sharding(task->lane) || task->unit < 0 ? 1
           : program->plan.zero > 0                        ? 1 / all_instances(program)
                                                           : 0;
}

static bool are_checked(const CostModel *model, const Mesh *mesh) {
    const int per_node = cost_ranks_per_node(model->profile, mesh);
    return model->target->runtime.checks_collectives ||
           (mesh->size[AXIS_PP] > 1 && mesh_group_placement(mesh, AXES_STAGE, per_node).nodes > 1);
}

// Rank 0 takes from each other rank and answers it, one after another, then two rings turn once, whose steps all wait
// for the slowest link.
static double check_s(const TargetRuntime *runtime, const GroupPlacement *group) {
    enum { BARRIER = 2, RINGS = 2 };
    const double inside_s = runtime->check_message_s;
    const double between_s = group->nodes > 1 ? runtime->check_message_between_s : inside_s;
    return runtime->check_s +
           BARRIER * ((group->per_node - 1) * inside_s + (group->size - group->per_node) * between_s) +
           RINGS * (group->size - 1) * between_s;
}

static GroupPlacement placement_of_all(const Mesh *mesh, int per_node) {
    const int world = mesh_world(mesh), first = world < per_node ? world : per_node;
    return (GroupPlacement){.size = world, .nodes = (world + per_node - 1) / per_node, .per_node = first};
}

// The framework buckets gradients that are hooked. Counted behind backward: of several stages' runs each shows its own
// alone, as if no stage waited for another's (tests/accuracy/runs/RESULTS.md, "A check is messages one after another").
static double hooked_s(const CostModel *model, const StepProgram *program, int per_node) {
    const Unit *layer = &program->units[UNIT_LAYER];
    const Group *replicas = &program->groups[layer->replica_group], *shards = &program->groups[layer->shard_group];
    const Group *data = replicas->size > 1 ? replicas : shards;
    if (program->plan.zero > 0 || data->size == 1) {
        return 0;
    }
    double buckets = 0;
    for (int32_t u = 0; u < program->unit_count; u++) {
        buckets += program->units[u].trainable ? program->units[u].hook_buckets : 0;
    }
    const GroupPlacement group = mesh_group_placement(&program->plan.mesh, data->axes, per_node);
    return buckets * check_s(&model->target->runtime, &group);
}

double check_host_s(const CostModel *model, const StepProgram *program, const Task *task) {
    const Mesh *mesh = &program->plan.mesh;
    const TargetRuntime *runtime = &model->target->runtime;
    const bool ends_step = task->kind == TASK_CLIP;
    if (runtime->check_message_s == 0 || !(ends_step || task_is_collective(task)) || !are_checked(model, mesh)) {
        return 0;
    }
    const int per_node = cost_ranks_per_node(model->profile, mesh);
    if (ends_step) {  // a barrier of all ranks, before the time is read (trainer.py, train_step_logs)
        const GroupPlacement all = placement_of_all(mesh, per_node);
        return check_s(runtime, &all) + hooked_s(model, program, per_node);
    }
    const GroupPlacement group = mesh_group_placement(mesh, program->groups[task->group].axes, per_node);
    const bool scalar = task->lane == LANE_CTL;  // of few ranks and once, which is not counted
    return scalar ? 0 : check_s(runtime, &group) * calls_of(program, task);
}
