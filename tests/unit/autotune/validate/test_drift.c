// What remains of measured times once the machine's drift is removed, against hand-computed cases.

#include <criterion/criterion.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>

#include "autotune/validate/drift.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(drift, .fini = forget);

static Drift under(const DriftLaw *law, const DriftRun *runs, int count, double now_s) {
    Drift drift;
    Error error = {0};
    cr_assert_eq(drift_under(law, runs, count, 2, now_s, &arena, &drift, &error), STATUS_OK, "%s", error.message);
    return drift;
}

// Of the difference between the two shapes.
static double difference_variance(const Drift *drift) {
    return drift->covariance[0] + drift->covariance[3] - 2 * drift->covariance[1];
}

Test(drift, on_a_machine_at_rest_a_shape_takes_the_mean_of_its_runs) {
    const DriftLaw rest = {.sd = 0, .time_s = 100, .noise_sd = 0.1};
    const DriftRun runs[] = {{0, 1.0, 0, 0}, {0, 1.2, 900, 0}, {1, 3.0, 7, 0}};
    const Drift drift = under(&rest, runs, 3, 1000);
    cr_assert_float_eq(drift.measured[0], 1.1, 1e-12);
    cr_assert_float_eq(drift.measured[1], 3.0, 1e-12);
    cr_assert_float_eq(drift.covariance[0], 0.01 / 2, 1e-12);
    cr_assert_float_eq(drift.covariance[1], 0, 1e-12);
    cr_assert_float_eq(drift.covariance[3], 0.01, 1e-12);
}

// Both in each of two hours, the second of which is slower by 0.3: four runs, two differences of 0.1.
Test(drift, shapes_that_ran_side_by_side_are_compared_whatever_the_hour) {
    const DriftLaw law = {.sd = 0.25, .time_s = 200, .noise_sd = 0.01};
    const DriftRun runs[] = {{0, 1.0, 0, 0}, {1, 1.1, 0, 0}, {0, 1.3, 9000, 0}, {1, 1.4, 9000, 0}};
    const Drift drift = under(&law, runs, 4, 9000);
    cr_assert_float_eq(drift.measured[1] - drift.measured[0], 0.1, 1e-9);
    cr_assert_float_eq(difference_variance(&drift), 2 * 1e-4 / 2, 1e-9);
}

// Hours apart they have effects of their own: variance 2 (0.25^2 + 0.01^2).
Test(drift, shapes_that_ran_hours_apart_are_hardly_compared) {
    const DriftLaw law = {.sd = 0.25, .time_s = 200, .noise_sd = 0.01};
    const DriftRun runs[] = {{0, 1.0, 0, 0}, {1, 0.8, 90000, 0}};
    const Drift drift = under(&law, runs, 2, 90000);
    cr_assert_float_eq(difference_variance(&drift), 2 * (0.0625 + 1e-4), 1e-9);
}

// A run of shape 0 just now says of d all but its noise: weight 0.04 / (0.04 + 0.01), left 0.04 - 0.04^2 / 0.05.
Test(drift, a_run_begun_now_leans_on_what_has_just_run) {
    const DriftLaw law = {.sd = 0.2, .time_s = 200, .noise_sd = 0.1};
    const DriftRun runs[] = {{0, 1.5, 50, 0}};
    const Drift drift = under(&law, runs, 1, 50);
    cr_assert_float_eq(drift.lean[0], 0.8, 1e-12);
    cr_assert_float_eq(drift.lean[1], 0, 1e-12);
    cr_assert_float_eq(drift.offset, 0.8 * 1.5, 1e-12);
    cr_assert_float_eq(drift.now_sd, sqrt(0.008), 1e-12);
}

enum { SHAPES = 2, ROUNDS = 12 };

// Rounds ten minutes apart, two seconds between the shapes; each round with an effect of its own.
static Drift learnt(double round_sd, double noise_sd) {
    DriftRun runs[SHAPES * ROUNDS];
    gsl_rng *generator = gsl_rng_alloc(gsl_rng_mt19937);
    for (int i = 0; i < ROUNDS; i++) {
        const double effect = gsl_ran_gaussian(generator, round_sd);
        for (int shape = 0; shape < SHAPES; shape++) {
            runs[i * SHAPES + shape] = (DriftRun){shape, shape * 0.05 + effect + gsl_ran_gaussian(generator, noise_sd),
                                                  600.0 * i + 2 * shape, 0};
        }
    }
    gsl_rng_free(generator);
    Drift drift;
    Error error = {0};
    cr_assert_eq(drift_learn(runs, SHAPES * ROUNDS, SHAPES, 600.0 * ROUNDS, &arena, &drift, &error), STATUS_OK, "%s",
                 error.message);
    return drift;
}

Test(drift, a_machine_that_drifts_is_seen_to_drift) {
    const Drift drift = learnt(0.2, 0.01);
    cr_assert_gt(drift.law.sd, 0.08);
    cr_assert_lt(drift.law.noise_sd, 0.03);
    cr_assert_float_eq(drift.measured[1] - drift.measured[0], 0.05, 0.02);
    cr_assert_lt(sqrt(difference_variance(&drift)), 0.02);
}

Test(drift, a_machine_at_rest_is_seen_to_rest) {
    const Drift drift = learnt(0, 0.02);
    cr_assert_lt(drift.law.sd, 0.03);
    cr_assert_float_eq(drift.law.noise_sd, 0.02, 0.01);
}

Test(drift, a_run_that_somebody_disturbed_counts_little) {
    const DriftRun runs[] = {{0, 1.00, 0, 0}, {1, 1.1, 1, 0}, {0, 1.01, 2, 0}, {1, 1.09, 3, 0},
                             {0, 0.99, 4, 0}, {1, 2.1, 5, 0}, {1, 1.1, 6, 0}};
    Drift drift;
    Error error = {0};
    cr_assert_eq(drift_learn(runs, 7, 2, 7, &arena, &drift, &error), STATUS_OK, "%s", error.message);
    cr_assert_float_eq(drift.measured[1] - drift.measured[0], 0.1, 0.03);
}

// Weights 1 / 0.01 and 1 / (0.01 + 0.09): the wild run counts a tenth.
Test(drift, a_run_whose_steps_scatter_counts_less) {
    const DriftLaw rest = {.sd = 0, .time_s = 100, .noise_sd = 0.1};
    const DriftRun runs[] = {{0, 1.0, 0, 0}, {0, 2.1, 900, 0.3}};
    const Drift drift = under(&rest, runs, 2, 1000);
    cr_assert_float_eq(drift.measured[0], 1.1, 1e-12);
    cr_assert_float_eq(drift.own_sd, sqrt(0.045), 1e-12);
}

Test(drift, nothing_measured_is_nothing_believed) {
    Drift drift;
    Error error = {0};
    cr_assert_eq(drift_learn(NULL, 0, 2, 0, &arena, &drift, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(drift.lean[0], 0);
    cr_assert_gt(drift.now_sd, 0.05);
}
