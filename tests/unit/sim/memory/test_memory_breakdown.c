// Live bytes of a framework, its peak and its terms.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/memory/memory.h"
#include "sim/memory/memory_breakdown.h"
#include "tests/unit/sim/memory/examples.h"

static const CutOptions whole = {.reach_factor = 0, .base_layers = 1 << 20, .max_micro_steps = 1 << 20};
static const double slot = EXAMPLE_SLOT_BYTES;

static MemoryBreakdown breakdown_of(const StepProgram *program, Arena *arena) {
    Error error = {0};
    MemoryBreakdown breakdown;
    cr_assert_eq(memory_breakdown(program, arena, &breakdown, &error), STATUS_OK, "%s", error.message);
    return breakdown;
}

static double sum_of_terms(const MemoryBreakdown *b) {
    return b->parameters + b->gradients + b->optimizer + b->activations + b->logits + b->gathered_parameters +
           b->communication + b->runtime;
}

Test(memory_breakdown, a_chain_holds_its_input_and_two_temporaries) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 1);
    const MemoryBreakdown breakdown = breakdown_of(example_chain(&builder, 9), &arena);
    cr_assert_eq(breakdown.peak_bytes, 3 * slot);
    cr_assert_eq(breakdown.parameters, slot);
    cr_assert_eq(breakdown.activations, 2 * slot);
    cr_assert_str_eq(breakdown.peak_phase, "forward");
    arena_free(&arena);
}

Test(memory_breakdown, saved_activations_of_all_layers_count) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 40);
    StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = 40, .micro_batches = 3});
    const MemoryBreakdown breakdown = breakdown_of(program, &arena);
    // In loss: 41 x, dx (2 slots), the gathered last layer. In the first backward: 40 x, dx, two gathered layers.
    cr_assert_eq(breakdown.parameters, 40 * slot);
    cr_assert_eq(breakdown.peak_bytes, 84 * slot);
    cr_assert_eq(breakdown.activations + breakdown.gathered_parameters, 44 * slot);
    cr_assert_str_eq(breakdown.top_name, "x");
    arena_free(&arena);
}

Test(memory_breakdown, cut_loops_give_exactly_the_whole_programs_terms) {
    for (int layers = 1; layers <= 60; layers += layers < 24 ? 1 : 7) {
        Arena arena = {0};
        Error error = {0};
        ProgramBuilder builder = builder_begin(&arena, layers);
        StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = layers, .micro_batches = 6});
        const MemoryBreakdown cut = breakdown_of(program, &arena);
        MemoryBreakdown all;
        LiveTraces traces = {0};
        cr_assert_eq(memory_breakdown_cut(program, &whole, &traces, &all, &error), STATUS_OK);
        cr_assert_eq(cut.peak_bytes, all.peak_bytes, "%d layers: %.0f and %.0f", layers, cut.peak_bytes,
                     all.peak_bytes);
        cr_assert_eq(cut.activations, all.activations, "%d layers", layers);
        cr_assert_str_eq(cut.peak_phase, all.peak_phase);
        live_traces_free(&traces);
        arena_free(&arena);
    }
}

Test(memory_breakdown, the_peak_is_the_highest_live_moment) {
    Arena arena = {0};
    Error error = {0};
    LiveTraces traces = {0};
    const LiveTrace *who;
    ProgramBuilder builder = builder_begin(&arena, 30);
    StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = 30, .micro_batches = 2});
    cr_assert_eq(live_traces_find(&traces, program, &memory_breakdown_cut_options, &who, &error), STATUS_OK);
    const LiveMoments moments = memory_moments_of(program, who, &arena);
    double highest = 0;
    for (int32_t i = 0; i < moments.count; i++) {
        highest = moments.rows[i].bytes > highest ? moments.rows[i].bytes : highest;
    }
    cr_assert_eq(highest, breakdown_of(program, &arena).peak_bytes);
    live_traces_free(&traces);
    arena_free(&arena);
}

Test(memory_breakdown, terms_sum_to_the_peak) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 12);
    const MemoryBreakdown breakdown =
        breakdown_of(example_prefetch(&builder, &(PrefetchOptions){.layers = 12, .micro_batches = 2}), &arena);
    cr_assert_eq(sum_of_terms(&breakdown), breakdown.peak_bytes);
    arena_free(&arena);
}

Test(memory_breakdown, reserved_adds_slack_context_and_one_buffer_per_communicator) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 12);
    StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = 12, .micro_batches = 2});
    Target target = *program->target;
    target.runtime.allocator_slack = 0.5;
    target.runtime.context_bytes = 1000;
    target.runtime.communicator_bytes = 100;
    program->target = &target;
    const double peak = breakdown_of(program, &arena).peak_bytes;
    cr_assert_eq(breakdown_of(program, &arena).reserved_bytes, 1.5 * peak + 1000, "a group of one has no communicator");
    program->groups[0].size = 8;
    cr_assert_eq(breakdown_of(program, &arena).reserved_bytes, 1.5 * peak + 1000 + 100);
    arena_free(&arena);
}

// Of the context, so that what is reserved is the same.
Test(memory_breakdown, workspaces_of_libraries_are_alive) {
    Arena arena = {0};
    ProgramBuilder builder = builder_begin(&arena, 12);
    StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = 12, .micro_batches = 2});
    Target target = *program->target;
    target.runtime.context_bytes = 1000;
    program->target = &target;
    const MemoryBreakdown none = breakdown_of(program, &arena);
    target.runtime.blas_workspace_bytes = 100;
    target.runtime.engine_workspace_bytes = 30;
    const MemoryBreakdown some = breakdown_of(program, &arena);
    cr_assert_eq(some.peak_bytes, none.peak_bytes + 230, "two handles of cuBLAS");
    cr_assert_eq(some.runtime, none.runtime + 230);
    cr_assert_eq(some.allocator_bytes, none.allocator_bytes + 230);
    cr_assert_eq(some.reserved_bytes, none.reserved_bytes);
    arena_free(&arena);
}

Test(memory_breakdown, the_executors_peak_is_the_planners_arena) {
    Arena arena = {0};
    Error error = {0};
    ProgramBuilder builder = builder_begin(&arena, 12);
    StepProgram *program = example_prefetch(&builder, &(PrefetchOptions){.layers = 12, .micro_batches = 2});
    Target target = *program->target;
    target.name = "ndtune";
    program->target = &target;
    MemoryPlan plan;
    cr_assert_eq(memory_plan(program, &arena, &plan, &error), STATUS_OK);
    const MemoryBreakdown breakdown = breakdown_of(program, &arena);
    cr_assert_eq(breakdown.peak_bytes, (double)plan.arena_bytes);
    cr_assert_eq(sum_of_terms(&breakdown), breakdown.peak_bytes);
    cr_assert_geq(breakdown.runtime, 0);
    arena_free(&arena);
}

Test(memory_breakdown, the_phase_is_that_of_the_peak) {
    const struct {
        Phase phase;
        const char *name;
    } cases[] = {{PHASE_FORWARD, "forward"},   {PHASE_RECOMPUTE, "backward"}, {PHASE_LOSS, "loss"},
                 {PHASE_BACKWARD, "backward"}, {PHASE_REDUCE, "backward"},    {PHASE_OPTIMIZER, "optimizer"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena arena = {0};
        ProgramBuilder builder = builder_begin(&arena, 1);
        const int16_t lane = builder_lane(&builder, "compute", -1);
        const int32_t small = builder_buffer(&builder, "small", ROLE_ACTIVATION, 1, 256);
        const int32_t large = builder_buffer(&builder, "large", ROLE_LOGITS, 1, 4096);
        builder_task(&builder, "small", TASK_ZERO, lane, PHASE_FORWARD);
        builder_touch(&builder, ACCESS_WRITE, small);
        builder_task(&builder, "large", TASK_ZERO, lane, cases[i].phase);
        builder_touch(&builder, ACCESS_WRITE, large);
        const MemoryBreakdown breakdown = breakdown_of(builder_program(&builder), &arena);
        cr_assert_str_eq(breakdown.peak_phase, cases[i].name);
        cr_assert_eq(breakdown.peak_bytes, 4096);
        cr_assert_str_eq(breakdown.top_name, "large");
        cr_assert_eq(breakdown.top_bytes, 4096);
        arena_free(&arena);
    }
}

// The second stage holds more: its breakdown is the answer, in whatever order the stages are given.
Test(memory_breakdown, the_worst_stage_decides) {
    Arena arena = {0};
    ProgramBuilder small = builder_begin(&arena, 1), large = builder_begin(&arena, 40);
    StepProgram stages[2] = {
        *example_chain(&small, 9),
        *example_prefetch(&large, &(PrefetchOptions){.layers = 40, .micro_batches = 3}),
    };
    stages[1].stage = 1;
    const MemoryBreakdown alone[2] = {breakdown_of(&stages[0], &arena), breakdown_of(&stages[1], &arena)};
    cr_assert_gt(alone[1].reserved_bytes, alone[0].reserved_bytes);
    for (int turn = 0; turn < 2; turn++) {
        LiveTraces traces = {0};
        MemoryBreakdown worst;
        Error error = {0};
        const StepPrograms programs = {.of = stages, .count = 2};
        cr_assert_eq(memory_breakdown_stages(&programs, 0, &traces, &arena, &worst, &error), STATUS_OK, "%s",
                     error.message);
        cr_assert_eq(worst.reserved_bytes, alone[1].reserved_bytes);
        cr_assert_eq(worst.peak_bytes, alone[1].peak_bytes);
        cr_assert_str_eq(worst.top_name, alone[1].top_name);
        live_traces_free(&traces);
        const StepProgram first = stages[0];
        stages[0] = stages[1];
        stages[1] = first;
    }
    arena_free(&arena);
}
