// What a calibration finds, reports and refuses, on runs of known machines.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/autotune/calibrate/generated_runs.h"

static Arena arena;
static Generated generated;
static Calibration calibration;
static Error error;

static void begin(void) {
    arena = (Arena){0};
    error = (Error){0};
    generated_begin(&generated, "ndtune", &arena);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(calibrate, .init = begin, .fini = end);

static void fit(bool hold_out) {
    CalibrationInput input = generated_input(&generated);
    input.hold_out = hold_out;
    cr_assert_eq(calibrate_fit(&input, &arena, &calibration, &error), STATUS_OK, "%s", error.message);
}

static double found(const char *name) {
    return calibration.posterior.mean[generated_coordinate(&calibration.posterior, name)];
}

static const CalibrationCoordinate *coordinate(const char *name) {
    return &calibration.posterior.at[generated_coordinate(&calibration.posterior, name)];
}

Test(calibrate, runs_that_equal_the_prediction_leave_the_profile_as_it_is) {
    uint64_t seed = 1;
    generated_runs(&generated, NULL, 0, 2, 0, 0, &seed);
    fit(false);
    for (int i = 0; i < calibration.posterior.count; i++) {
        cr_assert_float_eq(calibration.posterior.mean[i], 0, 1e-3, "%s", calibration.posterior.at[i].parameter->name);
    }
}

Test(calibrate, a_slower_chip_is_found) {
    const Truth truth[] = {{"gemm_rate", -0.3}};
    uint64_t seed = 2;
    generated_runs(&generated, truth, 1, 3, 0.01, 0.01, &seed);
    fit(false);
    const double slower = found("machine_speed") + found("gemm_rate");  // step times alone see most of it as one effect
    cr_assert_float_eq(slower, -0.3, 0.1, "found %g", slower);
    cr_assert_neq(coordinate("machine_speed")->verdict, VERDICT_UNTAUGHT, "%s",
                  coordinate("machine_speed")->verdict_words);
}

Test(calibrate, late_ranks_are_told_from_a_slow_chip) {
    const Truth truth[] = {{"collective_overhead", 1.0}};
    uint64_t seed = 3;
    generated_runs(&generated, truth, 1, 3, 0.01, 0.01, &seed);
    fit(false);
    cr_assert_float_eq(found("gemm_rate"), 0, 0.1, "gemm %g", found("gemm_rate"));
    cr_assert_lt(calibration.fit.after_median, 0.05);
    cr_assert_gt(found("collective_overhead") - found("node_bandwidth"), 0.5, "overhead %g, bandwidth %g",
                 found("collective_overhead"), found("node_bandwidth"));
}

Test(calibrate, what_the_runs_do_not_move_stays_at_its_prior_and_is_said_so) {
    uint64_t seed = 4;
    generated_runs(&generated, NULL, 0, 2, 0.01, 0.01, &seed);
    fit(false);
    const CalibrationCoordinate *at = coordinate("host_launch");  // lanes in series: the host is not waited for
    cr_assert_eq(at->verdict, VERDICT_UNTAUGHT);
    cr_assert_eq(at->shapes, 0);
    cr_assert_float_eq(at->sd, at->prior_sd, 1e-9);
    cr_assert(strstr(at->verdict_words, "no run"), "%s", at->verdict_words);
}

Test(calibrate, a_parameter_taught_by_one_set_of_runs_is_marked) {
    uint64_t seed = 5;
    generated_runs(&generated, NULL, 0, 2, 0.01, 0.01, &seed);
    fit(false);
    cr_assert_eq(coordinate("machine_speed")->sets, 1);
    cr_assert(strstr(coordinate("machine_speed")->verdict_words, "one run set only"));
}

Test(calibrate, one_wild_run_changes_little_and_is_named) {
    const Truth truth[] = {{"gemm_rate", -0.2}};
    uint64_t seed = 6;
    generated_runs(&generated, truth, 1, 3, 0.01, 0.01, &seed);
    fit(false);
    const double before = found("gemm_rate");
    generated.samples[4].step_s *= 5;
    fit(false);
    cr_assert_float_eq(found("gemm_rate"), before, 0.03, "%g without, %g with", before, found("gemm_rate"));
    cr_assert_eq(calibration.outlier_count, 1, "%d", calibration.outlier_count);
    cr_assert_str_eq(calibration.outliers[0].id, generated.samples[4].id);
    cr_assert(calibration.outliers[0].against_repeats);
}

Test(calibrate, a_shape_that_the_others_contradict_is_named) {
    uint64_t seed = 7;
    generated_runs(&generated, NULL, 0, 1, 0.01, 0.01, &seed);
    generated.samples[6].step_s *= 3;
    fit(false);
    cr_assert_eq(calibration.outlier_count, 1, "%d", calibration.outlier_count);
    cr_assert_str_eq(calibration.outliers[0].id, generated.samples[6].id);
    cr_assert_not(calibration.outliers[0].against_repeats);
}

Test(calibrate, the_order_of_the_runs_changes_nothing) {
    const Truth truth[] = {{"gemm_rate", -0.2}, {"memory_rate", 0.2}};
    uint64_t seed = 8;
    generated_runs(&generated, truth, 2, 2, 0.03, 0.02, &seed);
    fit(true);
    const Calibration first = calibration;
    for (int i = generated.count - 1; i > 0; i--) {
        const int other = (int)(generated_uniform(&seed) * (i + 1));
        const CalibrationSample kept = generated.samples[i];
        generated.samples[i] = generated.samples[other];
        generated.samples[other] = kept;
    }
    fit(true);
    for (int i = 0; i < first.posterior.count; i++) {
        cr_assert_eq(memcmp(&first.posterior.mean[i], &calibration.posterior.mean[i], sizeof(double)), 0);
        cr_assert_eq(memcmp(&first.posterior.at[i].sd, &calibration.posterior.at[i].sd, sizeof(double)), 0);
    }
    cr_assert_eq(memcmp(&first.held_out, &calibration.held_out, sizeof first.held_out), 0);
}

Test(calibrate, the_number_of_threads_changes_nothing) {
    const Truth truth[] = {{"gemm_rate", -0.2}};
    uint64_t seed = 9;
    generated_runs(&generated, truth, 1, 2, 0.03, 0.02, &seed);
    fit(false);
    const CalibrationPosterior first = calibration.posterior;
    CalibrationInput input = generated_input(&generated);
    input.threads = 1;
    cr_assert_eq(calibrate_fit(&input, &arena, &calibration, &error), STATUS_OK);
    cr_assert_eq(memcmp(first.mean, calibration.posterior.mean, sizeof first.mean), 0);
}

Test(calibrate, held_out_error_falls_where_the_profile_was_wrong) {
    const Truth truth[] = {{"gemm_rate", -0.4}, {"memory_rate", -0.3}, {"collective_overhead", 0.6}};
    uint64_t seed = 10;
    generated_runs(&generated, truth, 3, 2, 0.02, 0.02, &seed);
    fit(true);
    cr_assert_eq(calibration.held_out.shapes, GENERATED_SHAPES);
    cr_assert_gt(calibration.held_out.before_median, 0.15);
    cr_assert_lt(calibration.held_out.after_median, 0.06, "%g", calibration.held_out.after_median);
}

Test(calibrate, a_held_out_shape_does_not_teach_its_own_prediction) {
    uint64_t seed = 11;
    generated_runs(&generated, NULL, 0, 1, 0, 0.01, &seed);
    generated.samples[3].step_s *= 2;  // nothing else knows
    fit(true);
    const CalibrationShape *shape = &calibration.shapes[calibration.shape_of[3]];
    cr_assert_float_eq(log(shape->held_out_s / shape->before_s), 0, 0.05, "%g of %g", shape->held_out_s,
                       shape->before_s);
}

Test(calibrate, a_held_out_prediction_is_that_of_a_fit_without_the_shape) {
    const Truth truth[] = {{"gemm_rate", -0.3}, {"collective_overhead", 0.5}};
    uint64_t seed = 19;
    generated_runs(&generated, truth, 2, 1, 0.05, 0.02, &seed);
    fit(true);
    const CalibrationShape left_out = calibration.shapes[calibration.shape_of[8]];
    generated.samples[8] = generated.samples[--generated.count];
    fit(false);
    Arena scratch = {0};
    CalibrationSensitivity here;
    cr_assert_eq(calibrate_sensitivity(&calibration.posterior, &left_out.what, &scratch, &here, &error), STATUS_OK);
    cr_assert_float_eq(exp(here.log_step) / left_out.held_out_s, 1, 0.01, "%g, held out %g", exp(here.log_step),
                       left_out.held_out_s);
    arena_free(&scratch);
}

Test(calibrate, a_machine_that_is_slower_by_a_factor_is_believed_in_spite_of_a_measured_profile) {
    const Truth truth[] = {{"machine_speed", -1.2}};
    uint64_t seed = 20;
    generated_runs(&generated, truth, 1, 2, 0.05, 0.05, &seed);
    fit(true);
    cr_assert_float_eq(found("machine_speed"), -1.2, 0.25, "%g", found("machine_speed"));
    cr_assert_eq(coordinate("machine_speed")->verdict, VERDICT_IDENTIFIED);
    cr_assert_lt(calibration.held_out.after_median, 0.1, "%g", calibration.held_out.after_median);
}

Test(calibrate, too_few_plans_are_refused_in_one_sentence) {
    uint64_t seed = 12;
    generated_runs(&generated, NULL, 0, 2, 0, 0, &seed);
    generated.count = 2;  // both of one plan
    const CalibrationInput input = generated_input(&generated);
    cr_assert_eq(calibrate_fit(&input, &arena, &calibration, &error), STATUS_USAGE);
    cr_assert_str_eq(error.message,
                     "2 runs of 1 plan with a step time: a calibration needs runs of at least 2 different plans");
}

Test(calibrate, spans_tell_what_step_times_cannot) {
    const Truth truth[] = {{"attention_rate", -0.3}};
    uint64_t seed = 13;
    generated_runs(&generated, truth, 1, 1, 0.03, 0.03, &seed);
    fit(false);
    const double without = coordinate("attention_rate")->sd;
    generated_spans(&generated, truth, 1);
    fit(false);
    cr_assert_eq(calibration.span_runs, generated.count);
    cr_assert_lt(coordinate("attention_rate")->sd, 0.5 * without, "%g of %g", coordinate("attention_rate")->sd,
                 without);
    cr_assert_float_eq(found("attention_rate"), -0.3, 0.1, "%g", found("attention_rate"));
}

Test(calibrate, the_gradient_is_what_the_prediction_does) {
    uint64_t seed = 14;
    generated_runs(&generated, NULL, 0, 1, 0, 0, &seed);
    fit(false);
    Arena scratch = {0};
    CalibrationSensitivity here;
    cr_assert_eq(calibrate_sensitivity(&calibration.posterior, &generated.cases[12], &scratch, &here, &error),
                 STATUS_OK);
    const int gemm = generated_coordinate(&calibration.posterior, "gemm_rate");
    const Truth slower[] = {{"gemm_rate", calibration.posterior.mean[gemm] - 0.1}};
    const double then_s = generated_step_s(&generated, &generated.cases[12], slower, 1);
    cr_assert_float_eq(here.log_step - 0.1 * here.gradient[gemm], log(then_s), 0.01);
    cr_assert_lt(here.gradient[gemm], -0.3);  // most of a step is GEMMs
    arena_free(&scratch);
}

// Has it a Cholesky factor?
static bool is_positive(const double *matrix, int n) {
    double left[CALIBRATION_MAX * CALIBRATION_MAX];
    memcpy(left, matrix, (size_t)(n * n) * sizeof *left);
    for (int k = 0; k < n; k++) {
        if (!(left[k * n + k] > 0)) {
            return false;
        }
        for (int i = k + 1; i < n; i++) {
            for (int j = k + 1; j < n; j++) {
                left[i * n + j] -= left[i * n + k] * left[k * n + j] / left[k * n + k];
            }
        }
    }
    return true;
}

// Each framework's total is known better than the machine under it, so the two cannot err independently of each other.
Test(calibrate, what_two_frameworks_teach_on_one_machine_is_one_covariance) {
    static Generated second;
    uint64_t seed = 15;
    generated_begin(&generated, "accelerate", &arena);
    generated_begin(&second, "torchtitan", &arena);
    generated_runs(&generated, NULL, 0, 1, 0.01, 0.01, &seed);
    generated_runs(&second, NULL, 0, 1, 0.01, 0.01, &seed);
    memcpy(generated.samples + generated.count, second.samples, (size_t)second.count * sizeof *second.samples);
    generated.count += second.count;
    fit(false);
    cr_assert_eq(calibration.posterior.targets, 2);
    cr_assert(is_positive(calibration.posterior.covariance, calibration.posterior.count));
}

Test(calibrate, plans_that_ran_once_say_nothing_of_noise) {
    uint64_t seed = 22;
    generated_runs(&generated, NULL, 0, 1, 0.05, 0.05, &seed);
    fit(false);
    cr_assert_float_eq(calibration.posterior.noise_sd, 0.03, 1e-12, "%g", calibration.posterior.noise_sd);
}

Test(calibrate, repeats_tell_the_noise) {
    uint64_t seed = 23;
    generated_runs(&generated, NULL, 0, 6, 0.1, 0.01, &seed);
    fit(false);
    cr_assert_float_eq(calibration.posterior.noise_sd, 0.01, 0.002, "%g", calibration.posterior.noise_sd);
}

Test(calibrate, runs_of_a_framework_never_move_the_machine) {
    generated_begin(&generated, "accelerate", &arena);
    const Truth truth[] = {{"layer_overhead", 0.2}};
    uint64_t seed = 16;
    generated_runs(&generated, truth, 1, 2, 0.01, 0.01, &seed);
    fit(false);
    for (int i = 0; i < calibration.posterior.count; i++) {
        const CalibrationCoordinate *at = &calibration.posterior.at[i];
        if (!at->target) {
            cr_assert_float_eq(calibration.posterior.mean[i], 0, 1e-12, "%s", at->parameter->name);
            cr_assert_float_eq(at->sd, at->prior_sd, 1e-9);
            cr_assert_eq(at->verdict, VERDICT_UNTAUGHT);
        }
    }
    cr_assert_lt(calibration.fit.after_median, 0.03, "%g", calibration.fit.after_median);
    cr_assert_gt(found("layer_overhead"), 0.08, "%g", found("layer_overhead"));
}

Test(calibrate, a_framework_s_total_is_known_better_than_the_machine_under_it) {
    generated_begin(&generated, "accelerate", &arena);
    uint64_t seed = 17;
    generated_runs(&generated, NULL, 0, 2, 0.01, 0.01, &seed);
    fit(false);
    Arena scratch = {0};
    CalibrationSensitivity here;
    cr_assert_eq(calibrate_sensitivity(&calibration.posterior, &generated.cases[1], &scratch, &here, &error),
                 STATUS_OK);
    const int gemm = generated_coordinate(&calibration.posterior, "gemm_rate");
    cr_assert_lt(calibration_log_sd(&calibration.posterior, &here),
                 0.8 * fabs(here.gradient[gemm]) * calibration.posterior.at[gemm].prior_sd);
    arena_free(&scratch);
}

Test(calibrate, reserved_memory_teaches_the_allocator_alone) {
    generated_begin(&generated, "accelerate", &arena);
    uint64_t seed = 18;
    generated_runs(&generated, NULL, 0, 1, 0, 0, &seed);
    fit(false);
    cr_assert_eq(coordinate("allocator")->shapes, 0);
    for (int i = 0; i < generated.count; i++) {
        generated.samples[i].reserved_bytes = 60e9;
    }
    fit(false);
    cr_assert_eq(coordinate("allocator")->shapes, GENERATED_SHAPES);
    cr_assert_gt(found("allocator"), 0);
}
