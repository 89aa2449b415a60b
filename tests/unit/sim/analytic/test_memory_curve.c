// What a memory curve is made from: the program of a neighbour, which other plans use as well.

#include "sim/analytic/memory_curve.h"

#include <criterion/criterion.h>
#include <math.h>

#include "sim/step/stages.h"
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
    NeighbourSizes sizes = {0};
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

static void make_curve(const ModelSpec *model, const TrainPlan *plan, NeighbourSizes *sizes, Arena *arena,
                       MemoryCurve *curve) {
    Arena scratch = {0};
    Error error = {0};
    const Target *target;
    ResizableProgram *program;
    LiveTraces traces = {0};
    cr_assert_eq(target_find("torchtitan", &target, &error), STATUS_OK, "%s", error.message);
    const TrainPlan neighbour = memory_neighbour(plan, FEW_SHARDS);
    cr_assert_eq(resizable_lower(model, &neighbour, target, 0, arena, &scratch, &program, &error), STATUS_OK, "%s",
                 error.message);
    const CurveSource from = {model, 0, program, sizes, arena, &traces, &scratch};
    cr_assert_eq(memory_curve_make(&from, plan, arena, curve, &error), STATUS_OK, "%s", error.message);
    live_traces_free(&traces);
    arena_free(&scratch);
}

Test(memory_curve, is_the_same_from_sizes_that_another_recompute_had) {
    static const Recompute others[] = {RECOMPUTE_FULL, RECOMPUTE_SELECTIVE, RECOMPUTE_NONE};
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    cr_assert_eq(model_find("llama-3-8b", &arena, &model, &error), STATUS_OK, "%s", error.message);
    NeighbourSizes known = {0};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const TrainPlan plan = {.mesh = {SIZES(1, 8, 1, 1)},
                                .seq = 2048,
                                .micro_batch = 1,
                                .grad_accum = 2,
                                .zero = 3,
                                .recompute = others[i],
                                .precision = DTYPE_BF16};
        NeighbourSizes none = {0};
        MemoryCurve fresh, shared;
        make_curve(&model, &plan, &none, &arena, &fresh);
        make_curve(&model, &plan, &known, &arena, &shared);
        cr_assert_eq(fresh.count, shared.count);
        cr_expect_arr_eq(fresh.planes, shared.planes, (size_t)fresh.count * sizeof *fresh.planes);
    }
    arena_free(&arena);
}

// Peaks by the closed form over those of the programs of all stages, less 1.
static double peak_error(const TrainPlan *plan, Arena *arena) {
    Error error = {0};
    ModelSpec model;
    ClusterProfile profile;
    CostModel cost = {.profile = &profile};
    Estimate estimate;
    StepPrograms programs;
    MemoryBreakdown memory;
    LiveTraces traces = {0};
    cr_assert_eq(model_find("qwen3-30b-a3b", arena, &model, &error), STATUS_OK);
    cr_assert_eq(cluster_find("dgx-b200", arena, &profile, &error), STATUS_OK);
    cr_assert_eq(target_find("megatron@0.15", &cost.target, &error), STATUS_OK);
    Analytic *analytic = analytic_new(&model, &cost, arena);
    cr_assert_eq(analytic_estimate(analytic, plan, &estimate, &error), STATUS_OK, "%s", error.message);
    analytic_free(analytic);
    cr_assert_eq(step_lower_stages(&model, plan, cost.target, arena, &programs, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert_eq(memory_breakdown_stages(&programs, 0, &traces, arena, &memory, &error), STATUS_OK);
    live_traces_free(&traces);
    return estimate.peak_bytes / memory.peak_bytes - 1;
}

Test(memory_curve, what_overlapped_chunks_keep_is_in_both_peaks) {
    Arena arena = {0};
    TrainPlan alone = expert_plan(), stages = alone;
    alone.ep_overlap = stages.ep_overlap = true;
    stages.mesh.size[AXIS_PP] = 4;
    stages.grad_accum = 16;
    stages.pp_schedule = PP_INTERLEAVED;
    stages.virtual_stages = 2;
    cr_expect_lt(fabs(peak_error(&alone, &arena)), 0.005, "%g", peak_error(&alone, &arena));
    cr_expect_lt(fabs(peak_error(&stages, &arena)), 0.02, "%g", peak_error(&stages, &arena));
    arena_free(&arena);
}
