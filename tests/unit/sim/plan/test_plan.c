// The canonical form, batch arithmetic, text and hash of a plan, by examples.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/plan/plan_fields.h"
#include "tests/support/hash_of.h"
#include "tests/support/orders.h"
#include "tests/support/sizes.h"

static TrainPlan example(void) {
    return (TrainPlan){.mesh = {SIZES(2, 4, 2, 2)},
                       .seq = 8192,
                       .micro_batch = 3,
                       .grad_accum = 5,
                       .zero = 3,
                       .reshard = RESHARD_NEVER,
                       .recompute = RECOMPUTE_FULL,
                       .cp_rotate = CP_ROTATE_ALLGATHER,
                       .precision = DTYPE_BF16};
}

Test(plan, a_plan_that_uses_everything_is_canonical_already) {
    TrainPlan plan = example();
    plan_canonical(&plan);
    cr_assert_eq(plan.zero, 3);
    cr_assert_eq(plan.reshard, RESHARD_NEVER);
    cr_assert_eq(plan.cp_rotate, CP_ROTATE_ALLGATHER);
}

Test(plan, nothing_to_shard_over_means_stage_zero_and_nothing_to_reshard) {
    TrainPlan plan = example();
    plan.mesh = (Mesh){.size = SIZES(8, 1, 1, 4)};
    plan_canonical(&plan);
    cr_assert_eq(plan.zero, 0);
    cr_assert_eq(plan.reshard, RESHARD_ALWAYS);
}

Test(plan, a_context_parallel_group_is_something_to_shard_over) {
    TrainPlan plan = example();
    plan.mesh = (Mesh){.size = SIZES(1, 1, 4, 1)};
    plan_canonical(&plan);
    cr_assert_eq(plan.zero, 3);
}

Test(plan, resharding_is_a_choice_of_stage_three_only) {
    TrainPlan plan = example();
    plan.zero = 2;
    plan_canonical(&plan);
    cr_assert_eq(plan.reshard, RESHARD_ALWAYS);
}

Test(plan, rotation_is_a_choice_of_context_parallelism_only) {
    TrainPlan plan = example();
    plan.mesh.size[AXIS_CP] = 1;
    plan_canonical(&plan);
    cr_assert_eq(plan.cp_rotate, CP_ROTATE_RING);
}

// 3 sequences x 2 replicas x 4 shards x 5 micro-steps; cp and tp ranks share sequences
Test(plan, cp_and_tp_do_not_multiply_the_batch) {
    const TrainPlan plan = example();
    cr_assert_eq(plan_global_batch(&plan), 120);
    cr_assert_eq(plan_tokens_per_step(&plan), 120 * 8192);
    cr_assert_eq(plan_local_tokens(&plan), 3 * 8192 / 2);
    cr_assert_eq(plan_shard_count(&plan), 8);
}

Test(plan, a_large_batch_does_not_overflow) {
    TrainPlan plan = example();
    plan.mesh = (Mesh){.size = SIZES(1024, 1024, 1, 1)};
    plan.grad_accum = 1024;
    plan.seq = 1 << 20;
    cr_assert_eq(plan_tokens_per_step(&plan), (INT64_C(3) << 30) << 20);
}

Test(plan, the_text_is_one_stable_line) {
    const TrainPlan plan = example();
    char text[PLAN_TEXT_BYTES];
    cr_assert_str_eq(plan_text(&plan, text),
                     "dp_replicate=2,dp_shard=4,cp=2,tp=2 seq=8192 mb=3 ga=5 zero=3 reshard=never "
                     "recompute=full cp_rotate=allgather precision=bf16 attention=flash fused=fused");
}

Test(plan, formats_are_in_the_text_only_where_they_are_a_choice) {
    TrainPlan plan = example();
    char text[PLAN_TEXT_BYTES], same[PLAN_TEXT_BYTES];
    plan_text(&plan, same);
    plan.fp8_recipe = FP8_ROWWISE;  // without fp8 no choice
    cr_assert_str_eq(plan_text(&plan, text), same);
    plan.precision = DTYPE_FP8;
    plan.bf16_master = true;
    cr_assert_not_null(strstr(plan_text(&plan, text), "fused=fused master=bf16 fp8_recipe=rowwise"), "%s", text);
    plan.precision = DTYPE_FP32;
    cr_assert_null(strstr(plan_text(&plan, text), "master"), "%s", text);
}

Test(plan, the_format_of_reductions_is_a_choice_where_gradients_are_sharded) {
    TrainPlan plan = example();
    char text[PLAN_TEXT_BYTES];
    plan.reduce_dtype = REDUCE_DTYPE_BF16;
    cr_assert_not_null(strstr(plan_text(&plan, text), "fused=fused reduce=bf16"), "%s", text);
    plan.zero = 0;
    cr_assert_null(strstr(plan_text(&plan, text), "reduce="), "%s", text);
}

// What is left to the target is not said: plans from before there was a choice keep their text and hash.
Test(plan, when_gradients_are_reduced_is_a_choice_of_accumulation_over_several_ranks) {
    TrainPlan plan = example();
    char text[PLAN_TEXT_BYTES];
    cr_assert_null(strstr(plan_text(&plan, text), "sync="), "%s", text);
    plan.grad_sync = GRAD_SYNC_EACH;
    cr_assert_not_null(strstr(plan_text(&plan, text), "fused=fused sync=each"), "%s", text);
    plan.grad_accum = 1;
    cr_assert_null(strstr(plan_text(&plan, text), "sync="), "%s", text);
    plan.grad_accum = 5;
    plan.mesh = (Mesh){.size = SIZES(1, 1, 1, 2)};
    cr_assert_null(strstr(plan_text(&plan, text), "sync="), "%s", text);
}

Test(plan, the_text_shows_the_canonical_plan_and_leaves_the_plan_alone) {
    TrainPlan plan = example();
    plan.mesh = (Mesh){.size = SIZES(8, 1, 1, 4)};
    char text[PLAN_TEXT_BYTES];
    cr_assert_not_null(strstr(plan_text(&plan, text), "zero=0 reshard=always"));
    cr_assert_eq(plan.zero, 3);
}

Test(plan, the_longest_text_fits) {
    TrainPlan plan = example();
    plan.mesh = (Mesh){.size = SIZES(1024, 1024, 1, 1)};
    plan.seq = plan.micro_batch = plan.grad_accum = plan.zero = -2147483647;
    plan.precision = DTYPE_FP8;
    plan.tp_overlap = plan.bf16_master = true;
    plan.reduce_dtype = REDUCE_DTYPE_BF16;
    plan.grad_sync = GRAD_SYNC_SHARDS;
    plan.reduce_overlap = REDUCE_OVERLAP_OFF;
    char text[PLAN_TEXT_BYTES];
    plan_text(&plan, text);
    cr_assert_not_null(strstr(text, "fp8_recipe=tensorwise reduce=bf16"), "cut: %s", text);
}

Test(plan, another_order_of_the_axes_is_another_plan) {
    const TrainPlan usual = example();
    TrainPlan plan = example();
    plan.mesh.order = order_of("dp_shard,tp,cp,dp_replicate");
    char text[PLAN_TEXT_BYTES];
    cr_assert_str_eq(strstr(plan_text(&plan, text), " order="), " order=dp_shard,tp,cp,dp_replicate");
    cr_assert_null(strstr(plan_text(&usual, text), " order="), "%s", text);
    cr_assert_neq(hash_of_plan(&plan), hash_of_plan(&usual));
}

Test(plan, axes_of_size_1_make_no_other_order) {
    TrainPlan plan = example(), usual;
    plan.mesh = (Mesh){.size = SIZES(1, 4, 1, 2), .order = order_of("dp_shard,cp,tp,dp_replicate")};
    usual = plan;
    usual.mesh.order = (AxisOrder){{0}};
    char text[PLAN_TEXT_BYTES], usual_text[PLAN_TEXT_BYTES];
    cr_assert_str_eq(plan_text(&plan, text), plan_text(&usual, usual_text));
    cr_assert_eq(hash_of_plan(&plan), hash_of_plan(&usual));
}

// Of plans that say nothing of rounds, as those before there were any, text and hash are those of one round.
Test(plan, one_round_is_what_a_pipeline_has_by_itself) {
    TrainPlan plan = example(), rounds;
    char text[PLAN_TEXT_BYTES];
    plan.mesh.size[AXIS_PP] = 4;
    plan.grad_accum = 16;
    const uint64_t unsaid = hash_of_plan(&plan);
    cr_expect_null(strstr(plan_text(&plan, text), "pp_rounds"));
    rounds = plan;
    rounds.pp_rounds = 1;
    cr_expect_eq(hash_of_plan(&rounds), unsaid);
    rounds.pp_rounds = 4;
    cr_expect_neq(hash_of_plan(&rounds), unsaid);
    cr_expect(strstr(plan_text(&rounds, text), " pp_rounds=4"));
    cr_expect(plan_round_steps(&rounds) == 4 && plan_rounds(&rounds) == 4);
    rounds.mesh.size[AXIS_PP] = 1;
    plan.mesh.size[AXIS_PP] = 1;
    cr_expect_eq(hash_of_plan(&rounds), hash_of_plan(&plan), "without stages there is no schedule to repeat");
    cr_expect_eq(plan_round_steps(&rounds), 16);
}

Test(plan, a_line_is_read_back_as_the_plan_that_wrote_it) {
    static const char *const lines[] = {
        "dp_replicate=1,dp_shard=8,cp=1,tp=4 seq=4096 mb=1 ga=16 zero=3 reshard=never recompute=full cp_rotate=ring "
        "precision=bf16 attention=flash fused=eager tp_overlap=on",
        "dp_replicate=2,dp_shard=1,cp=2,tp=1 seq=128 mb=2 ga=1 zero=1 reshard=always recompute=none "
        "cp_rotate=allgather "
        "precision=fp32 attention=eager fused=fused reduce=bf16",
        "dp_replicate=1,dp_shard=4,cp=1,tp=2 seq=128 mb=1 ga=1 zero=3 reshard=always recompute=selective "
        "cp_rotate=ring "
        "precision=fp8 attention=cudnn fused=compiled master=bf16 fp8_recipe=rowwise order=tp,dp_shard"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        TrainPlan plan;
        Error error = {0};
        char text[PLAN_TEXT_BYTES];
        cr_assert_eq(plan_parse(lines[i], &plan, &error), STATUS_OK, "%s", error.message);
        cr_assert_str_eq(plan_text(&plan, text), lines[i]);
    }
}

Test(plan, a_line_that_is_no_plan_is_refused_by_its_word) {
    TrainPlan plan;
    Error error = {0};
    cr_assert_eq(plan_parse("dp_shard=2 seq=128 mb=1", &plan, &error), STATUS_USAGE);
    cr_assert_str_eq(error.message, "plan: ga is missing");
    cr_assert_eq(plan_parse("dp_shard=2 seq=128 stages=4", &plan, &error), STATUS_USAGE);
    cr_assert_str_eq(error.message, "plan: stages is not in this version");
    cr_assert_eq(plan_parse("dp_shard=2 seq=128 reshard=maybe", &plan, &error), STATUS_USAGE);
    cr_assert_str_eq(error.message, "plan: reshard=maybe is not in this version");
}

// Their widths together are near a word: one that reached into its neighbour would show as two equal keys.
Test(plan, keys_differ_where_any_field_but_the_batchs_differs) {
    TrainPlan plans[1 + PLAN_FIELD_COUNT];
    int count = 0;
    plans[count++] = (TrainPlan){0};
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope != PLAN_OF_BATCH) {
            plans[count] = (TrainPlan){0};
            plan_set(&plans[count++], (PlanFieldId)id, plan_fields[id].high);
        }
    }
    for (int a = 0; a < count; a++) {
        for (int b = 0; b < a; b++) {
            const PlanKey of_a = plan_key(&plans[a], 0), of_b = plan_key(&plans[b], 0);
            cr_assert(!plan_keys_equal(&of_a, &of_b), "plans %d and %d", a, b);
        }
    }
}

Test(plan, keys_hold_what_is_added_beyond_their_first_word) {
    const TrainPlan plan = {0};
    PlanKey a = plan_key(&plan, 0), b = a;
    enum { BITS = 21, VALUES = 3 };
    for (int i = 0; i < VALUES; i++) {
        plan_key_add(&a, 5, BITS);
        plan_key_add(&b, i == VALUES - 1 ? 6 : 5, BITS);
    }
    cr_assert_gt(a.used, PLAN_KEY_WORD_BITS);
    cr_assert(!plan_keys_equal(&a, &b));
}

Test(plan, recomputed_layers_are_counted_in_words) {
    TrainPlan plan = example();
    plan.recompute_layers = 1;
    cr_expect_str_eq(plan_recompute_text(&plan, RECOMPUTE_BUFFER), "1 layer");
    plan.recompute_layers = 19;
    cr_expect_str_eq(plan_recompute_text(&plan, RECOMPUTE_BUFFER), "19 layers");
    plan.recompute_layers = 0;
    plan.recompute_every = 3;
    cr_expect_str_eq(plan_recompute_text(&plan, RECOMPUTE_BUFFER), "1 in 3 layers");
}
