// Good programs pass, each planted fault is found and named.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/memory/memory.h"
#include "tests/support/hazard_check.h"
#include "tests/support/sizes.h"
#include "tests/unit/sim/memory/examples.h"

static const PrefetchOptions good = {.layers = 6, .micro_batches = 3};

static Status check(const StepProgram *program, bool planned, Arena *arena, Error *error) {
    MemoryPlan plan;
    if (planned) {
        cr_assert_eq(memory_plan(program, arena, &plan, error), STATUS_OK, "%s", error->message);
    }
    HazardReport report;
    return hazard_check(program, planned ? &plan : NULL, arena, &report, error);
}

static void assert_passes(const StepProgram *program, Arena *arena) {
    Error error = {0};
    cr_assert_eq(check(program, false, arena, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(check(program, true, arena, &error), STATUS_OK, "%s", error.message);
}

static void assert_finds(const StepProgram *program, Arena *arena, const char *const *words) {
    Error error = {0};
    cr_assert_eq(check(program, false, arena, &error), STATUS_INTERNAL);
    for (; *words; words++) {
        cr_assert(strstr(error.message, *words), "'%s' is not in: %s", *words, error.message);
    }
}

Test(hazard_check, a_sequential_chain_passes) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    assert_passes(example_chain(&builder, 5), &arena);
    arena_free(&arena);
}

Test(hazard_check, double_buffered_prefetch_passes) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, good.layers);
    assert_passes(example_prefetch(&builder, &good), &arena);
    arena_free(&arena);
}

Test(hazard_check, a_ring_over_two_buffers_passes) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    assert_passes(example_ring(&builder, 8, false), &arena);
    arena_free(&arena);
}

Test(hazard_check, counts_instances_and_accesses) {
    Arena arena = {0};
    Error error = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    HazardReport report;
    cr_assert_eq(hazard_check(example_chain(&builder, 3), NULL, &arena, &report, &error), STATUS_OK);
    cr_assert_eq(report.instances, 4);
    cr_assert_eq(report.accesses, 8);
    arena_free(&arena);
}

Test(hazard_check, a_dropped_wait_for_data_is_found_with_both_tasks_and_the_place) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, good.layers);
    PrefetchOptions options = good;
    options.drop_ready_wait = true;
    assert_finds(example_prefetch(&builder, &options), &arena,
                 (const char *const[]){"'gather first' (layer 0, micro-step 0, lane ag)",
                                       "'forward' (layer 0, micro-step 0, lane compute)", "'gathered'", "writes",
                                       "reads", NULL});
    arena_free(&arena);
}

Test(hazard_check, a_dropped_wait_for_readers_is_found) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, good.layers);
    PrefetchOptions options = good;
    options.drop_free_wait = true;
    // The gather of layer 2 overwrites slot 0 while layer 0 may still read it.
    assert_finds(example_prefetch(&builder, &options), &arena,
                 (const char *const[]){"'forward' (layer 0, micro-step 0, lane compute), which reads",
                                       "'gather next' (layer 1, micro-step 0, lane ag), which writes", NULL});
    arena_free(&arena);
}

Test(hazard_check, a_wait_on_the_wrong_slot_is_found) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, good.layers);
    PrefetchOptions options = good;
    options.wrong_slot = true;
    assert_finds(example_prefetch(&builder, &options), &arena, (const char *const[]){"'gather", "'gathered'", NULL});
    arena_free(&arena);
}

Test(hazard_check, a_ring_without_the_wait_for_the_previous_reader_is_found) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    assert_finds(example_ring(&builder, 4, true), &arena,
                 (const char *const[]){"'send'", "'attention'", "'ring'", NULL});
    arena_free(&arena);
}

Test(hazard_check, overlapping_offsets_of_live_buffers_are_found) {
    Arena arena = {0};
    Error error = {0};
    ProgramBuilder builder = builder_begin(&arena, good.layers);
    StepProgram *program = example_prefetch(&builder, &good);
    MemoryPlan plan;
    HazardReport report;
    cr_assert_eq(memory_plan(program, &arena, &plan, &error), STATUS_OK);
    plan.offset_bytes[example_buffer(program, "gathered")] = plan.offset_bytes[example_buffer(program, "x")];
    cr_assert_eq(hazard_check(program, &plan, &arena, &report, &error), STATUS_INTERNAL);
    cr_assert(strstr(error.message, "'gathered'") && strstr(error.message, "'x'"), "%s", error.message);
    arena_free(&arena);
}

// All on one lane, so everything is ordered, and still the content is lost.
Test(hazard_check, a_clobbered_content_is_found_where_order_alone_is_right) {
    Arena arena = {0};
    Error error = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    const int16_t lane = builder_lane(&builder, "compute", -1);
    const int32_t kept = builder_buffer(&builder, "kept", ROLE_ACTIVATION, 1, 512);
    const int32_t other = builder_buffer(&builder, "other", ROLE_ACTIVATION, 1, 512);
    builder_task(&builder, "make kept", TASK_ZERO, lane, PHASE_FORWARD);
    builder_touch(&builder, ACCESS_WRITE, kept);
    builder_task(&builder, "make other", TASK_ZERO, lane, PHASE_FORWARD);
    builder_touch(&builder, ACCESS_WRITE, other);
    builder_task(&builder, "read kept", TASK_ADD, lane, PHASE_FORWARD);
    builder_touch(&builder, ACCESS_READ, kept);
    int64_t offsets[2] = {0, 256};
    const MemoryPlan plan = {.offset_bytes = offsets, .arena_bytes = 768};
    cr_assert_eq(hazard_check(builder_program(&builder), &plan, &arena, NULL, &error), STATUS_INTERNAL);
    cr_assert(strstr(error.message, "'read kept'") && strstr(error.message, "after 'make other'") &&
                  strstr(error.message, "bytes 256 to 512"),
              "%s", error.message);
    arena_free(&arena);
}

Test(hazard_check, one_task_with_input_and_output_on_the_same_bytes_is_found) {
    Arena arena = {0};
    Error error = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    StepProgram *program = example_chain(&builder, 2);
    int64_t offsets[] = {0, 1024, 1024, 2048};
    const MemoryPlan plan = {.offset_bytes = offsets, .arena_bytes = 2304};
    cr_assert_eq(hazard_check(program, &plan, &arena, NULL, &error), STATUS_INTERNAL);
    cr_assert(strstr(error.message, "'make t1'") && strstr(error.message, "'t0' and 't1'"), "%s", error.message);
    arena_free(&arena);
}

Test(hazard_check, reading_what_nobody_wrote_is_found) {
    Arena arena = {0};
    Error error = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    const int16_t lane = builder_lane(&builder, "compute", -1);
    const int32_t buffer = builder_buffer(&builder, "half", ROLE_ACTIVATION, 1, 512);
    builder_task(&builder, "fill", TASK_ZERO, lane, PHASE_FORWARD);
    builder_touch_part(&builder, ACCESS_WRITE, (BufferRef){.buffer = buffer, .rank_group = -1, .bytes = 256});
    builder_task(&builder, "use", TASK_ADD, lane, PHASE_FORWARD);
    builder_touch(&builder, ACCESS_READ, buffer);
    cr_assert_eq(hazard_check(builder_program(&builder), NULL, &arena, NULL, &error), STATUS_INTERNAL);
    cr_assert(strstr(error.message, "bytes 256 to 512 of 'half'") && strstr(error.message, "nothing has written"), "%s",
              error.message);
    arena_free(&arena);
}

Test(hazard_check, an_access_that_leaves_its_slot_is_found) {
    Arena arena = {0};
    Error error = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    const int16_t lane = builder_lane(&builder, "compute", -1);
    const int32_t buffer = builder_buffer(&builder, "short", ROLE_ACTIVATION, 2, 256);
    builder_task(&builder, "long", TASK_ZERO, lane, PHASE_FORWARD);
    builder_touch_part(&builder, ACCESS_WRITE, (BufferRef){.buffer = buffer, .rank_group = -1, .bytes = 257});
    cr_assert_eq(hazard_check(builder_program(&builder), NULL, &arena, NULL, &error), STATUS_INTERNAL);
    cr_assert(strstr(error.message, "touches 257 bytes") && strstr(error.message, "'short'"), "%s", error.message);
    arena_free(&arena);
}

// The second rank's part is where the first rank's is not.
Test(hazard_check, the_last_rank_is_checked_too) {
    Arena arena = {0};
    Error error = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    const int16_t lane = builder_lane(&builder, "compute", -1);
    const int16_t group = builder_group(&builder, "tp", AXIS_BIT(AXIS_TP), 2);
    const int32_t buffer = builder_buffer(&builder, "whole", ROLE_ACTIVATION, 1, 512);
    builder.program.plan.mesh = (Mesh){.size = SIZES(1, 1, 1, 2)};
    builder_task(&builder, "first half", TASK_ZERO, lane, PHASE_FORWARD);
    builder_touch_part(&builder, ACCESS_WRITE, (BufferRef){.buffer = buffer, .rank_group = -1, .bytes = 256});
    builder_task(&builder, "own half", TASK_ADD, lane, PHASE_FORWARD);
    builder_touch_part(&builder, ACCESS_READ,
                       (BufferRef){.buffer = buffer, .rank_group = group, .rank_stride_bytes = 256, .bytes = 256});
    cr_assert_eq(hazard_check(builder_program(&builder), NULL, &arena, NULL, &error), STATUS_INTERNAL);
    cr_assert(strstr(error.message, "rank 1"), "%s", error.message);
    arena_free(&arena);
}
