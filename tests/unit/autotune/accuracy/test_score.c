// Scores of hand-made rows, derived next to the numbers.

#include <criterion/criterion.h>

#include "autotune/accuracy/score.h"
#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(score, .fini = forget);

static const RunCase **pointers(const RunCase *cases, int count) {
    const RunCase **rows = ARENA_ARRAY(&arena, const RunCase *, count);
    for (int i = 0; i < count; i++) {
        rows[i] = &cases[i];
    }
    return rows;
}

// Errors +10, -10, +30, -50 and 0 %.
static const ScoredRow five[] = {{.predicted_s = 1.1, .measured_s = 1, .mfu = 0.4 / 1.1},
                                 {.predicted_s = 0.9, .measured_s = 1, .mfu = 0.5 / 0.9},
                                 {.predicted_s = 1.3, .measured_s = 1, .mfu = 0.2 / 1.3},
                                 {.predicted_s = 1.0, .measured_s = 2, .mfu = 0.8},
                                 {.predicted_s = 3.0, .measured_s = 3, .mfu = 0.6}};

Test(score, the_middle_and_the_tail_of_the_errors) {
    const ErrorScore score = score_step(pointers(scored_rows(&arena, five, 5), 5), 5);
    cr_assert_eq(score.n, 5);
    cr_assert_float_eq(score.median_abs, 0.1, 1e-12);  // of 0, .1, .1, .3, .5
    cr_assert_float_eq(score.p90_abs, 0.42, 1e-12);    // place 3.6: .3 + .6 * .2
    cr_assert_float_eq(score.bias, 0.0, 1e-12);        // of -.5, -.1, 0, .1, .3
}

Test(score, the_share_inside_the_interval) {
    // Intervals are 0.8 to 1.25 of the prediction: 1.3 * 0.8 = 1.04 > 1 and 1.25 < 2 miss.
    cr_assert_float_eq(score_step(pointers(scored_rows(&arena, five, 5), 5), 5).in_interval, 0.6, 1e-12);
}

Test(score, the_baseline_is_the_median_measured_mfu) {
    // Measured MFUs .4 .5 .2 .4 .6: constant .4; errors 0, .25, .5, 0, .5: median .25, place 3.6 of the sorted: .5
    const ErrorScore score = score_step(pointers(scored_rows(&arena, five, 5), 5), 5);
    cr_assert_float_eq(score.baseline_mfu, 0.4, 1e-12);
    cr_assert_float_eq(score.baseline_median_abs, 0.25, 1e-12);
    cr_assert_float_eq(score.baseline_p90_abs, 0.5, 1e-12);
}

Test(score, a_factor_of_their_own_leaves_what_is_not_common_to_the_rows) {
    // Ratios 1.2, 1.2, 0.6, 1.8: over their median 1.2 errors are 0, 0, .5, .5.
    const ScoredRow rows[] = {{.predicted_s = 1.2, .measured_s = 1},
                              {.predicted_s = 2.4, .measured_s = 2},
                              {.predicted_s = 0.6, .measured_s = 1},
                              {.predicted_s = 3.6, .measured_s = 2}};
    const ErrorScore score = score_step(pointers(scored_rows(&arena, rows, 4), 4), 4);
    cr_assert_float_eq(score.bias, 0.2, 1e-12);
    cr_assert_float_eq(score.scaled_median_abs, 0.25, 1e-12);
}

Test(score, each_source_has_a_baseline_of_its_own) {
    const ScoredRow rows[] = {
        {1, 1, 0.4, 0, "one", 0, 0, NULL}, {1, 1, 0.4, 0, "one", 0, 0, NULL}, {1, 1, 0.1, 0, "two", 0, 0, NULL}};
    const ScoreTable table =
        score_table(pointers(scored_rows(&arena, rows, 3), 3), 3, (ScoreSplit){.source = true}, false, &arena);
    cr_assert_eq(table.count, 2);
    cr_assert_str_eq(table.rows[0].source, "one");
    cr_assert_float_eq(table.rows[0].score.baseline_mfu, 0.4, 1e-12);
    cr_assert_float_eq(table.rows[1].score.baseline_mfu, 0.1, 1e-12);
    cr_assert_float_eq(table.rows[1].score.baseline_median_abs, 0, 1e-12);
}

Test(score, memory_is_compared_with_what_was_measured) {
    const double gib = 1024.0 * 1024.0 * 1024.0;
    const ScoredRow rows[] = {{.predicted_s = 1, .peak_bytes = 10 * gib, .peak_mem_gb = 8, .mem_kind = "allocated"},
                              {.predicted_s = 1, .peak_bytes = 10 * gib, .peak_mem_gb = 8, .mem_kind = "reserved"},
                              {.predicted_s = 1, .peak_bytes = 10 * gib, .peak_mem_gb = 8, .mem_kind = "device"},
                              {.predicted_s = 1, .peak_bytes = 10 * gib, .peak_mem_gb = 8, .mem_kind = "?"}};
    RunCase *cases = scored_rows(&arena, rows, 4);
    cases[2].prediction.memory.reserved_bytes = 12 * gib;
    cases[1].prediction.memory.allocator_bytes = 11 * gib;
    const double expected[] = {10 * gib, 11 * gib, 12 * gib, 10 * gib};
    for (int i = 0; i < 4; i++) {
        MemoryKind kind;
        double measured, predicted;
        cr_assert(accuracy_memory(&cases[i], &kind, &measured, &predicted));
        cr_expect_eq((int)kind, i);
        cr_expect_float_eq(measured, 8 * gib, 1);
        cr_expect_float_eq(predicted, expected[i], 1);
    }
}

static double predicted_gib(const RunCase *run) {
    MemoryKind kind;
    double measured_bytes, predicted_bytes;
    cr_assert(accuracy_memory(run, &kind, &measured_bytes, &predicted_bytes));
    return predicted_bytes / (1 << 30);
}

Test(score, what_the_allocator_cannot_hand_out_again_is_reserved_as_far_as_the_device_has_room) {
    const double gib = 1 << 30;
    const ScoredRow rows[] = {{.predicted_s = 1, .peak_bytes = 10 * gib, .peak_mem_gb = 8, .mem_kind = "allocated"},
                              {.predicted_s = 1, .peak_bytes = 10 * gib, .peak_mem_gb = 8, .mem_kind = "reserved"},
                              {.predicted_s = 1, .peak_bytes = 10 * gib, .peak_mem_gb = 8, .mem_kind = "device"}};
    RunCase *runs = scored_rows(&arena, rows, 3);
    for (int i = 0; i < 3; i++) {
        runs[i].prediction.memory =
            (MemoryBreakdown){.peak_bytes = 10 * gib, .allocator_bytes = 11 * gib, .reserved_bytes = 12 * gib};
        runs[i].recorded_bytes = 4 * gib;
        runs[i].request.memory_limit_bytes = 40 * gib;
    }
    cr_expect_float_eq(predicted_gib(&runs[0]), 10, 1e-9);
    cr_expect_float_eq(predicted_gib(&runs[1]), 15, 1e-9);
    cr_expect_float_eq(predicted_gib(&runs[2]), 16, 1e-9);
    runs[1].request.memory_limit_bytes = runs[2].request.memory_limit_bytes = 14 * gib;
    cr_expect_float_eq(predicted_gib(&runs[1]), 13, 1e-9);
    cr_expect_float_eq(predicted_gib(&runs[2]), 14, 1e-9);
}

Test(score, commits_of_torchtitan_that_print_what_lives_reserve_nothing) {
    RunRow row = {.mem_kind = "reserved", .source_locator = "pytorch/torchtitan commit f4614f333"};
    cr_expect_eq(accuracy_memory_kind(&row), MEMORY_KIND_ALLOCATED);
    row.source_locator = "pytorch/torchtitan commit 069bae286";
    cr_expect_eq(accuracy_memory_kind(&row), MEMORY_KIND_RESERVED);
}

static RankingScore ranking_of(const ScoredRow *rows, int count) {
    int *indices = ARENA_ARRAY(&arena, int, count);
    for (int i = 0; i < count; i++) {
        indices[i] = i;
    }
    RunGroup group = {.name = "g", .rows = indices, .row_count = count};
    RankingScore score;
    score_ranking(scored_rows(&arena, rows, count), &(RunGroups){&group, 1}, accuracy_has_step, &arena, &score);
    return score;
}

Test(score, regret_is_the_time_of_the_plan_predicted_best_over_the_best) {
    const ScoredRow rows[] = {{.predicted_s = 1.0, .measured_s = 1.1, .plan = 1},
                              {.predicted_s = 1.2, .measured_s = 1.0, .plan = 2},
                              {.predicted_s = 1.5, .measured_s = 2.0, .plan = 3}};
    const RankingScore score = ranking_of(rows, 3);
    cr_assert_float_eq(score.median_regret, 1.1, 1e-12);
    cr_assert_float_eq(score.worst_regret, 1.1, 1e-12);
    cr_assert_str_eq(score.worst_group, "g");
    cr_assert_float_eq(score.median_kendall_tau, 1.0 / 3.0, 1e-12);  // 2 of 3 pairs agree
    cr_assert_float_eq(score.baseline_median_regret, 4.1 / 3.0, 1e-12);
}

Test(score, groups_are_listed_with_what_was_picked_and_what_was_best_the_worst_first) {
    const ScoredRow rows[] = {{.predicted_s = 1.0, .measured_s = 1.0, .plan = 1},
                              {.predicted_s = 2.0, .measured_s = 2.0, .plan = 2},
                              {.predicted_s = 1.0, .measured_s = 1.5, .plan = 3},
                              {.predicted_s = 2.0, .measured_s = 1.0, .plan = 4}};
    RunGroup groups[] = {{.name = "right", .rows = (int[]){0, 1}, .row_count = 2},
                         {.name = "wrong", .rows = (int[]){2, 3}, .row_count = 2}};
    RunCase *cases = scored_rows(&arena, rows, 4);
    RankingScore score;
    score_ranking(cases, &(RunGroups){groups, 2}, accuracy_has_step, &arena, &score);
    cr_assert_eq(score.groups, 2);
    cr_assert_str_eq(score.each[0].name, "wrong");
    cr_assert_float_eq(score.each[0].regret, 1.5, 1e-12);
    cr_assert_float_eq(score.each[0].kendall_tau, -1, 1e-12);
    cr_assert(score.each[0].picked == cases[2].row->id && score.each[0].best == cases[3].row->id);
    cr_assert_str_eq(score.each[1].name, "right");
    cr_assert(score.each[1].picked == score.each[1].best && score.each[1].plans == 2);
}

Test(score, plans_predicted_equal_share_first_place) {
    const ScoredRow rows[] = {{.predicted_s = 1.0, .measured_s = 1.0, .plan = 1},
                              {.predicted_s = 1.0, .measured_s = 1.4, .plan = 2},
                              {.predicted_s = 1.5, .measured_s = 2.0, .plan = 3}};
    cr_assert_float_eq(ranking_of(rows, 3).median_regret, 1.2, 1e-12);
}

Test(score, repeats_of_a_plan_count_once_with_their_mean) {
    const ScoredRow rows[] = {{.predicted_s = 1.0, .measured_s = 1.0, .plan = 1},
                              {.predicted_s = 1.0, .measured_s = 1.4, .plan = 1},
                              {.predicted_s = 1.5, .measured_s = 1.0, .plan = 2}};
    const RankingScore score = ranking_of(rows, 3);
    cr_assert_float_eq(score.median_regret, 1.2, 1e-12);
    cr_assert_float_eq(score.median_kendall_tau, -1.0, 1e-12);
}

Test(score, a_group_with_one_plan_is_not_scored) {
    const ScoredRow rows[] = {{.predicted_s = 1.0, .measured_s = 1.0, .plan = 1},
                              {.predicted_s = 1.0, .measured_s = 1.4, .plan = 1}};
    const RankingScore score = ranking_of(rows, 2);
    cr_assert_eq(score.groups, 0);
    cr_assert_eq(score.not_scored, 1);
}

Test(score, skipped_rows_rank_nothing) {
    const ScoredRow rows[] = {{.predicted_s = 1.0, .measured_s = 9.0, .plan = 1},
                              {.predicted_s = 2.0, .measured_s = 1.0, .plan = 2},
                              {.predicted_s = 3.0, .measured_s = 2.0, .plan = 3}};
    RunCase *cases = scored_rows(&arena, rows, 3);
    cases[0].skipped = "no";
    int indices[] = {0, 1, 2};
    RunGroup group = {.name = "g", .rows = indices, .row_count = 3};
    RankingScore score;
    score_ranking(cases, &(RunGroups){&group, 1}, accuracy_has_step, &arena, &score);
    cr_assert_float_eq(score.median_regret, 1.0, 1e-12);
}

Test(score, rows_that_a_simulator_computed_rank_nothing_among_measured_ones) {
    const ScoredRow rows[] = {{.predicted_s = 1.0, .measured_s = 9.0, .plan = 1},
                              {.predicted_s = 2.0, .measured_s = 1.0, .plan = 2},
                              {.predicted_s = 3.0, .measured_s = 2.0, .plan = 3}};
    RunCase *cases = scored_rows(&arena, rows, 3);
    cases[0].computed = true;
    int indices[] = {0, 1, 2};
    RunGroup group = {.name = "g", .rows = indices, .row_count = 3};
    RankingScore all, measured;
    score_ranking(cases, &(RunGroups){&group, 1}, accuracy_has_step, &arena, &all);
    score_ranking(cases, &(RunGroups){&group, 1}, accuracy_is_measured, &arena, &measured);
    cr_assert_float_eq(all.median_regret, 9.0, 1e-12);
    cr_assert_float_eq(measured.median_regret, 1.0, 1e-12);
}
