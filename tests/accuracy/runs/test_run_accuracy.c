// The project's compilation of published runs: no row is lost, the predictions use more than one constant, and no class
// of them gets worse than RESULTS.md states. A bound is the stated figure plus a small margin.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/support/kept_predictions.h"

#define FOLDER NDTUNE_SOURCE_DIR "/tests/accuracy/runs/"

static Arena arena;
static Accuracy accuracy;

static void score_sample(void) {
    const AccuracyOptions options = {.runs_paths = (const char *const[]){FOLDER "runs.csv", NULL},
                                     .oom_paths = (const char *const[]){FOLDER "oom.csv", NULL},
                                     .groups_paths = (const char *const[]){FOLDER "groups.csv", NULL}};
    Error error = {0};
    cr_assert_eq(accuracy_run_once(&options, &arena, &accuracy, &error), STATUS_OK, "%s", error.message);
}

static void forget(void) {
    arena_free(&arena);
}

TestSuite(published_runs, .init = score_sample, .fini = forget);

Test(published_runs, every_row_is_scored_or_skipped_with_a_reason) {
    int skipped = 0;
    for (int i = 0; i < accuracy.skip_count; i++) {
        cr_expect_str_not_empty(accuracy.skips[i].reason);
        skipped += accuracy.skips[i].runs + accuracy.skips[i].failures;
    }
    cr_assert_eq(accuracy.scored + accuracy.oom.n + skipped, accuracy.runs.count + accuracy.failures.count);
}

Test(published_runs, the_targets_of_the_sample_are_predicted) {
    static const char *const targets[] = {"accelerate", "fsdp1", "megatron", "nanotron", "torchtitan"};
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        bool found = false;
        for (int row = 0; row < accuracy.step_by_target.count; row++) {
            found = found || strcmp(accuracy.step_by_target.rows[row].target, targets[i]) == 0;
        }
        cr_expect(found, "%s", targets[i]);
    }
}

Test(published_runs, all_predictions_are_finite_and_positive) {
    for (int i = 0; i < accuracy.runs.count; i++) {
        const RunCase *run = &accuracy.cases[i];
        cr_expect(run->skipped || (isfinite(run->prediction.step_s) && run->prediction.step_s > 0), "%s", run->row->id);
        cr_expect(run->skipped || run->prediction.memory.peak_bytes > 0, "%s", run->row->id);
    }
}

Test(published_runs, no_group_names_a_row_that_is_not_there) {
    cr_assert_eq(accuracy.ranking.unknown_ids, 0);
}

Test(published_runs, predictions_beat_one_constant_mfu) {
    cr_assert_lt(accuracy.step.median_abs, accuracy.step.baseline_median_abs);
    cr_assert_lt(accuracy.step.p90_abs, accuracy.step.baseline_p90_abs);
}

Test(published_runs, rankings_beat_a_blind_draw) {
    cr_assert_leq(accuracy.ranking.median_regret, accuracy.ranking.baseline_median_regret);
    cr_assert_gt(accuracy.ranking.median_kendall_tau, 0);
}

typedef struct Bound {
    const char *name;
    double median, p90, in_interval;
} Bound;

// nanotron's second was 0.32 to 0.35 until its slow runs were said to check their collectives; accelerate's were 0.025
// and 0.15 and fsdp1's 0.03 and 0.12 while Oumi's runs, on which nothing is fitted, counted as fsdp1's (RESULTS.md).
static const Bound bounds[] = {{"accelerate", 0.03, 0.13, 0.85},
                               {"fsdp1", 0.025, 0.085, 0.85},
                               {"megatron", 0.05, 0.17, 0.8},
                               {"nanotron", 0.05, 0.17, 0.9},
                               {"torchtitan", 0.085, 0.33, 0.8}};

static const ErrorScore *score_of(const char *target) {
    for (int i = 0; i < accuracy.step_by_target.count; i++) {
        if (strcmp(accuracy.step_by_target.rows[i].target, target) == 0) {
            return &accuracy.step_by_target.rows[i].score;
        }
    }
    cr_assert_fail("%s", target);
    return NULL;
}

Test(published_runs, step_times_of_every_target_stay_within_the_stated_errors) {
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const ErrorScore *score = score_of(bounds[i].name);
        cr_expect_leq(score->median_abs, bounds[i].median, "%s: median %.3f", bounds[i].name, score->median_abs);
        cr_expect_leq(score->p90_abs, bounds[i].p90, "%s: 90th percentile %.3f", bounds[i].name, score->p90_abs);
    }
    cr_expect_leq(accuracy.step.median_abs, 0.045, "all: median %.3f", accuracy.step.median_abs);
    cr_expect_leq(accuracy.step.p90_abs, 0.18, "all: 90th percentile %.3f", accuracy.step.p90_abs);
    cr_expect_leq(accuracy.step_measured.median_abs, 0.04, "measured: %.3f", accuracy.step_measured.median_abs);
    cr_expect_leq(accuracy.step_measured.p90_abs, 0.2, "measured: %.3f", accuracy.step_measured.p90_abs);
}

// What corrected labels do to the line of a target hides nothing that happens to the rest of its runs.
Test(published_runs, sources_beside_corrected_labels_stay_within_the_stated_errors) {
    static const Bound sources[] = {{"NVIDIA DGX Cloud", 0.03, 0.08, 0.8},
                                    {"OneFlow LiBai", 0.07, 0.24, 0.8},
                                    {"IBM fms-acceleration", 0.02, 0.13, 0.8},
                                    {"Oumi", 0.06, 0.12, 0.9}};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        bool found = false;
        for (int row = 0; row < accuracy.step_by_source.count; row++) {
            const ScoreRow *of = &accuracy.step_by_source.rows[row];
            if (strncmp(of->source, sources[i].name, strlen(sources[i].name)) == 0) {
                found = true;
                cr_expect_leq(of->score.median_abs, sources[i].median, "%s: %.3f", of->source, of->score.median_abs);
                cr_expect_leq(of->score.p90_abs, sources[i].p90, "%s: %.3f", of->source, of->score.p90_abs);
            }
        }
        cr_expect(found, "%s", sources[i].name);
    }
}

Test(published_runs, intervals_hold_the_stated_part_of_the_runs_of_every_target) {
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const double held = score_of(bounds[i].name)->in_interval;
        cr_expect_geq(held, bounds[i].in_interval, "%s: %.3f", bounds[i].name, held);
    }
}

Test(published_runs, peak_memory_and_verdicts_stay_within_the_stated_errors) {
    cr_expect_leq(accuracy.memory.median_abs, 0.105, "median %.3f", accuracy.memory.median_abs);
    cr_expect_geq(accuracy.oom.called_infeasible, 0.90 * accuracy.oom.n, "%d", accuracy.oom.called_infeasible);
    cr_expect_geq(accuracy.oom.called_feasible, 0.96 * accuracy.oom.feasible_rows, "%d", accuracy.oom.called_feasible);
}

Test(published_runs, the_recommended_plan_is_nearly_always_the_best_one) {
    cr_expect_leq(accuracy.ranking.median_regret, 1.0005, "%.4f", accuracy.ranking.median_regret);
    cr_expect_leq(accuracy.ranking.p90_regret, 1.12, "%.3f", accuracy.ranking.p90_regret);
    cr_expect_leq(accuracy.ranking_measured.median_regret, 1.0005, "%.4f", accuracy.ranking_measured.median_regret);
    cr_expect_leq(accuracy.ranking_measured.p90_regret, 1.03, "%.3f", accuracy.ranking_measured.p90_regret);
    cr_expect_eq(accuracy.ranking_measured.groups, 55);
}

Test(published_runs, groups_say_which_half_constants_were_fitted_on) {
    cr_assert_gt(accuracy.step_by_half.count, 2);
    for (int i = 0; i < accuracy.step_by_half.count; i++) {
        const char *half = accuracy.step_by_half.rows[i].half;
        cr_expect(strcmp(half, "fitted") == 0 || strcmp(half, "held") == 0, "%s", half);
    }
}

static void score_adapters(void) {
    const AccuracyOptions options = {.runs_paths = (const char *const[]){FOLDER "lora.csv", NULL},
                                     .oom_paths = (const char *const[]){FOLDER "lora_oom.csv", NULL}};
    Error error = {0};
    cr_assert_eq(accuracy_run_once(&options, &arena, &accuracy, &error), STATUS_OK, "%s", error.message);
}

TestSuite(published_adapters, .init = score_adapters, .fini = forget);

// No constant was fitted to them: 4.2 and 9.9 % of 128 rows.
Test(published_adapters, are_predicted_within_5_percent_in_the_middle_and_11_at_the_90th_percentile) {
    cr_assert_gt(accuracy.step.n, 100);
    cr_assert_lt(accuracy.step.median_abs, 0.05);
    cr_assert_lt(accuracy.step.p90_abs, 0.11);
    cr_assert_gt(accuracy.step.in_interval, 0.85);
}

// 0.9 and 2.2 %; all 24 failures.
Test(published_adapters, need_what_is_predicted_within_2_percent_in_the_middle_and_4_at_the_90th_percentile) {
    cr_assert_gt(accuracy.memory.n, 100);
    cr_expect_lt(accuracy.memory.median_abs, 0.02, "%.3f", accuracy.memory.median_abs);
    cr_expect_lt(accuracy.memory.p90_abs, 0.04, "%.3f", accuracy.memory.p90_abs);
    cr_expect_eq(accuracy.oom.called_infeasible, accuracy.oom.n, "%d", accuracy.oom.called_infeasible);
    cr_expect_eq(accuracy.oom.called_feasible, accuracy.oom.feasible_rows);
}
