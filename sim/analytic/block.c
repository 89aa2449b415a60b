// Runs the stretch once per input, with that input at time 0 and the others long ago: the outputs are then the
// operator's delays (a schedule of fixed order is linear in max-plus algebra; Baccelli et al. 1992, chapter 2).
// "The stretch before has ended" is an input of its own: that stretch is run first, so that what it leaves on the tp
// and cp lanes, and what they already begin for this one, is in the delays even when sharding's copies come between.

#include "sim/analytic/block.h"

#include "sim/base/hash.h"
#include "sim/step/slots.h"

enum { BLOCK_REFS = 1 - BLOCK_EXPERTS_REF };  // and none at 0

typedef struct BlockRun {
    double lane_s[LANE_COUNT];
    double host_s, of_sharding_s[BLOCK_REFS];    // inputs, the latter by reference
    double weights_read_s, gradients_written_s;  // outputs
    double busy_s, exposed_s[AXIS_COUNT + 1];    // the last one: idle time due to no collective
    int8_t last_axis[LANE_COUNT];                // of the lane's last task
    bool unstopped;                              // the host waits for nothing
} BlockRun;

// ---- from tasks to steps

static int32_t event_slot(const BlockTasks *tasks, const EventRef *ref, int32_t layer) {
    return step_event_slot(tasks->program, tasks->first_slot, ref, &(StepInstance){.layer = layer});
}

static bool is_of_experts(const StepProgram *program, int32_t buffer) {
    return program->unit_count > UNIT_EXPERTS && program->units[UNIT_EXPERTS].gathered == buffer;
}

static int16_t reference(const BlockTasks *tasks, const EventRef *ref, int32_t layer, BlockCode *code) {
    const int lane = tasks->program->events[ref->event].lane;
    if (lane == LANE_AG) {
        const bool experts = is_of_experts(tasks->program, tasks->program->events[ref->event].buffer);
        code->awaits_experts |= experts;
        return experts ? BLOCK_EXPERTS_REF : BLOCK_WEIGHTS_REF;
    }
    if (lane == LANE_RS || lane == LANE_REP) {
        return BLOCK_GRADIENTS_REF;
    }
    SlotNumber *slot = &tasks->numbers[event_slot(tasks, ref, layer)];
    if (slot->stamp != tasks->stamp) {
        code->slot_lane[code->slot_count] = (int8_t)lane;
        *slot = (SlotNumber){.stamp = tasks->stamp, .number = (int16_t)code->slot_count++};
    }
    return slot->number;
}

static void touch_roles(const StepProgram *program, const Task *task, BlockStep *step) {
    for (int i = 0; i < task->operand_count; i++) {
        const Operand *operand = task_operand(program, task, i);
        if (operand->ref.buffer >= 0) {
            const BufferRole role = program->buffers[operand->ref.buffer].role;
            const bool reads = role == ROLE_GATHERED && (operand->access & ACCESS_READ);
            const bool writes = role == ROLE_GRADIENT && (operand->access & ACCESS_WRITE);
            step->roles |= (uint8_t)((reads ? STEP_READS_WEIGHTS : 0) | (writes ? STEP_WRITES_GRADIENTS : 0));
        }
    }
}

static int8_t charged_axis(const StepProgram *program, const Task *task) {
    return (int8_t)(task_is_collective(task) ? axes_slowest(program->groups[task->group].axes) : AXIS_COUNT);
}

static void compile_run(const BlockTasks *tasks, const TaskRun *run, int32_t *numbers, BlockCode *code) {
    const StepProgram *program = tasks->program;
    for (int32_t i = 0; i < run->count; i++) {
        const Task *task = &program->tasks[run->tasks[i]];
        BlockStep step = {.waits = (int16_t)task->wait_count,
                          .records = (int16_t)task->record_count,
                          .lane = (int8_t)task->lane,
                          .axis = charged_axis(program, task)};
        touch_roles(program, task, &step);
        numbers[code->count] = run->tasks[i];
        code->steps[code->count++] = step;
        for (int k = 0; k < task->wait_count; k++) {
            code->refs[code->ref_count++] =
                reference(tasks, &program->event_refs[task->first_wait + k], run->layer, code);
        }
        for (int k = 0; k < task->record_count; k++) {
            code->refs[code->ref_count++] =
                reference(tasks, &program->event_refs[task->first_record + k], run->layer, code);
        }
    }
}

static int32_t count_references(const BlockTasks *tasks, const TaskRun *run) {
    int32_t count = 0;
    for (int32_t i = 0; i < run->count; i++) {
        const Task *task = &tasks->program->tasks[run->tasks[i]];
        count += task->wait_count + task->record_count;
    }
    return count;
}

static uint64_t references_hash(const BlockCode *code) {
    Hash hash = hash_begin();
    hash_int(&hash, (int64_t)code->before << 32 | code->count << 1 | code->joins);
    for (int32_t i = 0; i < code->ref_count; i++) {
        hash_int(&hash, code->refs[i]);
    }
    return hash_end(&hash);
}

BlockPattern block_compile(const BlockTasks *tasks, Arena *arena) {
    const int32_t steps = tasks->before.count + tasks->run.count;
    const int32_t refs = count_references(tasks, &tasks->before) + count_references(tasks, &tasks->run);
    BlockCode code = {.steps = ARENA_UNCLEARED(arena, BlockStep, steps),
                      .before = tasks->before.count,
                      .refs = ARENA_UNCLEARED(arena, int16_t, refs),
                      .slot_lane = ARENA_UNCLEARED(arena, int8_t, refs),
                      .joins = tasks->joins};
    int32_t *numbers = ARENA_UNCLEARED(arena, int32_t, steps);
    compile_run(tasks, &tasks->before, numbers, &code);
    compile_run(tasks, &tasks->run, numbers, &code);
    code.refs_hash = references_hash(&code);
    return (BlockPattern){.tasks = numbers, .code = code};
}

BlockCode block_price(const BlockPattern *pattern, const StepProgram *program, const TaskCost *costs, Arena *arena) {
    BlockCode code = pattern->code;
    code.steps = ARENA_UNCLEARED(arena, BlockStep, code.count);
    code.demands = ARENA_UNCLEARED(arena, ShareDemand, code.count);
    for (int32_t i = 0; i < code.count; i++) {
        const TaskCost *cost = &costs[pattern->tasks[i]];
        code.steps[i] = pattern->code.steps[i];
        code.steps[i].seconds = cost->seconds;
        code.steps[i].host_s = cost->host_s;
        code.steps[i].host_stop = (uint8_t)cost->host_stop;
        code.demands[i] = share_demand(&program->tasks[pattern->tasks[i]], cost);
    }
    return code;
}

// ---- measuring

static inline void run_step(const BlockCode *code, const BlockStep *step, const int16_t *refs, double *event_s,
                            BlockRun *run) {
    const double start_s = later(run->lane_s[step->lane], run->host_s);
    double waited_s = start_s;
    int late_lane = -1;
    for (int k = 0; k < step->waits; k++) {
        const int ref = refs[k];
        const double awaited_s = ref >= 0 ? event_s[ref] : run->of_sharding_s[-ref];
        if (awaited_s > waited_s) {
            waited_s = awaited_s;
            late_lane = ref >= 0 ? code->slot_lane[ref] : -1;
        }
    }
    const double end_s = waited_s + step->seconds;
    if (step->lane == LANE_COMPUTE) {
        run->busy_s += step->seconds;
        if (late_lane > LANE_REP && start_s > block_never_s / 2) {
            run->exposed_s[run->last_axis[late_lane]] += waited_s - start_s;
        }
    }
    run->lane_s[step->lane] = end_s;
    run->last_axis[step->lane] = step->axis;
    for (int k = 0; k < step->records; k++) {
        event_s[refs[step->waits + k]] = end_s;
    }
    if (step->roles & STEP_READS_WEIGHTS) {
        run->weights_read_s = later(run->weights_read_s, end_s);
    }
    if (step->roles & STEP_WRITES_GRADIENTS) {
        run->gradients_written_s = later(run->gradients_written_s, end_s);
    }
    if (step->host_stop != HOST_GOES_ON && !run->unstopped) {
        run->host_s = later(run->host_s, step->host_stop == HOST_WAITS_FOR_START ? waited_s : end_s);
    }
}

static void set_never(double *seconds, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        seconds[i] = block_never_s;
    }
}

// Where a run begins: nothing has happened, or the stretch before has.
typedef struct BlockStart {
    BlockRun run;
    double *event_s;
    int32_t ref;  // first of the stretch's own steps
} BlockStart;

static const BlockRun never_begun = {.host_s = -1e30, .of_sharding_s = {-1e30, -1e30, -1e30, -1e30}};

static BlockStart start_empty(const BlockCode *code, Arena *scratch) {
    BlockStart start = {.run = never_begun, .event_s = ARENA_UNCLEARED(scratch, double, code->slot_count + 1)};
    set_never(start.run.lane_s, LANE_COUNT);
    set_never(start.event_s, code->slot_count);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        start.run.last_axis[lane] = AXIS_COUNT;
    }
    return start;
}

// The stretch before, so timed that the compute lane is free at 0.
static BlockStart start_behind(const BlockCode *code, Arena *scratch) {
    BlockStart start = start_empty(code, scratch);
    double busy_s = 0;
    for (int pass = 0; pass < 2; pass++) {
        set_never(start.event_s, code->slot_count);
        set_never(start.run.lane_s, LANE_COUNT);
        start.run.lane_s[LANE_COMPUTE] = -busy_s;
        start.run.host_s = block_never_s;
        start.ref = 0;
        for (int32_t i = 0; i < code->before; i++) {
            run_step(code, &code->steps[i], &code->refs[start.ref], start.event_s, &start.run);
            start.ref += code->steps[i].waits + code->steps[i].records;
        }
        busy_s = start.run.lane_s[LANE_COMPUTE];  // of the first pass, which began at 0: its length
    }
    return start;
}

static void join_transfers(BlockRun *run) {
    static const int lanes[] = {LANE_TP, LANE_CP};
    for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++) {
        const double late_s = run->lane_s[lanes[i]] - run->lane_s[LANE_COMPUTE];
        if (late_s > 0) {
            run->exposed_s[run->last_axis[lanes[i]]] += late_s;
            run->lane_s[LANE_COMPUTE] = run->lane_s[lanes[i]];
        }
    }
}

// The stretch before has ended and compute is free, both at 0; of the device alone, too.
enum { BLOCK_FOLLOWS = BLOCK_PORTS, BLOCK_FOLLOWS_UNSTOPPED };

// With that input at 0.
static BlockRun run_from(const BlockCode *code, const BlockStart *start, int port, double *event_s) {
    BlockRun run = start->run;
    run.unstopped = port == BLOCK_FOLLOWS_UNSTOPPED;
    for (int32_t i = 0; i < code->slot_count; i++) {
        event_s[i] = start->event_s[i];
    }
    run.lane_s[LANE_COMPUTE] = port == BLOCK_COMPUTE || port >= BLOCK_FOLLOWS ? 0 : block_never_s;
    run.of_sharding_s[-BLOCK_WEIGHTS_REF] = port == BLOCK_WEIGHTS ? 0 : block_never_s;
    run.of_sharding_s[-BLOCK_GRADIENTS_REF] = port == BLOCK_GRADIENTS ? 0 : block_never_s;
    run.of_sharding_s[-BLOCK_EXPERTS_REF] = port == BLOCK_EXPERTS ? 0 : block_never_s;
    run.weights_read_s = run.gradients_written_s = block_never_s;
    run.busy_s = 0;
    for (int axis = 0; axis <= AXIS_COUNT; axis++) {
        run.exposed_s[axis] = 0;
    }
    const int16_t *refs = &code->refs[start->ref];
    run.host_s = port == BLOCK_HOST ? 0 : block_never_s;
    for (int32_t i = code->before; i < code->count; i++) {
        const BlockStep *step = &code->steps[i];
        run.host_s += step->host_s;
        run_step(code, step, refs, event_s, &run);
        refs += step->waits + step->records;
    }
    if (code->joins) {
        join_transfers(&run);
    }
    return run;
}

Block block_measure(const BlockCode *code, Arena *scratch) {
    Block block = {0};
    const BlockStart behind = start_behind(code, scratch);
    BlockStart empty = start_empty(code, scratch);
    empty.ref = behind.ref;
    double *event_s = ARENA_UNCLEARED(scratch, double, code->slot_count + 1);
    for (int output = 0; output < BLOCK_OUTPUTS; output++) {
        block.delay_s[output][BLOCK_EXPERTS] = block_never_s;
    }
    for (int port = 0; port < BLOCK_PORTS; port++) {
        if (port == BLOCK_EXPERTS && !code->awaits_experts) {
            continue;
        }
        const BlockRun run = run_from(code, port == BLOCK_BEFORE ? &behind : &empty, port, event_s);
        block.delay_s[BLOCK_COMPUTE_FREE][port] = run.lane_s[LANE_COMPUTE];
        block.delay_s[BLOCK_READ][port] = run.weights_read_s;
        block.delay_s[BLOCK_WRITTEN][port] = run.gradients_written_s;
        block.delay_s[BLOCK_ISSUED][port] = run.host_s;
    }
    for (int32_t i = code->before; i < code->count; i++) {
        block.host_s += code->steps[i].host_s;
        block.stops_host |= code->steps[i].host_stop != HOST_GOES_ON;
    }
    const BlockRun following = run_from(code, &behind, BLOCK_FOLLOWS, event_s);
    block.busy_s = following.busy_s;
    block.length_s = block.device_s = following.lane_s[LANE_COMPUTE];
    if (block.stops_host) {
        block.device_s = run_from(code, &behind, BLOCK_FOLLOWS_UNSTOPPED, event_s).lane_s[LANE_COMPUTE];
    }
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        block.exposed_s[axis] = following.exposed_s[axis];
    }
    return block;
}
