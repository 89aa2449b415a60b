// Cutting loops: what stays, what is renumbered, what prevents it.

#include <criterion/criterion.h>

#include "sim/memory/program_cut.h"
#include "tests/unit/sim/memory/examples.h"

static const CutOptions few = {.reach_factor = 1, .base_layers = 5, .max_micro_steps = 2};

Test(program_cut, loops_and_slots_lose_the_same_layers) {
    Arena arena = {0};
    ProgramCut cut;
    ProgramBuilder builder = builder_begin(&arena, 40);
    const StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = 40, .micro_batches = 16});
    program_cut(program, &few, &arena, &cut);
    cr_assert_eq(cut.removed_layers, 34);  // 1 + 5 stay; 34 is a multiple of the two rotating slots
    cr_assert_eq(cut.program.layers, 6);
    cr_assert_eq(cut.program.buffers[example_buffer(program, "x")].slots, 7);
    cr_assert_eq(cut.program.buffers[example_buffer(program, "gathered")].slots, 2);
    cr_assert_eq(program->buffers[example_buffer(program, "x")].slots, 41, "the original is untouched");
    // embed + 6 forward + loss + 6 backward, gathers: first, 5, last, 5, in each of 2 micro-batches
    cr_assert_eq(step_instance_count(&cut.program), 2 * (1 + 6 + 1 + 6 + 1 + 5 + 1 + 5));
    arena_free(&arena);
}

Test(program_cut, rotating_slots_keep_their_place_from_the_end) {
    for (int layers = 20; layers < 24; layers++) {
        Arena arena = {0};
        ProgramCut cut;
        ProgramBuilder builder = builder_begin(&arena, layers);
        program_cut(example_prefetch(&builder, &(PrefetchOptions){.layers = layers, .micro_batches = 1}), &few, &arena,
                    &cut);
        cr_assert_gt(cut.removed_layers, 0);
        cr_assert_eq(cut.removed_layers % 2, 0);
        arena_free(&arena);
    }
}

Test(program_cut, a_task_of_the_first_layer_only_stays_one) {
    Arena arena = {0};
    ProgramCut cut;
    ProgramBuilder builder = builder_begin(&arena, 40);
    const int16_t lane = builder_lane(&builder, "compute", -1);
    const int32_t x = builder_buffer(&builder, "x", ROLE_ACTIVATION, 40, 256);
    builder_loop(&builder, SEGMENT_LAYERS, "forward", 0, 40, 1);
    builder_task(&builder, "first", TASK_ZERO, lane, PHASE_FORWARD)->layer_guard = 39;
    builder_touch_layer(&builder, ACCESS_WRITE, x, 0);
    builder_task(&builder, "others", TASK_ZERO, lane, PHASE_FORWARD)->layer_guard = -1;
    builder_touch_layer(&builder, ACCESS_WRITE, x, 0);
    builder_end(&builder);
    program_cut(builder_program(&builder), &few, &arena, &cut);
    cr_assert_gt(cut.removed_layers, 0);
    cr_assert_eq(step_instance_count(&cut.program), cut.program.layers);
    arena_free(&arena);
}

Test(program_cut, short_programs_stay_whole) {
    Arena arena = {0};
    ProgramCut cut;
    ProgramBuilder builder = builder_begin(&arena, 6);
    const StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = 6, .micro_batches = 2});
    program_cut(program, &few, &arena, &cut);
    cr_assert_eq(cut.removed_layers, 0);
    cr_assert_eq(step_instance_count(&cut.program), step_instance_count(program));
    arena_free(&arena);
}

Test(program_cut, a_loop_that_ends_amid_the_model_keeps_it_whole) {
    Arena arena = {0};
    ProgramCut cut;
    ProgramBuilder builder = builder_begin(&arena, 40);
    const int16_t lane = builder_lane(&builder, "compute", -1);
    const int32_t x = builder_buffer(&builder, "x", ROLE_ACTIVATION, 40, 256);
    builder_loop(&builder, SEGMENT_LAYERS, "first half", 0, 20, 1);
    builder_task(&builder, "forward", TASK_ZERO, lane, PHASE_FORWARD);
    builder_touch_layer(&builder, ACCESS_WRITE, x, 0);
    builder_end(&builder);
    program_cut(builder_program(&builder), &few, &arena, &cut);
    cr_assert_eq(cut.removed_layers, 0);
    arena_free(&arena);
}
