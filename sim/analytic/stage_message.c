// Messages between stages: how long they take and what they slow.

#include "sim/analytic/stages.h"
#include "sim/cost/interference.h"

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

bool stage_sends_beside(const TrainPlan *plan) {
    return plan_chunks(plan) > 1 && !plan->p2p_waits;
}

// What is sent beside layers shares the device with their kernels and links with what tp and cp move. A stage that
// waits for a message mostly does so where its sender waits, too: then that goes at its full rate.
static Status send_beside(Analytic *analytic, const AlonePlan *of, const Task *task, const TaskCost *cost,
                          StageMessage *message, Error *error) {
    const ShareDemand demand = share_demand(task, cost);
    BesideLayers beside[LAYER_PASSES];
    TRY(analytic_beside_layers(analytic, of, &demand, beside, error));
    for (int pass = 0; pass < LAYER_PASSES; pass++) {
        const double seconds = beside[pass].rate > 0 ? message->seconds / beside[pass].rate : 0;
        message->slowed_s[pass] = beside[pass].lost * seconds;
    }
    return STATUS_OK;
}

// From a stage to the next one.
static Status message_to_next(Analytic *analytic, const AlonePlan *of, int stage, StageMessage *message, Error *error) {
    const TrainPlan *plan = of->pipeline;
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
    *message = (StageMessage){.seconds = (cost.seconds - sleep_s) * links + sleep_s,
                              .gather_s = gather_s(analytic, plan, (double)elements * dtype_bytes(dtype)) * links};
    return stage_sends_beside(plan) && cost.seconds > 0 ? send_beside(analytic, of, &task, &cost, message, error)
                                                        : STATUS_OK;
}

// Boundaries inside of nodes are alike, and so are those between nodes.
Status stage_mean_message(Analytic *analytic, const AlonePlan *of, StageMessage *mean, Error *error) {
    const Mesh *mesh = &of->pipeline->mesh;
    const int per_node = cost_ranks_per_node(analytic->cost.profile, mesh), stages = mesh_stages(mesh);
    StageMessage known[2] = {{.seconds = -1}, {.seconds = -1}};
    *mean = (StageMessage){.seconds = 0};
    for (int stage = 0; stage + 1 < stages; stage++) {
        StageMessage *message = &known[mesh_stages_cross(mesh, stage, stage + 1, per_node)];
        if (message->seconds < 0) {
            TRY(message_to_next(analytic, of, stage, message, error));
        }
        mean->seconds += message->seconds / (stages - 1);
        mean->gather_s += message->gather_s / (stages - 1);
        for (int pass = 0; pass < LAYER_PASSES; pass++) {
            mean->slowed_s[pass] += message->slowed_s[pass] / (stages - 1);
        }
    }
    return STATUS_OK;
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
