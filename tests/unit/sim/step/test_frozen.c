// Frozen units: nothing of their training remains in a program, and nothing else changes.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/memory/memory.h"
#include "sim/step/lower.h"
#include "tests/support/hazard_check.h"
#include "tests/support/lowered.h"

static StepProgram with_frozen(const StepProgram *plain, uint32_t frozen, Arena *arena) {
    Error error = {0};
    StepProgram program;
    const LoweringChoice choice = {.schedule = schedules[0], .frozen = frozen};
    cr_assert_eq(step_lower_chosen(&plain->model, &plain->plan, plain->target, &choice, arena, &program, &error),
                 STATUS_OK, "%s", error.message);
    return program;
}

// fp32 on two shards: the plain case. One rank in bf16 with masters: weights are not gathered. Late: stage 1 sums whole
// gradients over two micro-steps and gathers weights after the update.
static const LoweredRequest requests[] = {{.mesh = "dp_shard=2"},
                                          {.mesh = "dp_shard=2,tp=2", .bf16 = true, .grad_accum = 2},
                                          {.mesh = "dp_shard=2", .zero = 1, .bf16 = true, .grad_accum = 3},
                                          {.mesh = "dp_replicate=2,dp_shard=2", .target = "accelerate", .bf16 = true},
                                          {.bf16 = true, .tied = true}};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

static int32_t buffer_index(const StepProgram *program, const char *name) {
    int32_t found = -1;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        found = strcmp(program->buffers[i].name, name) == 0 ? i : found;
    }
    return found;
}

static int64_t buffer_bytes(const StepProgram *program, int32_t buffer) {
    return buffer < 0 ? 0 : program->buffers[buffer].slots * program->buffers[buffer].slot_bytes;
}

static int64_t all_bytes(const StepProgram *program) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        bytes += buffer_bytes(program, i);
    }
    return bytes;
}

static int tasks_of_unit(const StepProgram *program, TaskKind kind, int unit) {
    int count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        count += program->tasks[i].kind == kind && program->tasks[i].unit == unit;
    }
    return count;
}

Test(frozen, a_frozen_unit_has_no_gradient_no_moments_no_square_sum_and_no_update) {
    for (int i = 0; i < REQUESTS; i++) {
        Arena arena = {0};
        const StepProgram plain = lowered(&arena, requests[i]);
        for (int u = 0; u < plain.unit_count; u++) {
            const StepProgram frozen = with_frozen(&plain, 1u << u, &arena);
            const Unit *unit = &frozen.units[u];
            cr_assert(plain.units[u].trainable && !unit->trainable);
            cr_assert(plain.units[u].gradient_full >= 0 && plain.units[u].moment1 >= 0);
            cr_assert(unit->gradient_full < 0 && unit->gradient_shard < 0 && unit->moment1 < 0 && unit->moment2 < 0);
            const TaskKind none[] = {TASK_SQUARE_SUM, TASK_ADAMW, TASK_REDUCE_SCATTER, TASK_ALL_REDUCE};
            for (size_t k = 0; k < sizeof none / sizeof none[0]; k++) {
                cr_assert_eq(tasks_of_unit(&frozen, none[k], u), 0, "%d %s %d", i, unit->name, (int)k);
            }
            cr_assert_eq(tasks_of_unit(&plain, TASK_ADAMW, u), 1);
        }
        arena_free(&arena);
    }
}

Test(frozen, units_beside_it_are_trained_as_before) {
    for (int i = 0; i < REQUESTS; i++) {
        Arena arena = {0};
        const StepProgram plain = lowered(&arena, requests[i]);
        const StepProgram frozen = with_frozen(&plain, 1u << UNIT_EMBEDDING, &arena);
        for (int u = 1; u < plain.unit_count; u++) {
            const TaskKind kinds[] = {TASK_SQUARE_SUM, TASK_ADAMW, TASK_REDUCE_SCATTER, TASK_ALL_REDUCE};
            for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
                cr_assert_eq(tasks_of_unit(&frozen, kinds[k], u), tasks_of_unit(&plain, kinds[k], u));
            }
            cr_assert_eq(buffer_bytes(&frozen, frozen.units[u].moment1), buffer_bytes(&plain, plain.units[u].moment1));
        }
        arena_free(&arena);
    }
}

// What goes is what was there for its training; every other buffer has the bytes that it had.
Test(frozen, memory_is_smaller_by_what_training_the_unit_needs) {
    Arena arena = {0};
    const StepProgram plain = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=2", .bf16 = true});
    const StepProgram frozen = with_frozen(&plain, 1u << UNIT_EMBEDDING, &arena);
    const Unit *unit = &plain.units[UNIT_EMBEDDING];
    int64_t trained = 0, persistent = 0;
    for (int32_t i = 0; i < plain.buffer_count; i++) {
        const bool is_its = i == unit->gradient_full || i == unit->gradient_shard || i == unit->moment1 ||
                            i == unit->moment2 || i == unit->master;
        const int32_t same = buffer_index(&frozen, plain.buffers[i].name);
        const bool only_read_by_update = is_its && same < 0;
        cr_assert_eq(buffer_bytes(&frozen, same), only_read_by_update ? 0 : buffer_bytes(&plain, i), "%s",
                     plain.buffers[i].name);
        trained += only_read_by_update ? buffer_bytes(&plain, i) : 0;
        persistent += only_read_by_update && plain.buffers[i].persistent ? buffer_bytes(&plain, i) : 0;
    }
    cr_assert_eq(all_bytes(&plain) - all_bytes(&frozen), trained);
    // two moments and a master in fp32, of a half; the gradient whole and as a shard
    cr_assert_eq(persistent, unit->shard_elements * (4 + 4 + 4));
    cr_assert_eq(trained, persistent + unit->padded_elements * 4 + unit->shard_elements * 4);
    MemoryPlan before, after;
    Error error = {0};
    cr_assert_eq(memory_plan(&plain, &arena, &before, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(memory_plan(&frozen, &arena, &after, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(before.persistent_bytes - after.persistent_bytes, persistent);
    arena_free(&arena);
}

Test(frozen, frozen_layers_keep_nothing_for_weight_gradients) {
    Arena arena = {0};
    const StepProgram plain = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=2"});
    const StepProgram frozen = with_frozen(&plain, 1u << UNIT_LAYER, &arena);
    const int32_t before = buffer_index(&plain, "attention_in"), after = buffer_index(&frozen, "attention_in");
    cr_assert_eq(plain.buffers[before].slots, plain.model.layers);  // the input of q, k and v
    cr_assert_eq(frozen.buffers[after].slots, 1);
    arena_free(&arena);
}

Test(frozen, programs_with_frozen_units_have_no_race) {
    for (int i = 0; i < REQUESTS; i++) {
        Arena arena = {0};
        const StepProgram plain = lowered(&arena, requests[i]);
        for (uint32_t frozen = 1; frozen < 1u << plain.unit_count; frozen++) {
            const StepProgram program = with_frozen(&plain, frozen, &arena);
            Error error = {0};
            MemoryPlan plan;
            cr_assert_eq(memory_plan(&program, &arena, &plan, &error), STATUS_OK, "%s", error.message);
            cr_assert_eq(hazard_check(&program, &plan, &arena, NULL, &error), STATUS_OK, "%s", error.message);
        }
        arena_free(&arena);
    }
}

Test(frozen, nothing_frozen_is_the_ordinary_program) {
    for (int i = 0; i < REQUESTS; i++) {
        Arena arena = {0};
        const StepProgram plain = lowered(&arena, requests[i]), same = with_frozen(&plain, 0, &arena);
        cr_assert_eq(step_template_hash(&plain), step_template_hash(&same));
        arena_free(&arena);
    }
}

Test(frozen, a_frozen_heads_gradient_is_no_part_of_a_fused_loss_that_casts_it) {
    Arena arena = {0};
    const StepProgram plain = lowered(
        &arena, (LoweredRequest){.target = "accelerate@1.14", .mesh = "dp_shard=2", .bf16 = true, .loss = LOSS_FUSED});
    const StepProgram frozen = with_frozen(&plain, 1u << UNIT_HEAD, &arena);
    cr_assert(buffer_named(&plain, "head_part"));
    cr_assert_null(buffer_named(&frozen, "head_part"));
    arena_free(&arena);
}
