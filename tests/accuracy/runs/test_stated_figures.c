// What ACCURACY.md and README.md say of the published runs is what their scores are, to one step of the last digit
// printed: a change of predictions that moves a figure further writes it down. First scores are history and not here.

#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/sorted.h"
#include "sim/frameworks/framework.h"
#include "tests/support/kept_predictions.h"

#define FOLDER NDTUNE_SOURCE_DIR "/tests/accuracy/runs/"

enum { MOST_BYTES = 1 << 16 };  // of a page

static const double PER_CENT = 100;

static Arena arena;
static Accuracy accuracy;
static char *page, *front;

static char *text_of(const char *name) {
    FILE *file = fopen(arena_format(&arena, NDTUNE_SOURCE_DIR "/%s", name), "rb");
    cr_assert_not_null(file, "%s", name);
    char *text = ARENA_ARRAY(&arena, char, MOST_BYTES);
    const size_t length = fread(text, 1, MOST_BYTES - 1, file);
    fclose(file);
    cr_assert(length > 0 && length < MOST_BYTES - 1, "%s", name);
    text[length] = '\0';
    return text;
}

static void score_sample(void) {
    const AccuracyOptions options = {.runs_paths = (const char *const[]){FOLDER "runs.csv", NULL},
                                     .oom_paths = (const char *const[]){FOLDER "oom.csv", NULL},
                                     .groups_paths = (const char *const[]){FOLDER "groups.csv", NULL}};
    Error error = {0};
    cr_assert_eq(accuracy_run_once(&options, &arena, &accuracy, &error), STATUS_OK, "%s", error.message);
    page = text_of("autotune/accuracy/ACCURACY.md");
    front = text_of("README.md");
}

static void forget(void) {
    arena_free(&arena);
}

TestSuite(stated_figures, .init = score_sample, .fini = forget);

// Behind the number, which has a sign where one stands; *step is one of its last digit, 0 of a whole number.
static const char *number(const char *at, double *value, double *step) {
    char *end;
    *value = strtod(at, &end);
    const char *point = memchr(at, '.', (size_t)(end - at));
    *step = point ? pow(10, -(double)(end - point - 1)) : 0;
    return end;
}

static bool starts_number(const char *at) {
    return isdigit((unsigned char)*at) || ((*at == '-' || *at == '+') && isdigit((unsigned char)at[1]));
}

// Blanks and ends of lines are one.
static bool says_at(const char *text, const char *said) {
    while (*said) {
        if (starts_number(text) && starts_number(said)) {
            double is, stated, step, other;
            said = number(said, &is, &step);
            text = number(text, &stated, &other);
            if (fabs(is - stated) > 1.01 * step || step != other) {
                return false;
            }
        } else if (isspace((unsigned char)*text) && isspace((unsigned char)*said)) {
            text += strspn(text, " \n");
            said += strspn(said, " \n");
        } else if (*text++ != *said++) {
            return false;
        }
    }
    return true;
}

static void expect_said(const char *text, const char *said) {
    bool found = false;
    for (const char *at = text; *at && !found; at++) {
        found = says_at(at, said);
    }
    cr_expect(found, "not there: %s", said);
}

#define SAYS(text, ...) expect_said(text, arena_format(&arena, __VA_ARGS__))

static void says_step(const char *target, const ErrorScore *score) {
    SAYS(page, "| %s | %d | %.1f %% | %.1f %% | %+.1f %% | %.1f %% | %.1f %%, %.1f %% |\n", target, score->n,
         PER_CENT * score->median_abs, PER_CENT * score->p90_abs, PER_CENT * score->bias, PER_CENT * score->in_interval,
         PER_CENT * score->baseline_median_abs, PER_CENT * score->baseline_p90_abs);
}

Test(stated_figures, step_times_by_target_are_those_that_the_runs_have) {
    const ErrorScore *all = &accuracy.step, *measured = &accuracy.step_measured;
    for (int i = 0; i < accuracy.step_by_target.count; i++) {
        says_step(accuracy.step_by_target.rows[i].target, &accuracy.step_by_target.rows[i].score);
    }
    says_step("all", all);
    SAYS(page, "(%d runs, %d scored, %d failures,", accuracy.runs.count, accuracy.scored, accuracy.failures.count);
    SAYS(page, "%d of Megatron's", all->n - measured->n);
    SAYS(page, "the %d that were measured score %.1f %%, %.1f %% at the 90th percentile, %.1f %% inside the interval",
         measured->n, PER_CENT * measured->median_abs, PER_CENT * measured->p90_abs, PER_CENT * measured->in_interval);
    SAYS(front,
         "%d published runs of six frameworks: median error %.1f %%, 90th percentile %.1f %%; one constant MFU: "
         "%.1f %%, %.1f %%.",
         all->n, PER_CENT * all->median_abs, PER_CENT * all->p90_abs, PER_CENT * all->baseline_median_abs,
         PER_CENT * all->baseline_p90_abs);
}

static double middle(double *values, int count) {
    sorted_doubles(values, count);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

typedef struct ChipScore {
    int runs, largest_world;
    double error, bias;
} ChipScore;

static ChipScore score_chip(const char *framework, const char *accelerator) {
    double *errors = ARENA_ARRAY(&arena, double, accuracy.runs.count);
    double *sizes = ARENA_ARRAY(&arena, double, accuracy.runs.count);
    ChipScore score = {0};
    for (int i = 0; i < accuracy.runs.count; i++) {
        const RunCase *run = &accuracy.cases[i];
        if (accuracy_is_measured(run) && strcmp(run->request.target->name, framework) == 0 &&
            strcmp(run->request.cluster.accelerator.name, accelerator) == 0) {
            errors[score.runs] = accuracy_step_error(run);
            sizes[score.runs++] = fabs(accuracy_step_error(run));
            score.largest_world = run->request.world > score.largest_world ? run->request.world : score.largest_world;
        }
    }
    cr_assert_gt(score.runs, 0, "%s on %s", framework, accelerator);
    score.error = middle(sizes, score.runs);
    score.bias = middle(errors, score.runs);
    return score;
}

// ndtune says it of the evidence on a chip (autotune/predict/evidence.h), to a percent.
Test(stated_figures, what_is_said_of_each_chip_is_what_the_runs_say) {
    int count = 0, runs = 0;
    const Framework *const *frameworks = framework_list(&count);
    for (int i = 0; i < count; i++) {
        const char *name = frameworks[i]->name;
        for (const MeasuredChip *chip = frameworks[i]->measured; chip && chip->accelerator; chip++) {
            const ChipScore is = score_chip(name, chip->accelerator);
            cr_expect_eq(is.runs, chip->runs, "%s on %s: %d runs", name, chip->accelerator, is.runs);
            cr_expect_eq(is.largest_world, chip->largest_world, "%s on %s", name, chip->accelerator);
            cr_expect_float_eq(is.bias, chip->bias, 0.01, "%s on %s: bias %.3f", name, chip->accelerator, is.bias);
            cr_expect_float_eq(is.error, chip->error, 0.01, "%s on %s: error %.3f", name, chip->accelerator, is.error);
            SAYS(page, "| %s | %s | %d | %d | %.1f %% | %+.1f %% |\n", name, chip->accelerator, is.runs,
                 is.largest_world, PER_CENT * is.error, PER_CENT * is.bias);
            runs += is.runs;
        }
    }
    cr_assert_eq(runs, accuracy.step_measured.n, "a measured run is on no chip that a framework names");
}

static double share(int part, int of) {
    return PER_CENT * part / of;
}

Test(stated_figures, memory_and_verdicts_are_those_that_the_runs_have) {
    const OomScore *oom = &accuracy.oom;
    SAYS(page, "where the kind of figure is known: median %.1f %% over %d runs;", PER_CENT * accuracy.memory.median_abs,
         accuracy.memory.n);
    for (int i = 0; i < accuracy.memory_by.count; i++) {
        const ScoreRow *row = &accuracy.memory_by.rows[i];
        if (strcmp(row->target, "nanotron") == 0) {
            SAYS(page, "nanotron's reserved bytes %.1f %% over %d\n", PER_CENT * row->score.median_abs, row->score.n);
        }
    }
    const double infeasible = share(oom->called_infeasible, oom->n),
                 feasible = share(oom->called_feasible, oom->feasible_rows);
    SAYS(page, "infeasible: %d of %d (%.1f %%); certain ones %d of %d (%.1f %%)\n", oom->called_infeasible, oom->n,
         infeasible, oom->certain_called_infeasible, oom->certain, share(oom->certain_called_infeasible, oom->certain));
    SAYS(page, "feasible: %d of %d whose memory size is known (%.1f %%)\n", oom->called_feasible, oom->feasible_rows,
         feasible);
    SAYS(front, "%.1f %% of %d failures called infeasible, %.1f %% of what ran called feasible;", infeasible, oom->n,
         feasible);
}

Test(stated_figures, regrets_are_those_that_the_groups_have) {
    const RankingScore *ranking = &accuracy.ranking, *measured = &accuracy.ranking_measured;
    SAYS(page,
         "regret over %d groups: median %.3f, 90th percentile %.3f, worst %.3f in %s; Kendall's tau: median %.2f;",
         ranking->groups, ranking->median_regret, ranking->p90_regret, ranking->worst_regret, ranking->worst_group,
         ranking->median_kendall_tau);
    SAYS(page,
         "a plan drawn blindly: median %.3f, 90th percentile %.3f; over the %d groups of measured runs %.3f and "
         "%.3f\n",
         ranking->baseline_median_regret, ranking->baseline_p90_regret, measured->groups, measured->median_regret,
         measured->p90_regret);
    SAYS(front, "regret over %d groups %.3f in the middle", ranking->groups, ranking->median_regret);
}
