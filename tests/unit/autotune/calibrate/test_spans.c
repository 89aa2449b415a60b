// Spans of a measured step as sums per kind.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/calibrate/calibrate_internal.h"
#include "tests/unit/autotune/calibrate/generated_runs.h"

static Arena arena;
static Generated generated;
static StepProgram program;
static Timeline timeline;
static double span_s[SPAN_KIND_COUNT];
static int64_t per_rank;

// A step of dp_shard=2 whose every task took a millisecond on rank 0, and on rank 1 twice as long.
static void begin(void) {
    Error error = {0};
    arena = (Arena){0};
    generated_begin(&generated, "ndtune", &arena);
    const CalibrationCase *what = &generated.cases[1];
    cr_assert_eq(step_lower(what->model, &what->plan, what->target, &arena, &program, &error), STATUS_OK);
    per_rank = step_instance_count(&program);
    timeline =
        (Timeline){.spans = ARENA_ARRAY(&arena, Span, 2 * per_rank), .span_count = 2 * per_rank, .complete = true};
    for (int rank = 0; rank < 2; rank++) {
        StepCursor cursor = step_cursor_begin(&program);
        StepInstance instance;
        for (int64_t i = 0; i < per_rank && step_cursor_next(&cursor, &instance); i++) {
            timeline.spans[rank * per_rank + i] =
                (Span){.rank = rank, .task = instance.task, .end_s = 1e-3 * (1 + rank)};
        }
    }
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(calibration_spans, .init = begin, .fini = end);

static int64_t instances(bool collectives) {
    int64_t count = 0;
    for (int64_t i = 0; i < per_rank; i++) {
        count += task_is_collective(&program.tasks[timeline.spans[i].task]) == collectives;
    }
    return count;
}

Test(calibration_spans, kernels_are_the_mean_of_the_ranks_and_collectives_the_rank_that_came_last) {
    cr_assert(calibration_spans(&generated.cases[1], &program, &timeline, &arena, span_s));
    cr_assert_float_eq(span_s[SPAN_GEMM] + span_s[SPAN_ATTENTION] + span_s[SPAN_MEMORY],
                       1.5e-3 * (double)instances(false), 1e-9);
    cr_assert_float_eq(span_s[SPAN_LINKS], 1e-3 * (double)instances(true), 1e-9);
    cr_assert_float_eq(span_s[SPAN_FABRIC], 0, 0);
}

Test(calibration_spans, ranks_that_share_cores_say_nothing_of_the_machine) {
    ClusterProfile small = generated.base;
    small.node.cores = 1;
    CalibrationCase what = generated.cases[1];
    what.cluster = &small;
    cr_assert_not(calibration_spans(&what, &program, &timeline, &arena, span_s));
    cr_assert_float_eq(span_s[SPAN_GEMM], 0, 0);
}

Test(calibration_spans, a_step_with_spans_missing_is_not_used) {
    timeline.span_count--;
    cr_assert_not(calibration_spans(&generated.cases[1], &program, &timeline, &arena, span_s));
}
