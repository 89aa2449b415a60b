// Splits of the layers over stages given by a plan: which stage has which layers, and what must divide evenly.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/frameworks/target.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(split_rules, .fini = end);

// Four stages of Llama 3 8B's 32 layers.
static TrainPlan plan_of(PpSplit split, int first, int last) {
    TrainPlan plan = {.mesh = mesh_of_one(), .pp_split = split, .pp_first = first, .pp_last = last};
    plan.mesh.size[AXIS_PP] = 4;
    plan.virtual_stages = 1;
    return plan;
}

static const char *reason_of(const char *name, const TrainPlan *plan) {
    ModelSpec model;
    const Target *target;
    cr_assert_eq(model_find("llama-3-8b", &arena, &model, NULL), STATUS_OK);
    cr_assert_eq(target_find(name, &target, NULL), STATUS_OK);
    return target_refuse_split(target, &model, plan, &arena);
}

static void expect(const char *name, const TrainPlan *plan, const char *words) {
    const char *reason = reason_of(name, plan);
    cr_assert_not_null(reason, "legal, although: %s", words);
    cr_expect(strstr(reason, words), "%s", reason);
}

Test(split_rules, a_split_that_a_target_does_not_have_is_refused) {
    TrainPlan plan = plan_of(SPLIT_EVEN, 0, 0);
    expect("nanotron", &plan, "nanotron has no pp_split=even: use pp_split target");
    cr_expect_null(reason_of("deepspeed", &plan));
    plan.pp_split = SPLIT_ENDS;
    expect("deepspeed", &plan, "deepspeed has no pp_split=ends");
}

Test(split_rules, where_embedding_and_loss_count_as_one_layer_all_must_divide) {
    TrainPlan plan = plan_of(SPLIT_WEIGHTED, 0, 2);
    expect("megatron", &plan, "megatron counts embedding and loss as one layer or none");
    plan.pp_last = 1;
    expect("megatron", &plan, "the 32 of llama-3-8b with them, 33, must divide by 4");
    plan.mesh.size[AXIS_PP] = 11;
    cr_expect_null(reason_of("megatron", &plan));
}

Test(split_rules, weights_are_no_more_than_a_stage_has) {
    TrainPlan plan = plan_of(SPLIT_WEIGHTED, 1, 8);
    cr_expect_null(reason_of("torchtitan", &plan));
    plan.pp_last = 20;
    expect("torchtitan", &plan, "embedding and head cannot count as 1 and 20 layers where a stage or chunk has 13");
}

Test(split_rules, what_ends_leave_is_as_many_for_each_stage_between) {
    TrainPlan plan = plan_of(SPLIT_ENDS, 7, 7);
    cr_expect_null(reason_of("megatron", &plan));
    plan.pp_last = 6;
    expect("megatron", &plan, "leave 19 layers of llama-3-8b to 2 stages between, which must hold as many each");
    plan = plan_of(SPLIT_ENDS, 16, 0);
    expect("megatron", &plan, "megatron has layers on the first and on the last stage: use pp_split chunks");
    cr_expect_null(reason_of("ndtune", &plan));
}

Test(split_rules, a_stage_of_several_chunks_cuts_its_layers_evenly) {
    TrainPlan plan = plan_of(SPLIT_ENDS, 7, 5);
    plan.pp_schedule = PP_INTERLEAVED;
    plan.virtual_stages = 2;
    expect("megatron", &plan, "in chunks of as many");  // 20 on two stages are 5 in each of four chunks, 7 are not even
    plan.pp_first = plan.pp_last = 6;
    cr_expect_null(reason_of("megatron", &plan));
}

Test(split_rules, folded_the_ends_are_one_stage) {
    TrainPlan plan = plan_of(SPLIT_ENDS, 8, 8);
    plan.pp_schedule = PP_ZBV;
    expect("ndtune", &plan, "pp_schedule=zbv has the first and the last chunk on one stage: use pp_split chunks");
    plan = plan_of(SPLIT_CHUNKS, 4, 4);
    plan.pp_schedule = PP_ZBV;
    cr_expect_null(reason_of("ndtune", &plan));
}

Test(split_rules, layers_that_do_not_divide_are_told_with_numbers_that_do) {
    TrainPlan plan = plan_of(SPLIT_EVEN, 0, 0);
    plan.mesh.size[AXIS_PP] = 3;
    expect("megatron", &plan, "do not divide by 3: use pp_split ends with pp_first 11 and pp_last 10");
    plan = plan_of(SPLIT_ENDS, 11, 10);
    plan.mesh.size[AXIS_PP] = 3;
    cr_expect_null(reason_of("megatron", &plan));
}

static const char *reason_of_torchtitan(int stages, int chunks) {
    ModelSpec model;
    const Target *target;
    const char *reason = NULL;
    TrainPlan plan = {.mesh = mesh_of_one(), .seq = 4096, .micro_batch = 1, .grad_accum = 24};
    plan.mesh.size[AXIS_PP] = stages;
    plan.pp_schedule = PP_INTERLEAVED;
    plan.virtual_stages = chunks;
    plan.precision = DTYPE_BF16;
    cr_assert_eq(model_find("llama-3-8b", &arena, &model, NULL), STATUS_OK);
    cr_assert_eq(target_find("torchtitan", &target, NULL), STATUS_OK);
    target_check(target, &model, &plan, &arena, &reason);
    return reason;
}

// Of 32 layers no number makes 12 stages; 6 of them are of 6 layers or less, 24 torchtitan makes by itself.
Test(split_rules, torchtitan_has_as_many_stages_as_layers_of_one_make_or_two_of_a_rank) {
    const char *reason = reason_of_torchtitan(4, 3);
    cr_assert(reason && strstr(reason, "no number of layers makes 12 stages of 32: use virtual_stages 2"), "%s",
              reason ? reason : "legal");
    cr_expect_null(reason_of_torchtitan(2, 3));
    cr_expect_null(reason_of_torchtitan(12, 2));
}
