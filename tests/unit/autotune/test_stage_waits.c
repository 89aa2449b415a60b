// What of a stage's step counts as waiting for another stage.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "autotune/predict/stage_waits.h"

enum { WORK, UPDATE, RECEIVE, SEND, GATHER, NORM, TASKS };

static Group groups[] = {{.axes = AXIS_BIT(AXIS_DP_SHARD)}, {.axes = AXIS_ALL}};
static Task tasks[TASKS] = {
    [WORK] = {.name = "mlp", .kind = TASK_GEMM, .lane = LANE_COMPUTE, .group = -1},
    [UPDATE] = {.name = "adamw", .kind = TASK_ADAMW, .lane = LANE_COMPUTE, .phase = PHASE_OPTIMIZER, .group = -1},
    [RECEIVE] = {.name = "receive", .kind = TASK_RECEIVE, .lane = LANE_RECEIVE, .group = -1},
    [SEND] = {.name = "send", .kind = TASK_SEND, .lane = LANE_SEND, .group = -1},
    [GATHER] = {.name = "gather", .kind = TASK_ALL_GATHER, .lane = LANE_AG, .group = 0},
    [NORM] = {.name = "norm", .kind = TASK_ALL_REDUCE, .lane = LANE_CTL, .group = 1},
};

static StepProgram program(void) {
    StepProgram of = {.tasks = tasks, .task_count = TASKS, .groups = groups};
    of.plan.mesh = mesh_of_one();
    of.plan.mesh.size[AXIS_PP] = of.plan.mesh.size[AXIS_DP_SHARD] = 2;
    return of;
}

// A receive until 3 and a collective over stages until 10 are waits; a gather until 1, and a send from 5 to 6 are not.
static Span spans[] = {
    {.task = GATHER, .start_s = 0, .end_s = 1},  {.task = RECEIVE, .start_s = 0, .end_s = 3},
    {.task = WORK, .start_s = 3, .end_s = 5},    {.task = SEND, .start_s = 5, .end_s = 6},
    {.task = RECEIVE, .start_s = 5, .end_s = 7}, {.task = WORK, .start_s = 7, .end_s = 8},
    {.task = NORM, .start_s = 8, .end_s = 10},   {.task = UPDATE, .start_s = 10, .end_s = 11},
};
enum { SPANS = sizeof spans / sizeof *spans };

Test(stage_waits, are_for_messages_and_collectives_over_stages_and_not_for_its_own_traffic) {
    Arena arena = {0};
    const StepProgram of = program();
    const StageWaits waits = stage_waits(&of, spans, SPANS, 12, &arena);
    cr_expect_eq(waits.busy_s, 3);
    cr_expect_eq(waits.optimizer_s, 1);
    cr_assert_eq(waits.count, 4);
    static const double expected[][2] = {{1, 3}, {6, 7}, {8, 10}, {11, 12}};  // the last until the step ends elsewhere
    for (int i = 0; i < 4; i++) {
        cr_expect_eq(waits.waits[i].start_s, expected[i][0]);
        cr_expect_eq(waits.waits[i].end_s, expected[i][1]);
    }
    cr_expect_eq(waits.waits_s, 6);
    arena_free(&arena);
}

// The second rank of the timeline works all the time.
Test(stage_waits, the_bubble_is_the_mean_over_ranks_and_unknown_without_spans) {
    Arena arena = {0};
    const StepProgram of = program();
    Span both[SPANS + 1];
    memcpy(both, spans, sizeof spans);
    both[SPANS] = (Span){.rank = 1, .task = WORK, .start_s = 0, .end_s = 12};
    const Timeline timeline = {.spans = both, .span_count = SPANS + 1, .step_s = 12};
    cr_expect_float_eq(stage_bubble_share(&of, &timeline, &arena), 0.25, 1e-12);
    cr_expect(isnan(stage_bubble_share(&of, &(Timeline){.step_s = 12}, &arena)));
    arena_free(&arena);
}
