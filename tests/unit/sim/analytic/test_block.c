// Delays of a stretch of compute against hand-computed cases; seconds.

#include "sim/analytic/block.h"

#include <criterion/criterion.h>
#include <math.h>

#include "tests/support/program_builder.h"

// gemm 5, tp collective 2 after it, gemm 1 overlapping it, gemm 3 after the collective. Alone: 5 + 2 + 3 = 10, of which
// 1 of the collective's 2 is hidden. Host 4 per task: issued at 4, 8, 12, 16; the last ends at 16 + 3 = 19, later than
// the chain from the first (4 + 10 = 14).
typedef struct Stretch {
    Arena arena;
    StepProgram *program;
    TaskCost costs[4];
    int32_t tasks[4];
    BlockTasks block;
} Stretch;

static void make(Stretch *stretch, bool waits_for_weights) {
    *stretch = (Stretch){0};
    ProgramBuilder builder = builder_begin(&stretch->arena, 1);
#define LANE_NAME(symbol, name, communicator) #name,
    static const char *const lanes[LANE_COUNT] = {LANE_LIST(LANE_NAME)};
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        builder_lane(&builder, lanes[lane], lane - 1);
    }
    const int16_t tp = builder_group(&builder, "tp", AXIS_BIT(AXIS_TP), 2);
    const int32_t part =
        builder_event(&builder, builder_buffer(&builder, "part", ROLE_ACTIVATION, 1, 256), LANE_COMPUTE, true);
    const int32_t sum =
        builder_event(&builder, builder_buffer(&builder, "sum", ROLE_ACTIVATION, 1, 256), LANE_TP, true);
    const int32_t weights = builder_buffer(&builder, "weights", ROLE_GATHERED, 1, 256);
    const int32_t gathered = builder_event(&builder, weights, LANE_AG, true);
    builder_task(&builder, "first", TASK_GEMM, LANE_COMPUTE, PHASE_FORWARD);
    builder_record(&builder, part, 0, 0);
    builder_task(&builder, "sum", TASK_ALL_REDUCE, LANE_TP, PHASE_FORWARD)->group = tp;
    builder_wait(&builder, part, 0, 0);
    builder_record(&builder, sum, 0, 0);
    builder_task(&builder, "beside", TASK_GEMM, LANE_COMPUTE, PHASE_FORWARD);
    builder_touch(&builder, ACCESS_READ, weights);
    if (waits_for_weights) {
        builder_wait(&builder, gathered, 0, 0);
    }
    builder_task(&builder, "last", TASK_GEMM, LANE_COMPUTE, PHASE_FORWARD);
    builder_wait(&builder, sum, 0, 0);
    stretch->program = builder_program(&builder);
    static const double seconds[4] = {5, 2, 1, 3};
    for (int i = 0; i < 4; i++) {
        stretch->costs[i] = (TaskCost){.seconds = seconds[i], .host_s = 4};
        stretch->tasks[i] = i;
    }
    int32_t *first_slot = ARENA_ARRAY(&stretch->arena, int32_t, stretch->program->event_count + 1);
    for (int32_t i = 0; i <= stretch->program->event_count; i++) {
        first_slot[i] = i;
    }
    stretch->block = (BlockTasks){.program = stretch->program,
                                  .run = {stretch->tasks, 4, 0},
                                  .numbers = ARENA_ARRAY(&stretch->arena, SlotNumber, stretch->program->event_count),
                                  .stamp = 1,
                                  .first_slot = first_slot};
    // ARENA copies of what the builder holds stay valid: the program lives in the arena, the builder's struct does
    // not.
    StepProgram *program = ARENA_NEW(&stretch->arena, StepProgram);
    *program = *stretch->program;
    stretch->program = program;
    stretch->block.program = program;
}

Test(block, the_longest_path_from_each_input_is_its_delay) {
    static Stretch stretch;
    make(&stretch, false);
    const BlockPattern pattern = block_compile(&stretch.block, &stretch.arena);
    const BlockCode code = block_price(&pattern, stretch.program, stretch.costs, &stretch.arena);
    const Block block = block_measure(&code, &stretch.arena);
    cr_assert_float_eq(block.delay_s[0][BLOCK_COMPUTE], 10, 1e-12);
    cr_assert_float_eq(block.delay_s[0][BLOCK_HOST], 19, 1e-12);
    cr_assert_lt(block.delay_s[0][BLOCK_WEIGHTS], block_never_s / 2);
    cr_assert_float_eq(block.host_s, 16, 1e-12);
    cr_assert_float_eq(block.busy_s, 9, 1e-12);
    cr_assert_float_eq(block.exposed_s[AXIS_TP], 1, 1e-12);
    arena_free(&stretch.arena);
}

// "beside" (1) and "last" (3) come after the weights: 4; the weights are read until 1 after they arrive, and until 6
// after the start.
Test(block, weights_are_an_input_and_an_output) {
    static Stretch stretch;
    make(&stretch, true);
    const BlockPattern pattern = block_compile(&stretch.block, &stretch.arena);
    const BlockCode code = block_price(&pattern, stretch.program, stretch.costs, &stretch.arena);
    const Block block = block_measure(&code, &stretch.arena);
    cr_assert_float_eq(block.delay_s[0][BLOCK_WEIGHTS], 4, 1e-12);
    cr_assert_float_eq(block.delay_s[1][BLOCK_WEIGHTS], 1, 1e-12);
    cr_assert_float_eq(block.delay_s[1][BLOCK_COMPUTE], 6, 1e-12);
    arena_free(&stretch.arena);
}

// The host goes on when the first product has ended, at 5 after compute was free: the sum, issued at 9, ends at 11, the
// last product, issued at 17, at 20. From the host's own beginning the first ends at 9, so 4 later. Of the device alone
// it stays 10.
Test(block, a_host_that_waits_issues_what_is_left_from_there) {
    static Stretch stretch;
    make(&stretch, false);
    stretch.costs[0].host_stop = HOST_WAITS_FOR_END;
    const BlockPattern pattern = block_compile(&stretch.block, &stretch.arena);
    const BlockCode code = block_price(&pattern, stretch.program, stretch.costs, &stretch.arena);
    const Block block = block_measure(&code, &stretch.arena);
    cr_assert(block.stops_host);
    cr_assert_float_eq(block.delay_s[BLOCK_COMPUTE_FREE][BLOCK_COMPUTE], 20, 1e-12);
    cr_assert_float_eq(block.delay_s[BLOCK_COMPUTE_FREE][BLOCK_HOST], 24, 1e-12);
    cr_assert_float_eq(block.delay_s[BLOCK_ISSUED][BLOCK_COMPUTE], 17, 1e-12);
    cr_assert_float_eq(block.delay_s[BLOCK_ISSUED][BLOCK_HOST], 21, 1e-12);
    cr_assert_float_eq(block.length_s, 20, 1e-12);
    cr_assert_float_eq(block.device_s, 10, 1e-12);
    arena_free(&stretch.arena);
}
