// Where a step's time went, on hand-made spans: one compute, one dp_shard gather and one tensor-parallel lane.

#include <criterion/criterion.h>

#include "autotune/validate/exposure.h"
#include "tests/support/program_builder.h"

static Arena arena;
static ProgramBuilder builder;
static StepProgram *program;
static StepParts parts;

enum { WORK, UPDATE, GATHER, SUM };

static void begin(void) {
    builder = builder_begin(&arena, 1);
    const int16_t compute = builder_lane(&builder, "compute", -1), ag = builder_lane(&builder, "ag", 0);
    const int16_t tp = builder_lane(&builder, "tp", 1);
    const int16_t shards = builder_group(&builder, "dp_shard", AXIS_BIT(AXIS_DP_SHARD), 2);
    const int16_t tensors = builder_group(&builder, "tp", AXIS_BIT(AXIS_TP), 2);
    builder_task(&builder, "work", TASK_ADD, compute, PHASE_FORWARD);
    builder_task(&builder, "update", TASK_ADAMW, compute, PHASE_OPTIMIZER);
    builder_task(&builder, "gather", TASK_ALL_GATHER, ag, PHASE_FORWARD)->group = shards;
    builder_task(&builder, "sum", TASK_ALL_REDUCE, tp, PHASE_FORWARD)->group = tensors;
    program = builder_program(&builder);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(exposure, .init = begin, .fini = end);

static void measure(Span *spans, int count, double step_s) {
    const Timeline timeline = {.spans = spans, .span_count = count, .complete = true, .step_s = step_s};
    exposure_of(program, &timeline, &arena, &parts);
}

Test(exposure, one_after_the_other_all_communication_is_exposed) {
    Span spans[] = {{.task = GATHER, .start_s = 0, .end_s = 2},
                    {.task = WORK, .start_s = 2, .end_s = 5},
                    {.task = SUM, .start_s = 5, .end_s = 6},
                    {.task = UPDATE, .start_s = 6, .end_s = 8}};
    measure(spans, 4, 9);
    cr_assert_float_eq(parts.exposed_s[AXIS_DP_SHARD], 2, 1e-12);
    cr_assert_float_eq(parts.exposed_s[AXIS_TP], 1, 1e-12);
    cr_assert_float_eq(parts.compute_s, 3, 1e-12);
    cr_assert_float_eq(parts.optimizer_s, 2, 1e-12);
    cr_assert_float_eq(parts.overhead_s, 1, 1e-12);  // the end of the step
}

Test(exposure, beside_compute_nothing_is_exposed) {
    Span spans[] = {{.task = WORK, .start_s = 0, .end_s = 3},
                    {.task = WORK, .start_s = 4, .end_s = 6},
                    {.task = GATHER, .start_s = 1, .end_s = 5}};
    measure(spans, 3, 6);
    cr_assert_float_eq(parts.exposed_s[AXIS_DP_SHARD], 1, 1e-12);  // from 3 to 4
    cr_assert_float_eq(parts.overhead_s, 0, 1e-12);
}

Test(exposure, a_moment_is_charged_once) {
    Span spans[] = {{.task = WORK, .start_s = 4, .end_s = 5},
                    {.task = GATHER, .start_s = 0, .end_s = 3},
                    {.task = SUM, .start_s = 1, .end_s = 4}};
    measure(spans, 3, 5);
    cr_assert_float_eq(parts.exposed_s[AXIS_DP_SHARD], 3, 1e-12);
    cr_assert_float_eq(parts.exposed_s[AXIS_TP], 1, 1e-12);
}

Test(exposure, ranks_are_averaged) {
    Span spans[] = {{.rank = 0, .task = WORK, .start_s = 0, .end_s = 4},
                    {.rank = 1, .task = GATHER, .start_s = 0, .end_s = 2},
                    {.rank = 1, .task = WORK, .start_s = 2, .end_s = 4}};
    measure(spans, 3, 4);
    cr_assert_float_eq(parts.compute_s, 3, 1e-12);
    cr_assert_float_eq(parts.exposed_s[AXIS_DP_SHARD], 1, 1e-12);
}

Test(exposure, without_spans_nothing_is_known) {
    measure(NULL, 0, 4);
    cr_assert_eq(parts.overhead_s, 0);
}
