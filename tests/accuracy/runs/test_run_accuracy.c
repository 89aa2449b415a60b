// The committed sample of published runs: nothing is lost on the way, and the predictions know more than one constant.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "autotune/accuracy/accuracy.h"

#define FOLDER NDTUNE_SOURCE_DIR "/tests/accuracy/runs/"

static Arena arena;
static Accuracy accuracy;

static void score_sample(void) {
    const AccuracyOptions options = {
        .runs_path = FOLDER "runs.csv", .oom_path = FOLDER "oom.csv", .groups_path = FOLDER "groups.csv"};
    Error error = {0};
    cr_assert_eq(accuracy_run(&options, NULL, &arena, &accuracy, &error), STATUS_OK, "%s", error.message);
}

static void forget(void) {
    arena_free(&arena);
}

TestSuite(published_runs, .init = score_sample, .fini = forget, .timeout = 120);

Test(published_runs, every_row_is_scored_or_skipped_with_a_reason) {
    int skipped = 0;
    for (int i = 0; i < accuracy.skip_count; i++) {
        cr_expect_str_not_empty(accuracy.skips[i].reason);
        skipped += accuracy.skips[i].runs + accuracy.skips[i].failures;
    }
    cr_assert_eq(accuracy.scored + accuracy.oom.n + skipped, accuracy.runs.count + accuracy.failures.count);
}

Test(published_runs, the_targets_of_the_sample_are_predicted) {
    static const char *const targets[] = {"accelerate", "megatron", "nanotron", "torchtitan"};
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
