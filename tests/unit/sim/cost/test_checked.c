// Collectives that ranks check beforehand: what it takes the host, by the ranks of the group and DDP's buckets.

#include <criterion/criterion.h>

#include "sim/cost/cost.h"
#include "tests/support/lowered.h"
#include "tests/unit/sim/cost/machines.h"

static const double each_s = 0.24e-3;

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
    checked->target.runtime.collective_check_s_per_rank = each_s;
    checked->target.runtime.checks_collectives = checks;
    checked->model = (CostModel){.profile = &checked->profile, .target = &checked->target};
}

static double host_s(const Checked *checked, const Task *task) {
    cr_assert_not_null(task);
    return rank_host_s(&checked->model, &checked->program, task);
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

Test(checked, collectives_cost_the_host_by_the_ranks_of_their_group) {
    Checked checked, plain;
    begin(&checked, "dp_shard=4,tp=2", -1, true);
    begin(&plain, "dp_shard=4,tp=2", -1, false);
    const Task *gather = first_of(&checked.program, TASK_ALL_GATHER, LANE_TP);
    cr_expect_float_eq(host_s(&checked, gather), 2 * each_s, 1e-12);
    cr_expect_float_eq(host_s(&plain, gather), 0, 1e-12);
}

// With tp 2 a layer's parameters are 12.6, 8.4, 58.7 and 29.4 million: three buckets of 13.1 in each of 32 layers, the
// last of which holds both of attention, and one more for the first norms.
Test(checked, gradients_are_checked_a_bucket_at_a_time) {
    Checked checked;
    begin(&checked, "dp_shard=4,tp=2", -1, true);
    const Task *reduce = first_of(&checked.program, TASK_ALL_REDUCE, LANE_REP);
    reduce = reduce ? reduce : first_of(&checked.program, TASK_ALL_REDUCE, LANE_RS);
    cr_expect_float_eq(32 * host_s(&checked, reduce) / (4 * each_s), 3 * 32 + 1, 1e-9);
}

Test(checked, the_buffer_of_stage_1_is_checked_once) {
    Checked checked;
    begin(&checked, "dp_shard=4,tp=2", 1, true);
    double calls = 0;
    for (int32_t i = 0; i < checked.program.task_count; i++) {
        const Task *task = &checked.program.tasks[i];
        const int times = task->unit >= 0 ? checked.program.units[task->unit].instances : 0;
        const bool reduces = task->lane == LANE_RS && task_is_collective(task);
        calls += reduces ? times * host_s(&checked, task) / (4 * each_s) : 0;
    }
    cr_expect_float_eq(calls, 1, 1e-9);
}
