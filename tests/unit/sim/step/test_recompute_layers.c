// Recomputing some layers and keeping the rest: which layers are recomputed, and what remains in memory.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/memory/memory_breakdown.h"
#include "tests/support/lowered.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(recompute_layers, .fini = end);

// "1010": for each layer, whether any of it is recomputed.
static const char *again(const StepProgram *program) {
    char *letters = arena_alloc(&arena, (size_t)program->layers + 1);
    memset(letters, '0', (size_t)program->layers);
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        if (program->tasks[instance.task].phase == PHASE_RECOMPUTE) {
            letters[instance.layer] = '1';
        }
    }
    return letters;
}

static LoweredRequest request_of(int layers, int every) {
    return (LoweredRequest){.layers = 6,
                            .target = every > 0 ? "torchtitan@0.2" : "ndtune",
                            .mesh = "dp_shard=2",
                            .grad_accum = 2,
                            .recompute = RECOMPUTE_FULL,
                            .recompute_layers = layers,
                            .recompute_every = every};
}

static double peak_of(LoweredRequest request) {
    const StepProgram program = lowered(&arena, request);
    Arena scratch = {0};
    Error error = {0};
    MemoryBreakdown breakdown;
    cr_assert_eq(memory_breakdown(&program, &scratch, &breakdown, &error), STATUS_OK, "%s", error.message);
    arena_free(&scratch);
    return breakdown.peak_bytes;
}

Test(recompute_layers, the_first_so_many_run_again) {
    const StepProgram program = lowered(&arena, request_of(2, 0));
    cr_assert_str_eq(again(&program), "110000");
}

// Megatron's checkpointed_forward counts the layers of a TransformerBlock, which is a chunk.
Test(recompute_layers, the_first_so_many_of_each_chunk_run_again) {
    LoweredRequest request = request_of(2, 0);
    request.layers = 16;
    request.target = "megatron";
    request.mesh = "pp=2";
    request.grad_accum = 4;
    request.pp_schedule = PP_INTERLEAVED;
    request.virtual_stages = 2;
    const StepProgram program = lowered(&arena, request);
    cr_assert_str_eq(again(&program), "11001100");
}

// _apply_layer_sac of torchtitan 0.2.2 counts from 1 and takes the multiples of n.
Test(recompute_layers, every_second_of_torchtitan_is_the_second_of_two) {
    const StepProgram program = lowered(&arena, request_of(0, 2));
    cr_assert_str_eq(again(&program), "010101");
}

Test(recompute_layers, all_and_none_are_the_programs_without_the_choice) {
    LoweredRequest all = request_of(0, 0), none = all;
    const StepProgram with_all = lowered(&arena, all);
    none.recompute = RECOMPUTE_NONE;
    const StepProgram with_none = lowered(&arena, none);
    cr_assert_str_eq(again(&with_all), "111111");
    cr_assert_str_eq(again(&with_none), "000000");
}

Test(recompute_layers, memory_falls_with_each_layer_that_is_recomputed) {
    LoweredRequest none = request_of(0, 0);
    none.recompute = RECOMPUTE_NONE;
    double before = peak_of(none);
    for (int layers = 1; layers < 6; layers++) {
        const double now = peak_of(request_of(layers, 0));
        cr_expect_leq(now, before, "%d layers", layers);
        before = now;
    }
    cr_expect_leq(peak_of(request_of(0, 0)), before);
    cr_expect_lt(peak_of(request_of(3, 0)), peak_of(none));
}

Test(recompute_layers, children_keep_more_than_their_layer) {
    LoweredRequest children = request_of(0, 0);
    children.recompute_unit = RECOMPUTE_UNIT_CHILDREN;
    cr_assert_gt(peak_of(children), peak_of(request_of(0, 0)));
}
