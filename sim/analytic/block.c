// Runs the stretch once per input, with that input at time 0 and the others long ago: what the outputs then show are
// the operator's delays (a schedule of fixed order is linear in max-plus algebra; Baccelli et al. 1992, chapter 2).
// "The stretch before has ended" is an input of its own: that stretch is run first, so that what it leaves on the tp
// and cp lanes, and what they already begin for this one, is in the delays even when sharding's copies come between.

#include "sim/analytic/block.h"

#include <math.h>

typedef struct BlockRun {
    double lane_s[LANE_COUNT];
    double host_s, weights_s, gradients_s;       // inputs
    double weights_read_s, gradients_written_s;  // outputs
    double busy_s, exposed_s[AXIS_COUNT];
    int32_t last_task[LANE_COUNT];
} BlockRun;

int32_t block_event_slot(const BlockTasks *tasks, const EventRef *ref, int32_t layer) {
    const int32_t slots = tasks->first_slot[ref->event + 1] - tasks->first_slot[ref->event];
    const int32_t index = (ref->layer_scale * layer + ref->layer_offset) % slots;
    return tasks->first_slot[ref->event] + (index < 0 ? index + slots : index);
}

// When the event happens: recorded in the stretch, or an input. *lane: of its recorder.
static double event_time_s(const BlockTasks *tasks, const BlockRun *run, const EventRef *ref, int32_t layer,
                           int *lane) {
    *lane = tasks->program->events[ref->event].lane;
    switch (*lane) {
    case LANE_AG:
        return run->weights_s;
    case LANE_RS:
    case LANE_REP:
        return run->gradients_s;
    default:
        return tasks->event_s[block_event_slot(tasks, ref, layer)];
    }
}

static bool touches_role(const BlockTasks *tasks, const Task *task, BufferRole role, Access access) {
    for (int i = 0; i < task->operand_count; i++) {
        const Operand *operand = task_operand(tasks->program, task, i);
        if (operand->ref.buffer >= 0 && tasks->program->buffers[operand->ref.buffer].role == role &&
            (operand->access & access)) {
            return true;
        }
    }
    return false;
}

static void charge_idle(const BlockTasks *tasks, BlockRun *run, int lane, double idle_s) {
    const Task *last = &tasks->program->tasks[run->last_task[lane]];
    const Axis axis = task_is_collective(last) ? axes_slowest(tasks->program->groups[last->group].axes) : AXIS_COUNT;
    if (axis < AXIS_COUNT) {
        run->exposed_s[axis] += idle_s;
    }
}

static void run_task(const BlockTasks *tasks, BlockRun *run, int32_t index, int32_t layer) {
    const Task *task = &tasks->program->tasks[index];
    double start_s = fmax(run->lane_s[task->lane], run->host_s);
    double waited_s = start_s;
    int late_lane = -1;
    for (int i = 0; i < task->wait_count; i++) {
        int lane;
        const double event_s =
            event_time_s(tasks, run, &tasks->program->event_refs[task->first_wait + i], layer, &lane);
        if (event_s > waited_s) {
            waited_s = event_s;
            late_lane = lane;
        }
    }
    if (task->lane == LANE_COMPUTE) {
        run->busy_s += tasks->costs[index].seconds;
        if (late_lane > LANE_REP && start_s > block_never_s / 2) {
            charge_idle(tasks, run, late_lane, waited_s - start_s);
        }
    }
    const double end_s = waited_s + tasks->costs[index].seconds;
    run->lane_s[task->lane] = end_s;
    run->last_task[task->lane] = index;
    for (int i = 0; i < task->record_count; i++) {
        tasks->event_s[block_event_slot(tasks, &tasks->program->event_refs[task->first_record + i], layer)] = end_s;
    }
    if (touches_role(tasks, task, ROLE_GATHERED, ACCESS_READ)) {
        run->weights_read_s = fmax(run->weights_read_s, end_s);
    }
    if (touches_role(tasks, task, ROLE_GRADIENT, ACCESS_WRITE)) {
        run->gradients_written_s = fmax(run->gradients_written_s, end_s);
    }
}

static int32_t nth_event(const BlockTasks *tasks, const TaskRun *run, int32_t task_index, int k) {
    const Task *task = &tasks->program->tasks[run->tasks[task_index]];
    const int32_t ref = k < task->wait_count ? task->first_wait + k : task->first_record + k - task->wait_count;
    return block_event_slot(tasks, &tasks->program->event_refs[ref], run->layer);
}

static void set_events(const BlockTasks *tasks, const TaskRun *run, double value) {
    for (int32_t i = 0; i < run->count; i++) {
        const Task *task = &tasks->program->tasks[run->tasks[i]];
        for (int k = 0; k < task->wait_count + task->record_count; k++) {
            tasks->event_s[nth_event(tasks, run, i, k)] = value;
        }
    }
}

void block_set_events(const BlockTasks *tasks, double value) {
    set_events(tasks, &tasks->before, value);
    set_events(tasks, &tasks->run, value);
}

// The stretch before, so timed that the compute lane is free at 0.
static void run_before(const BlockTasks *tasks, BlockRun *run) {
    double busy_s = 0;
    for (int pass = 0; pass < 2; pass++) {
        set_events(tasks, &tasks->run, block_never_s);
        set_events(tasks, &tasks->before, block_never_s);
        for (int lane = 0; lane < LANE_COUNT; lane++) {
            run->lane_s[lane] = block_never_s;
        }
        run->lane_s[LANE_COMPUTE] = -busy_s;
        for (int32_t i = 0; i < tasks->before.count; i++) {
            run_task(tasks, run, tasks->before.tasks[i], tasks->before.layer);
        }
        busy_s = run->lane_s[LANE_COMPUTE];  // of the first pass, which began at 0: its length
    }
}

static void join_transfers(const BlockTasks *tasks, BlockRun *run) {
    static const int lanes[] = {LANE_TP, LANE_CP};
    for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++) {
        const double late_s = run->lane_s[lanes[i]] - run->lane_s[LANE_COMPUTE];
        if (late_s > 0) {
            charge_idle(tasks, run, lanes[i], late_s);
            run->lane_s[LANE_COMPUTE] = run->lane_s[lanes[i]];
        }
    }
}

// With that input at 0; BLOCK_PORTS: compute free and the stretch before ended, both at 0.
static BlockRun run_from(const BlockTasks *tasks, BlockPort port, double *host_s) {
    BlockRun run = {.host_s = block_never_s, .weights_s = block_never_s, .gradients_s = block_never_s};
    if (port == BLOCK_BEFORE || port == BLOCK_PORTS) {
        run_before(tasks, &run);
    } else {
        set_events(tasks, &tasks->run, block_never_s);
        for (int lane = 0; lane < LANE_COUNT; lane++) {
            run.lane_s[lane] = block_never_s;
        }
    }
    run.lane_s[LANE_COMPUTE] = port == BLOCK_COMPUTE || port == BLOCK_PORTS ? 0 : block_never_s;
    run.weights_s = port == BLOCK_WEIGHTS ? 0 : block_never_s;
    run.gradients_s = port == BLOCK_GRADIENTS ? 0 : block_never_s;
    run.weights_read_s = run.gradients_written_s = block_never_s;
    run.busy_s = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        run.exposed_s[axis] = 0;
    }
    *host_s = 0;
    for (int32_t i = 0; i < tasks->run.count; i++) {
        *host_s += tasks->costs[tasks->run.tasks[i]].host_s;
        run.host_s = port == BLOCK_HOST ? *host_s : block_never_s;
        run_task(tasks, &run, tasks->run.tasks[i], tasks->run.layer);
    }
    if (tasks->joins) {
        join_transfers(tasks, &run);
    }
    return run;
}

Block block_measure(const BlockTasks *tasks) {
    Block block = {0};
    for (int port = 0; port < BLOCK_PORTS; port++) {
        double host_s;
        const BlockRun run = run_from(tasks, (BlockPort)port, &host_s);
        block.delay_s[BLOCK_FREE][port] = run.lane_s[LANE_COMPUTE];
        block.delay_s[BLOCK_READ][port] = run.weights_read_s;
        block.delay_s[BLOCK_WRITTEN][port] = run.gradients_written_s;
    }
    const BlockRun following = run_from(tasks, BLOCK_PORTS, &block.host_s);
    block.busy_s = following.busy_s;
    block.length_s = following.lane_s[LANE_COMPUTE];
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        block.exposed_s[axis] = following.exposed_s[axis];
    }
    return block;
}
