// Plans of our executor among programs of which many have one structure: each is that of its program alone.

#include <criterion/criterion.h>

#include "sim/memory/memory.h"
#include "sim/step/stages.h"
#include "tests/support/sizes.h"

static PlanShapes shapes;
static size_t planned;

static void end(void) {
    plan_shapes_free(&shapes);
}

TestSuite(plan_shapes, .fini = end);

static void check_place(const StepProgram *program, const MemoryPlan *among, const MemoryPlan *alone) {
    for (int32_t b = 0; b < program->buffer_count; b++) {
        cr_assert_eq(among->offset_bytes[b], alone->offset_bytes[b], "buffer '%s'", program->buffers[b].name);
        cr_assert_eq(!among->place[b], !alone->place[b]);
        for (int32_t slot = 0; alone->place[b] && slot < program->buffers[b].slots; slot++) {
            cr_assert_eq(among->place[b][slot], alone->place[b][slot]);
        }
    }
}

static void check(const StepProgram *program, Arena *arena) {
    Error error = {0};
    MemoryPlan among, alone;
    char text[PLAN_TEXT_BYTES];
    plan_text(&program->plan, text);
    cr_assert_eq(memory_plan(program, arena, &alone, &error), STATUS_OK, "%s", error.message);
    for (int twice = 0; twice < 2; twice++) {  // found, then known
        cr_assert_eq(memory_plan_among(program, &shapes, arena, &among, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(among.arena_bytes, alone.arena_bytes, "%s", text);
        cr_assert_eq(among.persistent_bytes, alone.persistent_bytes, "%s", text);
        check_place(program, &among, &alone);
    }
    planned++;
}

static void check_stages(TrainPlan plan) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    StepPrograms programs;
    const Target *target = NULL;
    cr_assert_eq(target_find("ndtune", &target, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(model_find("tiny", &arena, &model, &error), STATUS_OK, "%s", error.message);
    model.layers = 8;
    plan.zero = target_default_zero(target, &plan.mesh);
    plan_canonical(&plan);
    cr_assert_eq(step_lower_stages(&model, &plan, target, &arena, &programs, &error), STATUS_OK, "%s", error.message);
    for (int stage = 0; stage < programs.count; stage++) {
        check(&programs.of[stage], &arena);
    }
    arena_free(&arena);
}

// Sizes, shards and micro-steps of one order, with each of them recomputed and not.
static void check_order(PpSchedule schedule, int stages, int chunks) {
    for (int i = 0; i < 24; i++) {
        TrainPlan plan = {.mesh = {SIZES(1, 1, 1, 1)},
                          .seq = 64,
                          .micro_batch = 1 << i % 3,
                          .grad_accum = i / 3 % 2 ? 4 : 8,
                          .recompute = i / 6 % 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE,
                          .pp_schedule = schedule,
                          .virtual_stages = chunks};
        plan.mesh.size[AXIS_PP] = stages;
        plan.mesh.size[AXIS_DP_SHARD] = i / 12 % 2 ? 4 : 2;
        check_stages(plan);
    }
}

Test(plan_shapes, a_plan_among_programs_of_one_structure_is_that_of_the_program_alone) {
    check_order(PP_1F1B, 1, 1);
    check_order(PP_GPIPE, 2, 1);
    check_order(PP_1F1B, 4, 1);
    check_order(PP_INTERLEAVED, 2, 2);
    check_order(PP_ZERO_BUBBLE, 2, 1);
    check_order(PP_ZBV, 2, 2);
    cr_assert_lt(2 * shapes.by.count, planned, "hardly any structure is shared: nothing was compared");
}
