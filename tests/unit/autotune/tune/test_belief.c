// The joint belief against hand-computed cases.

#include <criterion/criterion.h>
#include <math.h>

#include "autotune/tune/belief.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(belief, .fini = forget);

// One factor with variance 0.04, misfit 0.1; both shapes move with the factor.
static TuneModel common_factor(void) {
    return (TuneModel){.factors = 1, .covariance = {0.04}, .misfit_sd = 0.1};
}

// What runs with noise 0.1 say of two shapes on a machine that does not drift.
typedef struct Said {
    double measured[2], covariance[4], lean[2];
    Drift drift;
} Said;

static const Drift *said(Said *said, const double measured[2], const int runs[2]) {
    for (int i = 0; i < 2; i++) {
        said->measured[i] = measured[i];
        said->covariance[3 * i] = runs[i] > 0 ? 0.01 / runs[i] : 0;
    }
    said->drift = (Drift){.shapes = 2,
                          .law = {.noise_sd = 0.1},
                          .measured = said->measured,
                          .covariance = said->covariance,
                          .lean = said->lean};
    return &said->drift;
}

static Belief formed(const TuneModel *model, const BeliefShape *shapes, const double measured[2]) {
    Belief belief;
    Said *all = ARENA_NEW(&arena, Said);
    const int runs[] = {shapes[0].runs, shapes[1].runs};
    Error error = {0};
    cr_assert_eq(belief_form(model, shapes, 2, said(all, measured, runs), &arena, &belief, &error), STATUS_OK, "%s",
                 error.message);
    return belief;
}

static const double nothing[2];

Test(belief, shapes_that_never_ran_share_the_factor_and_have_a_misfit_each) {
    const TuneModel model = common_factor();
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}, .tokens = 1},
                                  {.predicted = 2, .gradient = {0.5}, .tokens = 1}};
    const Belief belief = formed(&model, shapes, nothing);
    cr_assert_float_eq(belief.mean[0], 1, 1e-12);
    cr_assert_float_eq(belief.mean[1], 2, 1e-12);
    cr_assert_float_eq(belief.covariance[0], 0.04 + 0.01, 1e-12);
    cr_assert_float_eq(belief.covariance[1], 0.5 * 0.04, 1e-12);
    cr_assert_float_eq(belief.covariance[3], 0.25 * 0.04 + 0.01, 1e-12);
}

// Misfit and noise are equal, so one run counts half: mean 1 + 0.5 * 0.4; given theta its variance is 0.01 * 0.5.
Test(belief, a_run_counts_by_misfit_against_noise) {
    const TuneModel model = common_factor();
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}, .tokens = 1, .runs = 1},
                                  {.predicted = 2, .gradient = {1}, .tokens = 1}};
    const Belief belief = formed(&model, shapes, (double[]){1.4, 0});
    cr_assert_float_eq(belief.mean[0], 1.2, 1e-12);
    cr_assert_float_eq(belief.mean[1], 2, 1e-12);
    cr_assert_float_eq(belief.covariance[0], 0.25 * 0.04 + 0.005, 1e-12);
    cr_assert_float_eq(belief.covariance[1], 0.5 * 0.04, 1e-12);
}

// 100 runs of noise 0.1 leave 0.01: share 0.01 / (0.01 + 0.0001).
Test(belief, many_runs_leave_nothing_to_the_model) {
    const TuneModel model = common_factor();
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}, .tokens = 1, .runs = 100}, {.tokens = 1}};
    const Belief belief = formed(&model, shapes, (double[]){3, 0});
    cr_assert_float_eq(belief.mean[0], 1 + 2 * 0.01 / 0.0101, 1e-12);
    cr_assert_lt(belief.covariance[0], 1.1e-4);
}

// d = 0.3 - 0.5 x of the first shape, whose variance is 0.05 and mean 1: the next run of it is 0.5 x + 0.3, expected
// 0.8, variance 0.25 * 0.05 + 0.01; of the second, which shares 0.04 with it, 2 + 0.3 - 0.5.
Test(belief, a_run_begun_now_has_the_effect_of_now) {
    const TuneModel model = common_factor();
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}, .tokens = 1},
                                  {.predicted = 2, .gradient = {1}, .tokens = 1}};
    Belief belief = formed(&model, shapes, nothing);
    const double lean[] = {0.5, 0};
    belief.lean = lean;
    belief.offset = 0.3;
    double covariance[2], variance;
    cr_assert_float_eq(belief_next_run(&belief, 0, covariance, &variance), 0.8, 1e-12);
    cr_assert_float_eq(variance, 0.25 * 0.05 + 0.01, 1e-12);
    cr_assert_float_eq(covariance[0], 0.025, 1e-12);
    cr_assert_float_eq(covariance[1], 0.02, 1e-12);
    cr_assert_float_eq(belief_next_run(&belief, 1, covariance, &variance), 1.8, 1e-12);
    cr_assert_float_eq(variance, 0.05 - 2 * 0.5 * 0.04 + 0.25 * 0.05 + 0.01, 1e-12);
}

Test(belief, draws_have_the_mean_and_covariance_of_the_belief) {
    enum { DRAWS = 20000 };
    const TuneModel model = common_factor();
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}, .tokens = 1},
                                  {.predicted = 2, .gradient = {-1}, .tokens = 1}};
    const Belief belief = formed(&model, shapes, nothing);
    static double draws[DRAWS * 2];
    Error error = {0};
    cr_assert_eq(belief_draw(&belief, 7, DRAWS, draws, &error), STATUS_OK, "%s", error.message);
    double mean[2] = {0}, product = 0, square = 0;
    for (int i = 0; i < DRAWS; i++) {
        mean[0] += draws[2 * i] / DRAWS;
        mean[1] += draws[2 * i + 1] / DRAWS;
        product += (draws[2 * i] - 1) * (draws[2 * i + 1] - 2) / DRAWS;
        square += (draws[2 * i] - 1) * (draws[2 * i] - 1) / DRAWS;
    }
    const double five_sigma = 5 * sqrt(0.05 / DRAWS);  // of a mean of variance 0.05
    cr_assert_float_eq(mean[0], 1, five_sigma);
    cr_assert_float_eq(mean[1], 2, five_sigma);
    cr_assert_float_eq(square, 0.05, 5 * 0.05 * sqrt(2.0 / DRAWS));
    cr_assert_float_eq(product, -0.04, 5 * 0.05 * sqrt(2.0 / DRAWS));
}

Test(belief, the_same_seed_gives_the_same_draws) {
    const TuneModel model = common_factor();
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}, .tokens = 1},
                                  {.predicted = 2, .gradient = {1}, .tokens = 1}};
    const Belief belief = formed(&model, shapes, nothing);
    double first[8], again[8], other[8];
    cr_assert_eq(belief_draw(&belief, 3, 4, first, NULL), STATUS_OK);
    cr_assert_eq(belief_draw(&belief, 3, 4, again, NULL), STATUS_OK);
    cr_assert_eq(belief_draw(&belief, 4, 4, other, NULL), STATUS_OK);
    for (int i = 0; i < 8; i++) {
        cr_assert_eq(first[i], again[i]);
        cr_assert_neq(first[i], other[i]);
    }
}
