// A step split into runs, and which tasks overlap collectives: read from lowered programs, no device.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "exec/device/beside.h"
#include "exec/device/issue_runs.h"
#include "tests/support/lowered.h"
#include "tests/support/seed.h"

static Arena arena;

static void setup(void) {
    arena = (Arena){0};
}

static void teardown(void) {
    arena_free(&arena);
}

TestSuite(issue_runs, .init = setup, .fini = teardown);

enum { PROGRAMS = 60, MAX_WORLD = 8 };

typedef void Check(const StepProgram *program, const IssueRuns *runs);

static void each_random_program(Check *check) {
    uint64_t seed = seed_of_run("issue runs", 20251120);
    for (int i = 0; i < PROGRAMS; i++) {
        const StepProgram program = lowered(&arena, lowered_random(&arena, &seed, MAX_WORLD));
        const IssueRuns runs = issue_runs_cut(&program, &arena);
        check(&program, &runs);
    }
}

static void covers(const StepProgram *program, const IssueRuns *runs) {
    StepCursor all = step_cursor_begin(program);
    StepInstance want, got;
    int64_t next = 0;
    for (int32_t r = 0; r < runs->count; r++) {
        StepCursor cursor = runs->runs[r].cursor;
        cr_assert_eq(runs->runs[r].first, next);
        for (int32_t i = 0; i < runs->runs[r].count; i++, next++) {
            cr_assert(step_cursor_next(&all, &want) && step_cursor_next(&cursor, &got));
            cr_assert(want.task == got.task && want.layer == got.layer && want.micro_step == got.micro_step);
        }
    }
    cr_assert_eq(next, step_instance_count(program));
}

Test(issue_runs, every_instance_is_in_one_run_in_issue_order) {
    each_random_program(covers);
}

static void alike(const StepProgram *program, const IssueRuns *runs) {
    const Task *before = NULL;
    RunKind kind_before = RUN_KINDS;
    for (int32_t r = 0; r < runs->count; r++) {
        const IssueRun *run = &runs->runs[r];
        StepCursor cursor = run->cursor;
        StepInstance instance;
        for (int32_t i = 0; i < run->count && step_cursor_next(&cursor, &instance); i++) {
            const Task *task = &program->tasks[instance.task];
            cr_assert_eq(task_is_collective(task), run->kind == RUN_COLLECTIVE);
            cr_assert_eq(task->kind == TASK_LOAD_TOKENS, run->kind == RUN_HOST);
            cr_assert_eq(task->kind == TASK_ADAMW, run->kind == RUN_STEPWISE);
            cr_assert(i == 0 || before->lane == task->lane);
            const bool could_join = before && before->lane == task->lane && kind_before == run->kind;
            cr_assert(i > 0 || !could_join || run->kind == RUN_COLLECTIVE || run->kind == RUN_HOST,
                      "'%s' should have joined the run before it", task->name);
            before = task;
            kind_before = run->kind;
        }
    }
}

Test(issue_runs, a_run_is_of_one_kind_and_lane_and_as_long_as_it_can_be) {
    each_random_program(alike);
}

static void same(const StepProgram *program, const IssueRuns *runs) {
    int32_t distinct = 0;
    (void)program;
    for (int32_t r = 0; r < runs->count; r++) {
        const IssueRun *run = &runs->runs[r], *first = &runs->runs[run->same_as];
        StepCursor a = run->cursor, b = first->cursor;
        StepInstance x, y;
        cr_assert(run->same_as <= r && first->same_as == run->same_as);
        cr_assert_eq(run->count, first->count);
        for (int32_t i = 0; i < run->count; i++) {
            cr_assert(step_cursor_next(&a, &x) && step_cursor_next(&b, &y));
            cr_assert(x.task == y.task && x.layer == y.layer);
        }
        distinct += run->kind == RUN_FIXED && run->same_as == r;
    }
    cr_assert_eq(distinct, runs->distinct);
}

Test(issue_runs, a_run_that_repeats_another_does_the_same_tasks_on_the_same_layers) {
    each_random_program(same);
}

Test(issue_runs, micro_batches_in_the_middle_need_no_graphs_of_their_own) {
    const StepProgram few = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=2", .grad_accum = 4});
    const StepProgram many = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=2", .grad_accum = 16});
    const IssueRuns few_runs = issue_runs_cut(&few, &arena), many_runs = issue_runs_cut(&many, &arena);
    cr_assert_gt(many_runs.count, few_runs.count);
    cr_assert_eq(many_runs.distinct, few_runs.distinct);
}

static bool *beside_of(const StepProgram *program) {
    bool *beside = ARENA_ARRAY(&arena, bool, program->task_count);
    beside_collectives(program, &arena, beside);
    return beside;
}

static bool any(const StepProgram *program, const char *name) {
    const bool *beside = beside_of(program);
    bool found = false, seen = false;
    for (int32_t t = 0; t < program->task_count; t++) {
        const bool named = strcmp(program->tasks[t].name, name) == 0;
        found = found || (named && beside[t]);
        seen = seen || named;
    }
    cr_assert(seen, "no task '%s'", name);
    return found;
}

Test(issue_runs, products_of_a_layer_run_during_the_gathering_of_the_next) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=2"});
    cr_expect(any(&program, "qkv"));
    cr_expect(any(&program, "mlp down wgrad"));
}

Test(issue_runs, one_rank_has_nothing_to_run_beside) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=1"});
    const bool *beside = beside_of(&program);
    for (int32_t t = 0; t < program.task_count; t++) {
        cr_expect(!beside[t], "%s", program.tasks[t].name);
    }
}

Test(issue_runs, a_product_does_not_overlap_the_collective_that_it_waits_for) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.mesh = "tp=2"});
    cr_expect(!any(&program, "qkv"));
    cr_expect(!any(&program, "mlp down"));
}
