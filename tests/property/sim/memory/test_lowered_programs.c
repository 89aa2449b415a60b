// Memory of every program that the lowering makes for a range of shapes and choices: no race, every plan proved, the
// arena size between the live bytes and the sum of all buffers, cut loops equivalent to whole ones.

#include <criterion/criterion.h>
#include <stdio.h>

#include "sim/memory/memory.h"
#include "sim/memory/memory_breakdown.h"
#include "tests/property/sim/memory/lowered_sweep.h"
#include "tests/support/hazard_check.h"

static const CutOptions whole = {.reach_factor = 0, .base_layers = 1 << 20, .max_micro_steps = 1 << 20};

typedef struct Tally {
    double worst_ratio;  // arena over live bytes
    char worst_plan[PLAN_TEXT_BYTES];
    LiveTraces traces;  // of all programs
} Tally;

static const char *name_of(const StepProgram *program, char text[PLAN_TEXT_BYTES]) {
    return plan_text(&program->plan, text);
}

static void check_hazards(void *context, const StepProgram *program) {
    (void)context;
    Arena arena = {0};
    Error error = {0};
    MemoryPlan plan;
    char text[PLAN_TEXT_BYTES];
    cr_assert_eq(hazard_check(program, NULL, &arena, NULL, &error), STATUS_OK, "%s %s: %s", program->target->name,
                 name_of(program, text), error.message);
    cr_assert_eq(memory_plan(program, &arena, &plan, &error), STATUS_OK, "%s: %s", name_of(program, text),
                 error.message);
    cr_assert_eq(hazard_check(program, &plan, &arena, NULL, &error), STATUS_OK, "planned: %s %s: %s",
                 program->target->name, name_of(program, text), error.message);
    arena_free(&arena);
}

static void check_bytes(void *context, const StepProgram *program) {
    Tally *tally = context;
    Arena arena = {0};
    Error error = {0};
    MemoryPlan plan;
    MemoryBreakdown cut, all;
    char text[PLAN_TEXT_BYTES];
    cr_assert_eq(memory_plan(program, &arena, &plan, &error), STATUS_OK);
    LiveTraces own = {0};
    cr_assert_eq(memory_breakdown_cut(program, &memory_breakdown_cut_options, &tally->traces, &cut, &error), STATUS_OK);
    cr_assert_eq(memory_breakdown_cut(program, &whole, &own, &all, &error), STATUS_OK);
    live_traces_free(&own);
    cr_assert_eq(cut.peak_bytes, all.peak_bytes, "%s: cut %.0f, whole %.0f", name_of(program, text), cut.peak_bytes,
                 all.peak_bytes);
    cr_assert_eq(cut.activations, all.activations, "%s", name_of(program, text));
    double sum = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        sum += (double)(program->buffers[i].slots * program->buffers[i].slot_bytes);
    }
    cr_assert_geq((double)plan.arena_bytes, all.peak_bytes, "%s", name_of(program, text));
    cr_assert_leq((double)plan.arena_bytes, sum, "%s", name_of(program, text));
    if ((double)plan.arena_bytes > tally->worst_ratio * all.peak_bytes) {
        tally->worst_ratio = (double)plan.arena_bytes / all.peak_bytes;
        name_of(program, tally->worst_plan);
    }
    arena_free(&arena);
}

static const LoweredRange tiny[] = {
    {.model = "tiny", .target = "ndtune", .max_world = 8, .seq = 128, .max_accum = 4},
    {.model = "tiny", .target = "accelerate", .max_world = 8, .seq = 128, .max_accum = 4}};

Test(lowered_programs, tiny_has_no_race_and_every_plan_is_proved) {
    for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++) {
        cr_assert_gt(lowered_sweep(&tiny[i], check_hazards, NULL), 100);
    }
}

Test(lowered_programs, tiny_arena_lies_between_live_bytes_and_all_buffers) {
    for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++) {
        Tally tally = {0};
        const int count = lowered_sweep(&tiny[i], check_bytes, &tally);
        fprintf(stderr, "%s tiny: %d programs, arena / live at most %.3f (%s)\n", tiny[i].target, count,
                tally.worst_ratio, tally.worst_plan);
        live_traces_free(&tally.traces);
    }
}

static const LoweredRange large[] = {
    {.model = "7b", .target = "ndtune", .max_world = 4, .seq = 4096, .max_accum = 2, .precision = DTYPE_BF16},
    {.model = "llama-3-8b",
     .target = "accelerate",
     .max_world = 4,
     .seq = 8192,
     .max_accum = 2,
     .precision = DTYPE_BF16},
    {.model = "llama-3-70b", .target = "ndtune", .max_world = 2, .seq = 8192, .max_accum = 2, .precision = DTYPE_BF16},
    {.model = "7b", .target = "ndtune", .max_world = 2, .seq = 512, .max_accum = 2, .max_layers = 9},
    {.model = "7b", .target = "accelerate", .max_world = 2, .seq = 512, .max_accum = 2, .max_layers = 10},
    {.model = "7b", .target = "ndtune", .max_world = 2, .seq = 512, .max_accum = 3, .max_layers = 13},
    {.model = "7b", .target = "ndtune", .max_world = 2, .seq = 512, .max_accum = 2, .max_layers = 1},
};

Test(lowered_programs, models_of_1_to_80_layers_have_no_race_and_every_plan_is_proved) {
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        cr_assert_gt(lowered_sweep(&large[i], check_hazards, NULL), 30);
    }
}

Test(lowered_programs, models_of_1_to_80_layers_cut_to_the_byte) {
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        Tally tally = {0};
        const int count = lowered_sweep(&large[i], check_bytes, &tally);
        fprintf(stderr, "%s %s: %d programs, arena / live at most %.3f (%s)\n", large[i].target, large[i].model, count,
                tally.worst_ratio, tally.worst_plan);
        live_traces_free(&tally.traces);
    }
}
