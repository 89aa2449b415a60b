// What the executor returns for a step: its timeline is the program walked in issue order, once per rank, with
// plausible times.

#include <criterion/criterion.h>

#include "tests/parity/exec/exec_case.h"
#include "tests/support/sizes.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(runner, .fini = clean);

static StepProgram program_of(Mesh mesh) {
    TrainPlan plan;
    case_plan(&mesh, 2, &plan);
    plan.zero = 3;
    plan_canonical(&plan);
    const RunOptions options = case_options();
    const RunRequest request = case_request(&plan, &options);
    StepProgram program;
    Error error = {0};
    cr_assert(step_lower(&request.model, &plan, request.target, &arena, &program, &error) == STATUS_OK, "%s",
              error.message);
    return program;
}

static Timeline timeline_of(const StepProgram *program, RunResult *result) {
    RunOptions options = case_options();
    options.steps = 4;
    options.spans = true;
    *result = case_run(&program->plan, &options, &arena);
    return result->timeline;
}

Test(runner, spans_are_the_program_in_issue_order_on_every_rank) {
    const StepProgram program = program_of((Mesh){.size = SIZES(1, 2, 1, 2)});
    RunResult result;
    const Timeline timeline = timeline_of(&program, &result);
    cr_assert(timeline.origin == TIMELINE_MEASURED && timeline.complete);
    int64_t at = 0;
    for (int rank = 0; rank < 4; rank++) {
        StepCursor cursor = step_cursor_begin(&program);
        StepInstance instance;
        double before_s = 0;
        while (step_cursor_next(&cursor, &instance)) {
            const Span *span = &timeline.spans[at++];
            cr_assert(span->rank == rank && span->task == instance.task && span->layer == instance.layer &&
                      span->micro_step == instance.micro_step);
            cr_assert(span->start_s >= before_s && span->end_s >= span->start_s, "spans of one thread overlap");
            before_s = span->end_s;
        }
        cr_assert(before_s <= timeline.step_s * (1 + 1e-6), "a span ends %g after a step of %g", before_s,
                  timeline.step_s);  // 1e-6: the step's time travels as fp32
    }
    cr_assert(at == timeline.span_count);
}

Test(runner, totals_count_the_instances_of_each_task) {
    const StepProgram program = program_of((Mesh){.size = SIZES(1, 1, 2, 1)});
    RunResult result;
    timeline_of(&program, &result);
    int64_t *counts = ARENA_ARRAY(&arena, int64_t, program.task_count);
    StepCursor cursor = step_cursor_begin(&program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        counts[instance.task]++;
    }
    cr_assert_eq(result.task_count, program.task_count);
    for (int t = 0; t < program.task_count; t++) {
        cr_expect_eq(result.totals[t].count, counts[t], "task %d", t);
    }
}
