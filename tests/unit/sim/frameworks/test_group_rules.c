// Groups of micro-steps that go through the chunks of a stage: which sizes a target takes, and which is its own.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/frameworks/pp_groups.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(group_rules, .fini = end);

static TrainPlan plan_of(int micro_steps, int group) {
    TrainPlan plan = {.mesh = mesh_of_one(),
                      .pp_schedule = PP_INTERLEAVED,
                      .virtual_stages = 2,
                      .grad_accum = micro_steps,
                      .pp_group = group};
    plan.mesh.size[AXIS_PP] = 4;
    return plan;
}

static const Target *target_of(const char *name) {
    const Target *target;
    cr_assert_eq(target_find(name, &target, NULL), STATUS_OK);
    return target;
}

// By hand from forward_backward_pipelining_with_interleaving: 4 <= g <= m, and m mod g is 0 or at least 4.
Test(group_rules, megatrons_own_group_is_the_smallest_that_it_takes) {
    static const int own[] = {
        [4] = 4, [5] = 5, [6] = 6, [7] = 7, [8] = 4, [9] = 5, [10] = 5, [11] = 6, [12] = 4, [13] = 7};
    for (int micro_steps = 4; micro_steps < (int)(sizeof own / sizeof *own); micro_steps++) {
        const TrainPlan plan = plan_of(micro_steps, 0);
        cr_expect_null(target_refuse_group(target_of("megatron"), &plan, &arena), "%d", micro_steps);
        cr_expect_eq(target_pp_group(target_of("megatron"), &plan), own[micro_steps], "%d", micro_steps);
    }
}

static void expect(const char *name, int micro_steps, int group, const char *words) {
    const TrainPlan plan = plan_of(micro_steps, group);
    const char *reason = target_refuse_group(target_of(name), &plan, &arena);
    cr_assert_not_null(reason, "legal, although: %s", words);
    cr_expect(strstr(reason, words), "%s", reason);
}

Test(group_rules, what_megatron_stops_at_is_refused_in_its_words) {
    expect("megatron", 3, 0, "should range in [PP=4, M=3]: use grad_accum 4 or more");
    expect(
        "megatron", 8, 9,
        "should range in [PP=4, M=8], and is 9: use pp_group 4 (--microbatch-group-size-per-virtual-pipeline-stage 4)");
    expect("megatron", 8, 3, "should range in [PP=4, M=8], and is 3: use pp_group 4");
    expect("megatron", 13, 5, "but it is 3: use pp_group 7");
    expect("megatron@bridge-0.6", 9, 4, "but it is 1: use pp_group 5 (model.microbatch_group_size_per_vp_stage 5)");
    expect("megatron@2022", 9, 0, "number of microbatches (9) is not divisible by pipeline-model-parallel-size (4)");
    expect("megatron@0.4", 8, 8, "has groups of pp=4 micro-steps, not 8: use pp_group 0");
}

Test(group_rules, equal_groups_are_all_that_torch_has) {
    expect("torchtitan", 9, 0, "takes micro-steps in 2 equal groups, and grad_accum=9 is no multiple of that");
    expect("torchtitan", 8, 8, "has equal groups of 4 micro-steps here");
    const TrainPlan same = plan_of(8, 4);
    cr_expect_null(target_refuse_group(target_of("torchtitan"), &same, &arena));
}

static void expect_rounds(const char *name, TrainPlan plan, int rounds, const char *words) {
    ModelSpec model;
    Error error;
    const char *reason = NULL;
    cr_assert_eq(model_find("llama-3-8b", &arena, &model, &error), STATUS_OK);
    plan.pp_schedule = PP_1F1B;
    plan.seq = 4096;
    plan.micro_batch = 1;
    plan.pp_rounds = rounds;
    plan_canonical(&plan);
    target_check(target_of(name), &model, &plan, &arena, &reason);
    cr_expect(words ? reason && strstr(reason, words) : !reason, "%s, %d rounds: %s", name, rounds,
              reason ? reason : "legal");
}

Test(group_rules, rounds_divide_the_micro_steps_where_the_target_runs_its_schedule_several_times) {
    TrainPlan plan = plan_of(12, 0);
    expect_rounds("torchtitan", plan, 3, NULL);
    expect_rounds("torchtitan", plan, 5, "grad_accum=12 is no multiple of that: use grad_accum 10 or 15");
    expect_rounds("ndtune", plan, 12, NULL);
    expect_rounds("megatron", plan, 1, NULL);
    expect_rounds("megatron", plan, 2, "pp_rounds=2 does not exist there: use pp_rounds 1");
    expect_rounds("nanotron", plan, 2, "pp_rounds=2 does not exist there: use pp_rounds 1");
    plan.mesh.size[AXIS_DP_SHARD] = 2;
    plan.zero = 2;
    expect_rounds("ndtune", plan, 2, NULL);
    plan.grad_sync = GRAD_SYNC_EACH;
    expect_rounds("ndtune", plan, 2, "grad_sync=each on every micro-step: use grad_sync last");
}
