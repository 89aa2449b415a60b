// Laws of the fit over machines drawn at random. The seed is printed; NDTUNE_SEED repeats a failure.

#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/autotune/calibrate/generated_runs.h"

enum { MACHINES = 40, TRUTHS = 4 };

static const char *const moved[TRUTHS] = {"gemm_rate", "memory_rate", "node_bandwidth", "collective_overhead"};

// A machine from the prior, its runs, and the fit of them.
static void calibrate_machine(Generated *generated, Truth truth[TRUTHS], uint64_t *seed, Arena *arena,
                              Calibration *calibration) {
    Error error = {0};
    uint64_t any = 1;
    generated_begin(generated, "ndtune", arena);
    generated_runs(generated, NULL, 0, 1, 0, 0, &any);
    CalibrationInput input = generated_input(generated);
    cr_assert_eq(calibrate_fit(&input, arena, calibration, &error), STATUS_OK, "%s", error.message);
    for (int i = 0; i < TRUTHS; i++) {
        const int at = generated_coordinate(&calibration->posterior, moved[i]);
        truth[i] = (Truth){moved[i], calibration->posterior.at[at].prior_sd * generated_normal(seed)};
    }
    generated_runs(generated, truth, TRUTHS, 2, 0.04, 0.03, seed);
    input = generated_input(generated);
    cr_assert_eq(calibrate_fit(&input, arena, calibration, &error), STATUS_OK, "%s", error.message);
}

Test(calibrate_properties, intervals_of_parameters_and_of_times_cover_what_they_promise) {
    uint64_t seed = generated_seed();
    int held = 0, times_held = 0;
    for (int machine = 0; machine < MACHINES; machine++) {
        Arena arena = {0}, scratch = {0};
        Generated *generated = ARENA_NEW(&arena, Generated);
        Calibration calibration;
        Truth truth[TRUTHS];
        calibrate_machine(generated, truth, &seed, &arena, &calibration);
        const CalibrationPosterior *posterior = &calibration.posterior;
        for (int i = 0; i < TRUTHS; i++) {
            const int at = generated_coordinate(posterior, truth[i].name);
            held += fabs(posterior->mean[at] - truth[i].log_factor) < 1.2816 * posterior->at[at].sd;
        }
        CalibrationCase unseen = generated->cases[machine % GENERATED_SHAPES];  // a longer sequence than any that ran
        unseen.plan.seq = 1024;
        CalibrationSensitivity here;
        Error error = {0};
        cr_assert_eq(calibrate_sensitivity(posterior, &unseen, &scratch, &here, &error), STATUS_OK);
        const double measured =
            log(generated_step_s(generated, &unseen, truth, TRUTHS)) + 0.04 * generated_normal(&seed);
        times_held += fabs(measured - here.log_step) < 1.2816 * calibration_log_sd(posterior, &here);
        arena_free(&scratch);
        arena_free(&arena);
    }
    // 80 % of 160 and of 40, less 3 and 2.5 sigma
    cr_assert_geq(held, 113, "%d of %d", held, MACHINES * TRUTHS);
    cr_assert_geq(times_held, 26, "%d of %d", times_held, MACHINES);
}

Test(calibrate_properties, calibrated_predictions_beat_the_profile_on_every_machine_that_differs_from_it) {
    uint64_t seed = generated_seed();
    for (int machine = 0; machine < MACHINES / 4; machine++) {
        Arena arena = {0};
        Generated *generated = ARENA_NEW(&arena, Generated);
        Calibration calibration;
        Truth truth[TRUTHS];
        calibrate_machine(generated, truth, &seed, &arena, &calibration);
        cr_assert_lt(calibration.fit.after_median, calibration.fit.before_median + 0.01, "machine %d: %g, before %g",
                     machine, calibration.fit.after_median, calibration.fit.before_median);
        arena_free(&arena);
    }
}
