// What a memory curve is made from: the program of a neighbour, which other plans use as well.

#include "sim/analytic/memory_curve.h"

#include <criterion/criterion.h>

#include "tests/support/sizes.h"

// Each of the 8 ranks has experts of its own; in the neighbour with more shards two ranks share them.
static TrainPlan expert_plan(void) {
    TrainPlan plan = {.mesh = {SIZES(1, 8, 1, 1)},
                      .seq = 2048,
                      .micro_batch = 1,
                      .grad_accum = 2,
                      .zero = 1,
                      .precision = DTYPE_BF16};
    plan.mesh.size[AXIS_EP] = 8;
    return plan;
}

Test(memory_curve, the_plans_communicators_count_whoever_used_the_program_before) {
    Arena arena = {0}, scratch = {0};
    Error error = {0};
    ModelSpec model;
    const Target *target;
    cr_assert_eq(model_find("mixtral-8x7b", &arena, &model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find("megatron", &target, &error), STATUS_OK, "%s", error.message);
    const TrainPlan plan = expert_plan(), neighbour = memory_neighbour(&plan, FEW_SHARDS);
    ResizableProgram *program;
    cr_assert_eq(resizable_lower(&model, &neighbour, target, 0, &arena, &scratch, &program, &error), STATUS_OK, "%s",
                 error.message);
    ShardSizes sizes = {0};
    LiveTraces traces = {0};
    const CurveSource from = {&model, 0, program, &sizes, &arena, &traces, &scratch};
    MemoryCurve fresh, used;
    cr_assert_eq(memory_curve_make(&from, &plan, &arena, &fresh, &error), STATUS_OK, "%s", error.message);
    StepProgram *placed;
    cr_assert_eq(resizable_at(program, 1, &scratch, &placed, &error), STATUS_OK);
    step_place(placed, &neighbour);
    const double of_neighbour = memory_outside_bytes(placed, &scratch);
    cr_assert_eq(memory_curve_make(&from, &plan, &arena, &used, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(fresh.fixed_reserved_bytes, used.fixed_reserved_bytes);
    cr_expect_lt(used.fixed_reserved_bytes, of_neighbour, "its neighbour has a communicator more");
    live_traces_free(&traces);
    arena_free(&scratch);
    arena_free(&arena);
}
