// Published runs of models with experts: no class gets worse than what RESULTS.md states. A bound is the stated figure
// and a little.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/accuracy/accuracy.h"

static Arena arena;
static Accuracy accuracy;

static void score_sample(void) {
    const AccuracyOptions options = {.runs_paths =
                                         (const char *const[]){NDTUNE_SOURCE_DIR "/tests/accuracy/runs/moe.csv", NULL}};
    Error error = {0};
    cr_assert_eq(accuracy_run(&options, NULL, &arena, &accuracy, &error), STATUS_OK, "%s", error.message);
}

static void forget(void) {
    arena_free(&arena);
}

TestSuite(runs_of_experts, .init = score_sample, .fini = forget);

Test(runs_of_experts, step_times_are_within_the_stated_errors) {
    static const struct {
        const char *target;
        double median, ninetieth;
    } stated[] = {{"megatron", 0.19, 0.22}, {"torchtitan", 0.20, 0.36}};
    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        const ErrorScore *score = NULL;
        for (int row = 0; row < accuracy.step_by_target.count; row++) {
            const ScoreRow *of = &accuracy.step_by_target.rows[row];
            score = strcmp(of->target, stated[i].target) == 0 ? &of->score : score;
        }
        cr_assert_not_null(score, "%s", stated[i].target);
        cr_expect_leq(score->median_abs, stated[i].median, "%s: %.3f", stated[i].target, score->median_abs);
        cr_expect_leq(score->p90_abs, stated[i].ninetieth, "%s: %.3f", stated[i].target, score->p90_abs);
    }
}
