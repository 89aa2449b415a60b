// Finds the sharding tasks of a lowered program by lane and unit and prices each once.

#include "sim/analytic/shard_costs.h"

// A gradient that is copied where nothing gathers copies either (into fp32, to be summed) belongs to its block, and so
// do copies of gathered weights (transposed ones in fp8).
static ShardKind copy_kind(const StepProgram *program, const Task *task) {
    if (task->unit < 0 || !program->target->shard_copies) {
        return SHARD_KINDS;
    }
    const int32_t gathered = program->units[task->unit].gathered;
    const bool out = !program->target->shards_wait || task_operand(program, task, AT_COPY_DST)->ref.buffer == gathered;
    return task->phase == PHASE_REDUCE ? SHARD_REDUCE_COPY : out ? SHARD_COPY_OUT : SHARD_COPY_IN;
}

// The part of a reduction that kernels wait for joins the shard gradient on their lane.
static bool joins_in_line(const StepProgram *program, const Task *task) {
    return task->unit >= 0 && task->phase == PHASE_REDUCE &&
           target_reduce_overlap(program->target, &program->plan) == REDUCE_OVERLAP_OFF &&
           task_operand(program, task, AT_COPY_DST)->ref.buffer == program->units[task->unit].gradient_shard;
}

static ShardKind compute_kind(const StepProgram *program, const Task *task) {
    switch (task->kind) {
    case TASK_SQUARE_SUM:
        return SHARD_SQUARE;
    case TASK_ADAMW:
    case TASK_UPDATE:
        return SHARD_ADAMW;
    case TASK_ZERO:
        return task->unit >= 0 ? SHARD_PAD : SHARD_KINDS;
    case TASK_COPY:
        return joins_in_line(program, task) ? SHARD_CAST : copy_kind(program, task);
    case TASK_ACCUMULATE:
        return joins_in_line(program, task) ? SHARD_ADD : SHARD_KINDS;
    default:
        return SHARD_KINDS;
    }
}

ShardKind shard_kind(const StepProgram *program, const Task *task) {
    switch (task->lane) {
    case LANE_COMPUTE:
        return compute_kind(program, task);
    case LANE_AG:
        return task->phase == PHASE_OPTIMIZER  ? SHARD_REGATHER
               : task->kind == TASK_ALL_GATHER ? SHARD_GATHER
                                               : SHARD_COPY_IN;
    case LANE_RS:
    case LANE_REP:
        return task->kind == TASK_REDUCE_SCATTER ? SHARD_SCATTER
               : task->kind == TASK_ALL_REDUCE   ? SHARD_REPLICA
               : task->kind == TASK_ACCUMULATE   ? SHARD_ADD
                                                 : SHARD_CAST;
    default:
        return SHARD_KINDS;
    }
}

bool shard_is_near(const StepProgram *program, const Task *task) {
    return task->kind == TASK_ALL_GATHER && axes_nearest_ranks(program->groups[task->group].axes) > 0;
}

// Tasks of the control lane and the two kernels around them.
static void add_scalar(const Task *task, const TaskCost *cost, ShardCosts *costs) {
    if (task->lane == LANE_CTL) {
        costs->loss_sum_s = costs->scalars_s;  // all but the last
        costs->scalars_s += cost->seconds;
    } else if (task->kind == TASK_CLIP) {
        costs->clip_s = cost->seconds;
    } else if (task->kind == TASK_ZERO) {
        costs->zero_s = cost->seconds;
    }
    costs->edge_host_s += cost->host_s;
}

void shard_costs_add(const CostModel *cost, const Slowdowns *slow, const StepProgram *program, ShardCosts *costs) {
    costs->scalars_s = costs->loss_sum_s = costs->edge_host_s = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        ShardKind kind = shard_kind(program, task);
        kind = kind == SHARD_GATHER && shard_is_near(program, task) ? SHARD_NEAR_GATHER : kind;
        if (kind == SHARD_KINDS && task->phase != PHASE_OPTIMIZER) {
            continue;
        }
        TaskCost priced = cost_task(cost, program, task);
        priced.seconds *= slowdown_of(slow, task);
        if (kind == SHARD_KINDS) {
            add_scalar(task, &priced, costs);
        } else {
            const bool stands_for_layer = task->unit == UNIT_ADAPTERS && costs->seconds[UNIT_LAYER][kind] == 0;
            const bool further = kind == SHARD_REGATHER && i > 0 && task->unit == (task - 1)->unit &&
                                 shard_kind(program, task - 1) == SHARD_REGATHER;  // a copy in addition to its gather
            costs->seconds[task->unit][kind] = priced.seconds + (further ? costs->seconds[task->unit][kind] : 0);
            costs->host_s[task->unit][kind] = priced.host_s + (further ? costs->host_s[task->unit][kind] : 0);
            const bool demands = kind != SHARD_REGATHER || task_is_collective(task);
            if ((task->unit == UNIT_LAYER || stands_for_layer) && demands) {  // a frozen layer reduces nothing
                costs->demand[kind] = share_demand(task, &priced);
            }
        }
    }
}
