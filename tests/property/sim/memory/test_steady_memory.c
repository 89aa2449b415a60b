// Stages of pipelines of which one iteration of the steady state is looked at, compared with the whole of it.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "sim/memory/memory_breakdown.h"
#include "sim/step/stages.h"

static const CutOptions whole = {.base_layers = 1 << 20, .max_micro_steps = 1 << 20};

static MemoryBreakdown breakdown_of(const StepProgram *program, const CutOptions *options) {
    LiveTraces traces = {0};
    MemoryBreakdown breakdown;
    Error error = {0};
    cr_assert_eq(memory_breakdown_cut(program, options, &traces, &breakdown, &error), STATUS_OK, "%s", error.message);
    live_traces_free(&traces);
    return breakdown;
}

static void check_stages(const char *target_name, const char *mesh, int micro_steps, const char *schedule) {
    char words[PLAN_TEXT_BYTES];
    snprintf(
        words, sizeof words,
        "%s seq=128 mb=2 ga=%d zero=%d reshard=always recompute=none cp_rotate=ring precision=bf16 attention=flash "
        "fused=eager pp_schedule=%s",
        mesh, micro_steps, strcmp(target_name, "torchtitan") == 0 ? 3 : 1, schedule);
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    TrainPlan plan;
    StepPrograms programs;
    const Target *target = NULL;
    cr_assert_eq(target_find(target_name, &target, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(model_find("tiny", &arena, &model, &error), STATUS_OK, "%s", error.message);
    model.layers = 16;
    cr_assert_eq(plan_parse(words, &plan, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(step_lower_stages(&model, &plan, target, &arena, &programs, &error), STATUS_OK, "%s", error.message);
    for (int stage = 0; stage < programs.count; stage++) {
        const MemoryBreakdown some = breakdown_of(&programs.of[stage], &memory_breakdown_cut_options);
        const MemoryBreakdown all = breakdown_of(&programs.of[stage], &whole);
        cr_expect_eq(some.peak_bytes, all.peak_bytes, "%s, stage %d: %.0f and %.0f", words, stage, some.peak_bytes,
                     all.peak_bytes);
        cr_expect_eq(some.activations, all.activations, "%s, stage %d", words, stage);
        cr_expect_eq(some.gathered_parameters, all.gathered_parameters, "%s, stage %d", words, stage);
        cr_expect_str_eq(some.peak_phase, all.peak_phase, "%s, stage %d", words, stage);
        cr_expect_str_eq(some.top_name, all.top_name, "%s, stage %d", words, stage);
    }
    arena_free(&arena);
}

Test(steady_memory, one_iteration_of_the_steady_state_holds_what_all_of_them_do) {
    static const char *const schedules[] = {
        "1f1b", "interleaved virtual_stages=2", "interleaved virtual_stages=4", "zero-bubble", "zbv", "dualpipev",
    };
    static const int micro_steps[] = {8, 12, 15, 40};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        for (size_t k = 0; k < sizeof micro_steps / sizeof *micro_steps; k++) {
            check_stages("ndtune", "pp=4,dp_shard=2", micro_steps[k], schedules[i]);
        }
    }
    check_stages("megatron", "pp=4,tp=2", 24, "interleaved virtual_stages=2 pp_group=6");
    check_stages("torchtitan", "pp=4,dp_shard=2", 10, "interleaved virtual_stages=2");
}
