// The joint belief against cases worked out by hand.

#include <criterion/criterion.h>
#include <math.h>

#include "autotune/tune/belief.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(belief, .fini = forget);

// One factor with variance 0.04, misfit 0.1, noise 0.1; both shapes move with the factor.
static TuneModel common_factor(void) {
    return (TuneModel){.factors = 1, .covariance = {0.04}, .misfit_sd = 0.1, .noise_sd = 0.1};
}

static Belief formed(const TuneModel *model, const BeliefShape *shapes, int count) {
    Belief belief;
    belief_form(model, shapes, count, &arena, &belief);
    return belief;
}

Test(belief, shapes_that_never_ran_share_the_factor_and_have_a_misfit_each) {
    const TuneModel model = common_factor();
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}}, {.predicted = 2, .gradient = {0.5}}};
    const Belief belief = formed(&model, shapes, 2);
    cr_assert_float_eq(belief.mean[0], 1, 1e-12);
    cr_assert_float_eq(belief.mean[1], 2, 1e-12);
    cr_assert_float_eq(belief.covariance[0], 0.04 + 0.01, 1e-12);
    cr_assert_float_eq(belief.covariance[1], 0.5 * 0.04, 1e-12);
    cr_assert_float_eq(belief.covariance[3], 0.25 * 0.04 + 0.01, 1e-12);
}

// Misfit and noise are equal, so one run counts half: mean 1 + 0.5 * 0.4; given theta its variance is 0.01 * 0.5.
Test(belief, a_run_counts_by_misfit_against_noise) {
    const TuneModel model = common_factor();
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}, .runs = 1, .measured = 1.4},
                                  {.predicted = 2, .gradient = {1}}};
    const Belief belief = formed(&model, shapes, 2);
    cr_assert_float_eq(belief.mean[0], 1.2, 1e-12);
    cr_assert_float_eq(belief.mean[1], 2, 1e-12);
    cr_assert_float_eq(belief.covariance[0], 0.25 * 0.04 + 0.005, 1e-12);
    cr_assert_float_eq(belief.covariance[1], 0.5 * 0.04, 1e-12);
}

// 100 runs of noise 0.1 leave 0.01: share 0.01 / (0.01 + 0.0001).
Test(belief, many_runs_leave_nothing_to_the_model) {
    const TuneModel model = common_factor();
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}, .runs = 100, .measured = 3}};
    const Belief belief = formed(&model, shapes, 1);
    cr_assert_float_eq(belief.mean[0], 1 + 2 * 0.01 / 0.0101, 1e-12);
    cr_assert_lt(belief.covariance[0], 1.1e-4);
}

Test(belief, draws_have_the_mean_and_covariance_of_the_belief) {
    enum { DRAWS = 20000 };
    const TuneModel model = common_factor();
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}}, {.predicted = 2, .gradient = {-1}}};
    const Belief belief = formed(&model, shapes, 2);
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
    const BeliefShape shapes[] = {{.predicted = 1, .gradient = {1}}, {.predicted = 2, .gradient = {1}}};
    const Belief belief = formed(&model, shapes, 2);
    double first[8], again[8], other[8];
    cr_assert_eq(belief_draw(&belief, 3, 4, first, NULL), STATUS_OK);
    cr_assert_eq(belief_draw(&belief, 3, 4, again, NULL), STATUS_OK);
    cr_assert_eq(belief_draw(&belief, 4, 4, other, NULL), STATUS_OK);
    for (int i = 0; i < 8; i++) {
        cr_assert_eq(first[i], again[i]);
        cr_assert_neq(first[i], other[i]);
    }
}
