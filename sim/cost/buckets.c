// Each call starts up once: a target's buckets are larger than a unit, or are the whole of what a rank holds, or a plan
// says smaller ones.

#include "sim/cost/buckets.h"

#include <math.h>

double bucket_parameters(const TargetRuntime *runtime, double ranks) {
    return fmax(runtime->bucket_parameters, runtime->bucket_parameters_per_rank * ranks);
}

// Of what a rank holds beside experts, which have buffers of their own.
static double unit_parameters(const StepProgram *program, int unit) {
    const Unit *held = &program->units[unit];
    return held->trainable ? (double)held->instances * (double)held->trained_elements : 0;
}

// Whether gradients or weights go in buckets beside the layers; later stages have one and time for it.
static bool is_in_bucket(const StepProgram *program, const Task *task) {
    return lane_is_sharding(task->lane) && task->unit >= 0 && task->unit <= UNIT_HEAD && program->stage == 0 &&
           program->plan.zero <= 1 && program->target->runtime.bucket_parameters_per_rank > 0 &&
           target_reduce_overlap(program->target, &program->plan) == REDUCE_OVERLAP_ON;
}

// Buckets are filled from the last parameter on (Megatron-core, param_and_grad_buffer.py): the last one holds the
// embedding and the layers behind it. It is reduced after backward and gathered before forward.
double buckets_travelling_share(const StepProgram *program, const Task *task, int ranks) {
    const double embedding = program->units ? unit_parameters(program, UNIT_EMBEDDING) : 0;
    if (embedding == 0 || !is_in_bucket(program, task)) {
        return 1;
    }
    const double bucket = bucket_parameters(&program->target->runtime, ranks);
    const double layers = unit_parameters(program, UNIT_LAYER), head = unit_parameters(program, UNIT_HEAD);
    const double open = head < bucket ? head : 0, full = floor((open + layers) / bucket) * bucket;
    const double held_head = full > 0 ? 0 : open, held_layers = fmin(layers, open + layers - full - held_head);
    return task->unit == UNIT_EMBEDDING ? (embedding + held_head + held_layers) / embedding
           : task->unit == UNIT_LAYER   ? 1 - held_layers / layers
                                        : 1 - held_head / head;
}

// Of gradients that are reduced after backward as one buffer, and of weights that come back as one.
static double rank_parameters(const StepProgram *program) {
    double parameters = 0;
    for (int32_t u = 0; u < program->unit_count; u++) {
        const Unit *unit = &program->units[u];
        parameters += unit->trainable ? (double)unit->instances * (double)unit->trained_padded : 0;
    }
    return parameters;
}

// All that a buffer has: experts have their own, and so has each chunk of a stage.
static double buffer_parameters(const StepProgram *program, int of_unit) {
    double parameters = 0;
    for (int u = 0; u < program->unit_count; u++) {
        parameters += (u > UNIT_HEAD) == (of_unit > UNIT_HEAD) ? unit_parameters(program, u) : 0;
    }
    return parameters / plan_chunks(&program->plan);
}

static double bucket_bytes(const Target *target, const StepProgram *program, const Task *task, const BucketCall *call) {
    if (!lane_is_sharding(task->lane) || call->group->nodes == 1) {
        return 0;
    }
    if (target->late_reduce && program->plan.zero == 1 && task->lane != LANE_REP) {
        return rank_parameters(program) * call->number_bytes;
    }
    const double bucket = bucket_parameters(&target->runtime, call->group->size);
    const double held = buffer_parameters(program, task->unit);
    return (held > 0 ? fmin(bucket, held) : bucket) * call->number_bytes;
}

// Of a reduction whose size the plan says, or of a unit whose parameters go one by one, here as long each; 0 = neither.
static double part_bytes(const StepProgram *program, const Task *task, double payload_bytes) {
    const bool shards = task->lane == LANE_AG || task->lane == LANE_RS;
    const bool reduces = (task->lane == LANE_RS || task->lane == LANE_REP) && task->kind != TASK_ALL_GATHER;
    return shards && program->target->shards_wait ? payload_bytes / program->units[task->unit].slice_count
           : reduces && program->plan.reduce_bucket > 0
               ? target_reduce_bucket(program->target, &program->model, &program->plan) * dtype_bytes(task->dtype)
               : 0;
}

double buckets_collective_s(const CostModel *model, const StepProgram *program, const Task *task,
                            const BucketCall *call) {
    const double bucket = bucket_bytes(model->target, program, task, call);
    const double part = part_bytes(program, task, call->payload_bytes);
    if (part > 0 && part < call->payload_bytes) {
        return cost_collective_s(model->profile, call->kind, call->group, part, NULL) * call->payload_bytes / part;
    }
    if (bucket <= call->payload_bytes) {
        return call->alone_s;
    }
    const double whole_s = cost_collective_s(model->profile, call->kind, call->group, bucket, NULL);
    return fmin(call->alone_s, whole_s * call->payload_bytes / bucket);
}
