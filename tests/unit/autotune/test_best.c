// Which plan is recommended: the rule of autotune/search/best.c on made-up plans.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/search/best.h"
#include "tests/support/sizes.h"

static Arena arena;
static TuneRequest request;
static Prediction entries[4];
static TuneResult result;

static void begin(void) {
    arena = (Arena){0};
    request = (TuneRequest){.memory_limit_bytes = 100, .cluster.accelerator.memory_bytes = 100};
    result = (TuneResult){.request = &request, .entries = entries};
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(best, .init = begin, .fini = end);

static void add(int replicate, int shard, int cp, double tokens_per_s, double reserved_bytes) {
    entries[result.entry_count++] =
        (Prediction){.plan = {.mesh = {SIZES(replicate, shard, cp, 1)}, .seq = 8, .micro_batch = 1, .grad_accum = 1},
                     .tokens_per_s = tokens_per_s,
                     .memory = {.reserved_bytes = reserved_bytes}};
}

static int best_shard(void) {
    best_choose(&result, &arena);
    return entries[0].plan.mesh.size[AXIS_DP_SHARD];
}

Test(best, of_level_plans_the_one_with_fewest_axes_wins) {
    add(2, 4, 1, 1000, 80);
    add(1, 8, 1, 991, 90);
    cr_assert_eq(best_shard(), 8);
    cr_assert_not_null(strstr(result.best_reason, "simpler: no dp_replicate"), "%s", result.best_reason);
}

Test(best, more_than_a_percent_is_not_level) {
    add(2, 4, 1, 1000, 80);
    add(1, 8, 1, 989, 80);
    cr_assert_eq(best_shard(), 4);
    cr_assert_not_null(strstr(result.best_reason, "the fastest"));
}

static Prediction *add_cut(Axis axis, int parts, double tokens_per_s) {
    add(1, 8 / parts, 1, tokens_per_s, 80);
    Prediction *entry = &entries[result.entry_count - 1];
    entry->plan.mesh.size[axis] = parts;
    return entry;
}

Test(best, no_pipeline_and_no_ring_are_level_within_five_percent) {
    static const Axis axes[] = {AXIS_PP, AXIS_CP};
    for (int i = 0; i < 2; i++) {
        result.entry_count = 0;
        add_cut(axes[i], 2, 1000);
        add(1, 8, 1, 953, 90);
        cr_expect_eq(best_shard(), 8);
        cr_expect_not_null(strstr(result.best_reason, "(4.9 % ahead, too close to call), and simpler: no "), "%s",
                           result.best_reason);
        result.entry_count = 0;
        add_cut(axes[i], 2, 1000);
        add(1, 8, 1, 952, 90);
        cr_expect_eq(best_shard(), 4);
    }
}

Test(best, no_tensor_parallelism_is_level_within_two_percent) {
    add_cut(AXIS_TP, 2, 1000);
    add(1, 8, 1, 981, 90);
    cr_expect_eq(best_shard(), 8);
    result.entry_count = 0;
    add_cut(AXIS_TP, 2, 1000);
    add(1, 8, 1, 979, 90);
    cr_expect_eq(best_shard(), 4);
}

// What leaves the pipeline out is compared with what leaves tensor parallelism out too, not the fastest alone.
Test(best, an_axis_that_is_worth_more_than_its_level_stays) {
    add_cut(AXIS_TP, 2, 1000)->plan.mesh.size[AXIS_PP] = 2;
    add_cut(AXIS_TP, 2, 990);
    add(1, 8, 1, 955, 90);
    cr_expect_eq(best_shard(), 4);
    cr_expect_eq(entries[0].tokens_per_s, 990);
    cr_expect_not_null(strstr(result.best_reason, "simpler: no pp"), "%s", result.best_reason);
}

Test(best, a_plan_that_cuts_an_axis_finer_is_not_simpler) {
    add_cut(AXIS_PP, 2, 1000)->plan.mesh.size[AXIS_TP] = 4;
    add_cut(AXIS_TP, 8, 999);
    best_choose(&result, &arena);
    cr_expect_eq(entries[0].plan.mesh.size[AXIS_PP], 2);
}

Test(best, a_shorter_pipeline_is_not_level_for_its_memory) {
    add_cut(AXIS_PP, 4, 1000);
    add_cut(AXIS_PP, 2, 999)->memory.reserved_bytes = 10;
    best_choose(&result, &arena);
    cr_expect_eq(entries[0].plan.mesh.size[AXIS_PP], 4);
}

Test(best, of_as_many_axes_the_least_memory_wins) {
    add(2, 4, 1, 1000, 80);
    add(4, 2, 1, 995, 70);
    cr_assert_eq(best_shard(), 2);
    cr_assert_not_null(strstr(result.best_reason, "with 10 B less memory"), "%s", result.best_reason);
}

Test(best, a_plan_above_the_margin_is_named_and_not_taken) {
    add(1, 8, 1, 1000, 93);
    add(2, 4, 1, 900, 92);
    cr_assert_eq(best_shard(), 4);
    cr_assert_eq(result.fastest_if_it_fits->tokens_per_s, 1000);
    cr_assert_not_null(strstr(result.best_reason, "leave 8 % of the memory free"));
}

Test(best, all_of_a_limit_that_was_given_is_used) {
    request.cluster.accelerator.memory_bytes = 200;
    add(1, 8, 1, 1000, 99);
    add(2, 4, 1, 900, 50);
    cr_assert_eq(best_shard(), 8);
    cr_assert_null(result.fastest_if_it_fits);
    cr_assert_null(strstr(result.best_reason, "8 %"));
}

Test(best, where_none_leaves_room_the_same_rule_takes_what_fits) {
    add(2, 4, 1, 1000, 99);
    add(1, 8, 1, 995, 98);
    cr_assert_eq(best_shard(), 8);
    cr_assert_not_null(strstr(result.best_reason, "no plan leaves 8 % of the memory free"));
}

Test(best, the_rest_keeps_its_order) {
    add(2, 2, 2, 1000, 80);
    add(2, 4, 1, 999, 80);
    add(1, 8, 1, 998, 80);
    add(8, 1, 1, 900, 80);
    cr_assert_eq(best_shard(), 8);
    cr_assert_eq(entries[1].tokens_per_s, 1000);
    cr_assert_eq(entries[2].tokens_per_s, 999);
    cr_assert_eq(entries[3].tokens_per_s, 900);
}

// The same shape with less memory within the percent.
Test(best, another_choice_of_a_shape_may_win_and_takes_its_place) {
    add(1, 8, 1, 1000, 90);
    Prediction thrifty = entries[0];
    thrifty.plan.micro_batch = 2;
    thrifty.tokens_per_s = 995;
    thrifty.memory.reserved_bytes = 60;
    Candidate candidate = {.state = CANDIDATE_SIMULATED, .prediction = &thrifty};
    result.candidates = &candidate;
    result.candidate_count = 1;
    best_choose(&result, &arena);
    cr_assert_eq(result.entry_count, 1);
    cr_assert_eq(entries[0].plan.micro_batch, 2);
}

Test(best, by_memory_the_least_stays_first) {
    request.objective = OBJECTIVE_MEMORY;
    add(2, 4, 1, 10, 10);
    add(1, 8, 1, 1000, 90);
    cr_assert_eq(best_shard(), 4);
    cr_assert_str_eq(result.best_reason, "the least memory");
}
