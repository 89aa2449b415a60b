// Messages between stages: how long they take and what they slow.

#include "sim/analytic/stages.h"
#include "sim/cost/interference.h"

// A kernel that is limited by arithmetic loses so much of its rate as long as the message goes.
static double lost_s(const Analytic *analytic, const Task *task, const TaskCost *cost) {
    const ShareDemand message = share_demand(task, cost), kernel = {.sm_share = 1};
    double rates[2];
    share_rates((const ShareDemand *const[]){&kernel, &message}, 2, &analytic->cost.profile->interference, rates);
    return (1 - rates[0]) * cost->seconds / rates[1];
}

// Slices are gathered where they arrive.
static double gather_s(const Analytic *analytic, const TrainPlan *plan, double bytes) {
    const Mesh *mesh = &plan->mesh;
    const char *algorithm;
    const GroupPlacement tp =
        mesh_group_placement(mesh, AXIS_BIT(AXIS_TP), cost_ranks_per_node(analytic->cost.profile, mesh));
    return target_slices_messages(analytic->cost.target, plan)
               ? cost_collective(analytic->cost.profile, COLLECTIVE_ALL_GATHER, &tp, bytes, &algorithm).seconds
               : 0;
}

// From a stage to the next one.
static StageMessage message_to_next(const Analytic *analytic, const TrainPlan *plan, int stage) {
    const Target *target = analytic->cost.target;
    const Dtype dtype = plan_activation_dtype(plan);
    const int64_t elements = (int64_t)plan_local_tokens(plan) * analytic->model.hidden;
    const StepProgram program = {.model = analytic->model, .plan = *plan, .target = target, .stage = stage};
    const Task task = {.name = "send activations",
                       .kind = TASK_SEND,
                       .group = -1,
                       .unit = -1,
                       .peer = (int16_t)(stage + 1),
                       .dtype = dtype,
                       .payload_bytes = target_message_bytes(target, &analytic->model, plan)};
    const TaskCost cost = cost_task(&analytic->cost, &program, &task);
    const double links = analytic->slow.links;
    const double sleep_s = message_sleep_s(&analytic->cost, &plan->mesh);  // no link's
    const double whole_s = cost.seconds + gather_s(analytic, plan, (double)elements * dtype_bytes(dtype));
    return (StageMessage){(whole_s - sleep_s) * links + sleep_s,
                          cost.seconds > 0 ? lost_s(analytic, &task, &cost) * links : 0};
}

// Boundaries inside of nodes are alike, and so are those between nodes.
StageMessage stage_mean_message(const Analytic *analytic, const TrainPlan *plan) {
    const int per_node = cost_ranks_per_node(analytic->cost.profile, &plan->mesh), stages = mesh_stages(&plan->mesh);
    StageMessage known[2] = {{-1, 0}, {-1, 0}}, mean = {0, 0};
    for (int stage = 0; stage + 1 < stages; stage++) {
        StageMessage *message = &known[mesh_stages_cross(&plan->mesh, stage, stage + 1, per_node)];
        *message = message->seconds < 0 ? message_to_next(analytic, plan, stage) : *message;
        mean.seconds += message->seconds / (stages - 1);
        mean.slowed_s += message->slowed_s / (stages - 1);
    }
    return mean;
}

// The first part takes micro-steps from no other one, the last hands none on.
static double part_issue_s(const StageSplit *split, int32_t part, const ChunkHost *host) {
    return (part > 0 ? host->before_s : 0) + (part + 1 < split->parts ? host->after_s : 0);
}

double stage_issue_s(const StageSplit *split, const PipelineShape *shape, int stage, const ChunkHost *host) {
    double seconds = 0;
    for (int32_t chunk = 0; chunk < shape->chunks; chunk++) {
        seconds += part_issue_s(split, pipeline_part(shape, stage, chunk), host);
    }
    return seconds;
}

void stage_add_issue(const StageSplit *split, const ChunkHost *host) {
    for (int32_t part = 0; part < split->parts; part++) {
        split->part_s[part] += part_issue_s(split, part, host);
    }
}
