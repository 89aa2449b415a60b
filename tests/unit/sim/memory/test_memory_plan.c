// Offsets: which buffers share memory, and which must not.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/memory/memory.h"
#include "tests/support/hazard_check.h"
#include "tests/unit/sim/memory/examples.h"

static MemoryPlan plan_of(const StepProgram *program, Arena *arena) {
    Error error = {0};
    MemoryPlan plan;
    cr_assert_eq(memory_plan(program, arena, &plan, &error), STATUS_OK, "%s", error.message);
    HazardReport report;
    cr_assert_eq(hazard_check(program, &plan, arena, &report, &error), STATUS_OK, "%s", error.message);
    return plan;
}

Test(memory_plan, a_chain_of_temporaries_needs_two) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    const MemoryPlan plan = plan_of(example_chain(&builder, 9), &arena);
    // input and loss stay, of t0 .. t8 two are alive at a time
    cr_assert_eq(plan.persistent_bytes, EXAMPLE_SLOT_BYTES + STEP_ALIGN_BYTES);
    cr_assert_eq(plan.arena_bytes, plan.persistent_bytes + 2 * EXAMPLE_SLOT_BYTES);
    arena_free(&arena);
}

Test(memory_plan, persistent_and_host_visible_buffers_share_with_nobody) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    StepProgram *program = example_chain(&builder, 9);
    const MemoryPlan plan = plan_of(program, &arena);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const bool kept = program->buffers[i].persistent || i == program->loss_buffer;
        cr_assert_eq(plan.offset_bytes[i] < plan.persistent_bytes, kept, "%s", program->buffers[i].name);
    }
    arena_free(&arena);
}

Test(memory_plan, offsets_are_aligned_and_inside_the_arena) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 5);
    StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = 5, .micro_batches = 2});
    const MemoryPlan plan = plan_of(program, &arena);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        cr_assert_eq(plan.offset_bytes[i] % STEP_ALIGN_BYTES, 0);
        cr_assert_leq(plan.offset_bytes[i] + program->buffers[i].slots * program->buffers[i].slot_bytes,
                      plan.arena_bytes);
    }
    arena_free(&arena);
}

// Two temporaries, one after the other in issue order but on lanes that nothing orders.
static StepProgram *two_lanes(ProgramBuilder *builder, bool ordered) {
    const int16_t lanes[2] = {builder_lane(builder, "a", -1), builder_lane(builder, "b", -1)};
    const int32_t first = builder_buffer(builder, "first", ROLE_ACTIVATION, 1, 512);
    const int32_t second = builder_buffer(builder, "second", ROLE_ACTIVATION, 1, 512);
    const int32_t event = builder_event(builder, first, lanes[0], false);
    const int32_t buffers[2] = {first, second};
    for (int i = 0; i < 2; i++) {
        builder_task(builder, "write", TASK_ZERO, lanes[i], PHASE_FORWARD);
        builder_touch(builder, ACCESS_WRITE, buffers[i]);
        if (i == 1 && ordered) {
            builder_wait(builder, event, 0, 0);
        }
        builder_task(builder, "read", TASK_ADD, lanes[i], PHASE_FORWARD);
        builder_touch(builder, ACCESS_READ, buffers[i]);
        if (i == 0) {
            builder_record(builder, event, 0, 0);
        }
    }
    return builder_program(builder);
}

Test(memory_plan, buffers_on_unordered_lanes_do_not_share) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    cr_assert_eq(plan_of(two_lanes(&builder, false), &arena).arena_bytes, 1024);
    arena_free(&arena);
}

Test(memory_plan, an_event_lets_them_share) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    cr_assert_eq(plan_of(two_lanes(&builder, true), &arena).arena_bytes, 512);
    arena_free(&arena);
}

// b's write in micro-batch 1 must not meet a's read in micro-batch 0 on the other lane.
Test(memory_plan, the_next_micro_batch_counts) {
    for (int ordered = 0; ordered < 2; ordered++) {
        Arena arena = {0};
        ProgramBuilder builder = builder_begin(&arena, 1);
        const int16_t lanes[2] = {builder_lane(&builder, "a", -1), builder_lane(&builder, "b", -1)};
        const int32_t a = builder_buffer(&builder, "a", ROLE_ACTIVATION, 1, 512);
        const int32_t b = builder_buffer(&builder, "b", ROLE_ACTIVATION, 1, 512);
        const int32_t written = builder_event(&builder, a, lanes[0], true);
        const int32_t read = builder_event(&builder, a, lanes[1], false);
        builder_loop(&builder, SEGMENT_MICRO_STEPS, "micro-batches", 0, 8, 1);
        builder_task(&builder, "write and read b", TASK_ZERO, lanes[0], PHASE_FORWARD);
        builder_touch(&builder, ACCESS_WRITE, b);
        if (ordered) {
            builder_wait(&builder, read, 0, 0);
        }
        builder_task(&builder, "write a", TASK_ZERO, lanes[0], PHASE_FORWARD);
        builder_touch(&builder, ACCESS_WRITE, a);
        builder_record(&builder, written, 0, 0);
        builder_wait(&builder, read, 0, 0);
        builder_task(&builder, "read a", TASK_ADD, lanes[1], PHASE_FORWARD);
        builder_touch(&builder, ACCESS_READ, a);
        builder_wait(&builder, written, 0, 0);
        builder_record(&builder, read, 0, 0);
        builder_end(&builder);
        cr_assert_eq(plan_of(builder_program(&builder), &arena).arena_bytes, ordered ? 512 : 1024);
        arena_free(&arena);
    }
}

// A part written later must not end the life of a part written earlier.
Test(memory_plan, a_slot_filled_in_parts_lives_from_the_first_part) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    const int16_t lane = builder_lane(&builder, "compute", -1);
    const int32_t parts = builder_buffer(&builder, "parts", ROLE_ACTIVATION, 1, 512);
    const int32_t other = builder_buffer(&builder, "other", ROLE_ACTIVATION, 1, 512);
    for (int i = 0; i < 2; i++) {
        builder_task(&builder, "part", TASK_ZERO, lane, PHASE_FORWARD);
        builder_touch_part(&builder, ACCESS_WRITE,
                           (BufferRef){.buffer = parts, .rank_group = -1, .offset_bytes = 256 * i, .bytes = 256});
        builder_task(&builder, "other", TASK_ZERO, lane, PHASE_FORWARD);
        builder_touch(&builder, ACCESS_WRITE, other);
    }
    builder_task(&builder, "use", TASK_ADD, lane, PHASE_FORWARD);
    builder_touch(&builder, ACCESS_READ, parts);
    cr_assert_eq(plan_of(builder_program(&builder), &arena).arena_bytes, 1024);
    arena_free(&arena);
}

Test(memory_plan, a_best_fit_hole_is_used) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    const int16_t lane = builder_lane(&builder, "compute", -1);
    const char *const names[] = {"big", "small", "tiny"};
    const int64_t bytes[] = {2048, 1024, 512};
    int32_t buffers[3];
    for (int i = 0; i < 3; i++) {
        buffers[i] = builder_buffer(&builder, names[i], ROLE_ACTIVATION, 1, bytes[i]);
    }
    const int pairs[][2] = {{0, 2}, {1, 2}};  // big with tiny, then small with tiny: small fits where big was
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++) {
            builder_task(&builder, "make", TASK_ZERO, lane, PHASE_FORWARD);
            builder_touch(&builder, ACCESS_WRITE, buffers[pairs[i][k]]);
        }
        builder_task(&builder, "use", TASK_ADD, lane, PHASE_FORWARD);
        builder_touch(&builder, ACCESS_READ, buffers[pairs[i][0]]);
        builder_touch(&builder, ACCESS_READ, buffers[pairs[i][1]]);
    }
    cr_assert_eq(plan_of(builder_program(&builder), &arena).arena_bytes, 2048 + 512);
    arena_free(&arena);
}

Test(memory_plan, the_same_program_gives_the_same_plan) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 7);
    StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = 7, .micro_batches = 4});
    const MemoryPlan first = plan_of(program, &arena);
    const MemoryPlan second = plan_of(program, &arena);
    cr_assert_eq(memcmp(first.offset_bytes, second.offset_bytes, (size_t)program->buffer_count * sizeof(int64_t)), 0);
    arena_free(&arena);
}

Test(memory_plan, layers_and_micro_batches_beyond_a_few_change_slots_only) {
    for (int layers = 1; layers <= 40; layers += layers < 12 ? 1 : 9) {
        Arena arena = {0};
        ProgramBuilder builder = builder_begin(&arena, layers);
        StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = layers, .micro_batches = 5});
        const MemoryPlan plan = plan_of(program, &arena);  // proves the plan on the whole program
        // Backward's first layer holds x of all layers, dx and a gathered slot at least; all buffers are x and one, two
        // gathered, dx.
        const int64_t shared_bytes = plan.arena_bytes - plan.persistent_bytes;
        cr_assert_geq(shared_bytes, (layers + 3) * (int64_t)EXAMPLE_SLOT_BYTES);
        cr_assert_leq(shared_bytes, (layers + 1 + 2 + 2) * (int64_t)EXAMPLE_SLOT_BYTES);
        arena_free(&arena);
    }
}

// Backward frees the activation of layer l + 1 before it writes the gradient of layer l: the gradients fit into one
// slot more.
Test(memory_plan, gradients_of_earlier_layers_take_the_place_of_activations_of_later_ones) {
    for (int layers = 2; layers <= 40; layers += 19) {
        Arena arena = {0};
        ProgramBuilder builder = builder_begin(&arena, layers);
        const int16_t lane = builder_lane(&builder, "compute", -1);
        const int32_t act = builder_buffer(&builder, "act", ROLE_ACTIVATION, layers, 1024);
        const int32_t grad = builder_buffer(&builder, "grad", ROLE_GRADIENT, layers, 1024);
        builder_loop(&builder, SEGMENT_LAYERS, "forward", 0, layers, 1);
        builder_task(&builder, "forward", TASK_ZERO, lane, PHASE_FORWARD);
        builder_touch_layer(&builder, ACCESS_WRITE, act, 0);
        builder_end(&builder);
        builder_loop(&builder, SEGMENT_LAYERS, "backward", layers - 1, layers, -1);
        builder_task(&builder, "backward", TASK_ADD, lane, PHASE_BACKWARD);
        builder_touch_layer(&builder, ACCESS_READ, act, 0);
        builder_touch_layer(&builder, ACCESS_WRITE, grad, 0);
        builder_end(&builder);
        builder_loop(&builder, SEGMENT_LAYERS, "update", 0, layers, 1);
        builder_task(&builder, "update", TASK_ADD, lane, PHASE_OPTIMIZER);
        builder_touch_layer(&builder, ACCESS_READ, grad, 0);
        builder_end(&builder);
        cr_assert_eq(plan_of(builder_program(&builder), &arena).arena_bytes, (layers + 1) * 1024, "%d layers", layers);
        arena_free(&arena);
    }
}

Test(memory_plan, an_access_outside_its_slot_is_refused_in_words) {
    Arena arena = {0};
    Error error = {0};
    MemoryPlan plan;
    ProgramBuilder builder = builder_begin(&arena, 1);
    const int16_t lane = builder_lane(&builder, "compute", -1);
    const int32_t buffer = builder_buffer(&builder, "short", ROLE_ACTIVATION, 1, 256);
    builder_task(&builder, "long", TASK_ZERO, lane, PHASE_FORWARD);
    builder_touch_part(&builder, ACCESS_WRITE, (BufferRef){.buffer = buffer, .rank_group = -1, .bytes = 512});
    cr_assert_eq(memory_plan(builder_program(&builder), &arena, &plan, &error), STATUS_INTERNAL);
    cr_assert(strstr(error.message, "memory plan") && strstr(error.message, "'short'"), "%s", error.message);
    arena_free(&arena);
}
