// Collectives that ranks check beforehand: what it takes the host, by the ranks of the group and DDP's buckets.

#include <criterion/criterion.h>

#include "sim/cost/cost.h"
#include "tests/support/lowered.h"
#include "tests/unit/sim/cost/machines.h"

static const double check_s = 0.1e-3, message_s = 50e-6, between_s = 70e-6;

enum { BARRIER = 2, RINGS = 2 };  // messages of each other rank

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(checked, .fini = clean);

typedef struct Checked {
    ClusterProfile profile;
    Target target;
    StepProgram program;
    CostModel model;
} Checked;

// Of a step without ZeRO (or stage 1), tp of 2.
static void begin(Checked *checked, const char *mesh, int zero, bool checks) {
    checked->profile = machine_h100();
    checked->program = lowered(
        &arena,
        (LoweredRequest){
            .model = "llama-3-8b", .target = "nanotron", .mesh = mesh, .seq = 4096, .zero = zero, .bf16 = true});
    checked->target = *checked->program.target;
    checked->target.runtime.check_s = check_s;
    checked->target.runtime.check_message_s = message_s;
    checked->target.runtime.check_message_between_s = between_s;
    checked->target.runtime.checks_collectives = checks;
    checked->model = (CostModel){.profile = &checked->profile, .target = &checked->target};
}

static double host_s(const Checked *checked, const Task *task) {
    cr_assert_not_null(task);
    return check_host_s(&checked->model, &checked->program, task);
}

static const Task *first_of(const StepProgram *program, TaskKind kind, int lane) {
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        if (task->kind == kind && task->lane == lane && (lane == LANE_TP || task->unit == UNIT_LAYER)) {
            return task;
        }
    }
    return NULL;
}

// Of ranks on one node.
static double check_of(int ranks) {
    return check_s + (BARRIER + RINGS) * (ranks - 1) * message_s;
}

Test(checked, collectives_cost_the_host_by_the_other_ranks_of_their_group) {
    Checked checked, plain;
    begin(&checked, "dp_shard=4,tp=2", -1, true);
    begin(&plain, "dp_shard=4,tp=2", -1, false);
    const Task *gather = first_of(&checked.program, TASK_ALL_GATHER, LANE_TP);
    cr_expect_float_eq(host_s(&checked, gather), check_of(2), 1e-12);
    cr_expect_float_eq(host_s(&plain, gather), 0, 1e-12);
}

static const Task *clip_of(const StepProgram *program) {
    for (int32_t i = 0; i < program->task_count; i++) {
        if (program->tasks[i].kind == TASK_CLIP) {
            return &program->tasks[i];
        }
    }
    return NULL;
}

// With tp 2 a layer's parameters are 12.6, 8.4, 58.7 and 29.4 million: three buckets of 13.1 in each of 32 layers, the
// last of which holds both of attention, and one more for the first norms; the embedding is one, head and last norm are
// two. A barrier of all is checked as well.
enum { BUCKETS = 3 * 32 + 1 + 1 + 2 };

Test(checked, gradients_are_checked_a_bucket_at_a_time_behind_backward) {
    Checked checked;
    begin(&checked, "dp_shard=4,tp=2", -1, true);
    const Task *reduce = first_of(&checked.program, TASK_ALL_REDUCE, LANE_REP);
    reduce = reduce ? reduce : first_of(&checked.program, TASK_ALL_REDUCE, LANE_RS);
    cr_expect_eq(host_s(&checked, reduce), 0);
    cr_expect_float_eq((host_s(&checked, clip_of(&checked.program)) - check_of(8)) / check_of(4), BUCKETS, 1e-9);
}

Test(checked, the_buffer_of_stage_1_is_checked_once) {
    Checked checked;
    begin(&checked, "dp_shard=4,tp=2", 1, true);
    double calls = 0;
    for (int32_t i = 0; i < checked.program.task_count; i++) {
        const Task *task = &checked.program.tasks[i];
        const int times = task->unit >= 0 ? checked.program.units[task->unit].instances : 0;
        const bool reduces = task->lane == LANE_RS && task_is_collective(task);
        calls += reduces ? times * host_s(&checked, task) / check_of(4) : 0;
    }
    cr_expect_float_eq(calls, 1, 1e-9);
}

// Four of eight replicas are on the node of rank 0, which waits for these less long; at each step a ring waits for the
// slowest.
Test(checked, ranks_of_other_nodes_take_longer_to_answer) {
    Checked checked;
    begin(&checked, "dp_shard=8,tp=2", -1, true);
    const double all = check_s + BARRIER * (7 * message_s + 8 * between_s) + RINGS * 15 * between_s;
    const double replicas = check_s + BARRIER * (3 * message_s + 4 * between_s) + RINGS * 7 * between_s;
    cr_expect_float_eq(host_s(&checked, clip_of(&checked.program)), all + BUCKETS * replicas, 1e-9);
}
