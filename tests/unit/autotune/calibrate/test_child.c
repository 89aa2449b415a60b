// The profile that a calibration writes: what it says about itself, and that it predicts what the fit predicted.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/predict/target_on_cluster.h"
#include "sim/base/json.h"
#include "sim/cluster/cluster_fields.h"
#include "tests/support/hash_of.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/calibrate/generated_runs.h"

static Arena arena;
static Generated generated;
static Calibration calibration;
static CalibrationInput input;
static ClusterProfile child;
static Error error;

static void make_child(const char *target) {
    arena = (Arena){0};
    error = (Error){0};
    generated_begin(&generated, target, &arena);
    const Truth truth[] = {{"gemm_rate", -0.3}, {"collective_overhead", 0.5}};
    uint64_t seed = 21;
    generated_runs(&generated, truth, 2, 2, 0.02, 0.02, &seed);
    input = generated_input(&generated);
    input.hold_out = true;
    cr_assert_eq(calibrate_fit(&input, &arena, &calibration, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(calibration_child(&calibration, &input, "2026-11-20", &arena, &child, &error), STATUS_OK, "%s",
                 error.message);
}

static void begin(void) {
    make_child("ndtune");
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(calibration_child, .init = begin, .fini = end);

static ClusterProfile written_and_read(void) {
    char *text = NULL;
    json_t *root = NULL;
    ClusterProfile again;
    cr_assert_eq(cluster_write(&child, &text, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(json_text_load(text, "child.json", &root, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(cluster_read(root, "child.json", &arena, &again, &error), STATUS_OK, "%s", error.message);
    json_decref(root);
    free(text);
    return again;
}

Test(calibration_child, is_a_profile_file_that_reads_back_the_same) {
    const ClusterProfile again = written_and_read();
    cr_assert_eq(hash_of_cluster(&again), hash_of_cluster(&child));
    cr_assert_eq(again.target_count, 1);
    cr_assert_str_eq(again.targets[0].name, "ndtune@1");
    const ClusterCalibration *a = child.calibration, *b = again.calibration;
    cr_assert_str_eq(b->parent, "local-cpu");
    cr_assert_str_eq(b->parent_hash, a->parent_hash);
    cr_assert_eq(b->run_count, generated.count);
    cr_assert_str_eq(b->runs[0], "run 0.0");
    cr_assert_eq(b->count, calibration.posterior.count);
    for (int i = 0; i < a->count * a->count; i++) {
        cr_assert_float_eq(a->covariance[i], b->covariance[i], 1e-12);
    }
    for (int i = 0; i < a->count; i++) {
        cr_assert_str_eq(a->parameters[i].name, b->parameters[i].name);
        cr_assert_str_eq(a->parameters[i].verdict, b->parameters[i].verdict);
        cr_assert_eq(a->parameters[i].one_set, b->parameters[i].one_set);
    }
}

Test(calibration_child, names_its_parent_by_hash) {
    char hex[HASH_TEXT_BYTES];
    cr_assert_str_eq(child.calibration->parent_hash, hash_hex(hash_of_cluster(&generated.base), hex));
    cr_assert_neq(hash_of_cluster(&child), hash_of_cluster(&generated.base));
}

static const Provenance *row(const char *path) {
    for (int i = 0; i < child.provenance_count; i++) {
        if (strcmp(child.provenance[i].path, path) == 0) {
            return &child.provenance[i];
        }
    }
    cr_assert_fail("%s has no row", path);
    return NULL;
}

Test(calibration_child, changed_numbers_are_fitted_and_name_the_runs_and_others_keep_their_source) {
    const Provenance *rate = row("accelerator.gemm.fp32.sustained_flop_per_s");
    cr_assert_eq(rate->grade, GRADE_FITTED);
    cr_assert(strstr(rate->source, "ndtune calibrate of local-cpu on 36 runs (run 0.0"), "%s", rate->source);
    cr_assert_lt(rate->value, 0.85 * generated.base.accelerator.gemm[DTYPE_FP32].sustained_flop_per_s);
    cr_assert_eq(row("node.cores")->grade, GRADE_MEASURED);
    cr_assert_eq(row("targets.ndtune@1.collective_share")->grade, GRADE_FITTED);
    cr_assert_eq(row("targets.ndtune@1.memory_passes")->grade, GRADE_ESTIMATED);  // our executor's own, not fitted
}

Test(calibration_child, predicts_what_the_fit_predicted) {
    const ClusterProfile again = written_and_read();
    const Target *target = target_on_cluster(generated.target, &again, &arena);
    static const CalibrationPosterior nothing = {0};
    for (int s = 0; s < calibration.shape_count; s++) {
        CalibrationCase what = calibration.shapes[s].what;
        what.cluster = &again;
        what.target = what.runner = target;
        Arena scratch = {0};
        CalibrationSensitivity here;
        cr_assert_eq(calibrate_sensitivity(&nothing, &what, &scratch, &here, &error), STATUS_OK);
        cr_assert_float_eq(exp(here.log_step) / calibration.shapes[s].after_s, 1, 1e-4);
        arena_free(&scratch);
    }
}

Test(calibration_child, carries_the_posterior_that_its_intervals_come_from) {
    const ClusterProfile again = written_and_read();
    CalibrationPosterior posterior;
    cr_assert_eq(calibration_of_profile(&again, &arena, &posterior, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(posterior.count, calibration.posterior.count);
    const int gemm = generated_coordinate(&posterior, "gemm_rate");
    cr_assert_float_eq(posterior.mean[gemm], 0, 0);
    // one run set: wider than the fit by the factor of interval.c
    cr_assert_float_eq(sqrt(posterior.covariance[gemm * posterior.count + gemm]),
                       1.5 * calibration.posterior.at[gemm].sd, 1e-5);
}

Test(calibration_child, a_second_calibration_replaces_what_the_first_said_of_a_target) {
    generated.base = child;  // its own child
    input.base = &generated.base;
    const Target *target = target_on_cluster(generated.target, &child, &arena);
    for (int i = 0; i < generated.count; i++) {
        generated.samples[i].what.target = generated.samples[i].what.runner = target;
    }
    cr_assert_eq(calibrate_fit(&input, &arena, &calibration, &error), STATUS_OK, "%s", error.message);
    ClusterProfile second;
    cr_assert_eq(calibration_child(&calibration, &input, "2026-11-21", &arena, &second, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert_eq(second.target_count, 1);
    cr_assert_str_eq(second.name, "local-cpu-calibrated");
    cr_assert_lt(calibration.fit.before_median, 0.03, "%g", calibration.fit.before_median);
}

Test(calibration_child, of_a_framework_leaves_the_machine_s_numbers_alone) {
    arena_free(&arena);
    make_child("accelerate");
    cr_assert_eq(child.target_count, 1);
    cr_assert_str_eq(child.targets[0].name, "accelerate@1.15");
    cr_assert_eq(row("targets.accelerate@1_15.collective_share")->grade, GRADE_FITTED);
    cr_assert_float_eq(child.accelerator.gemm[DTYPE_BF16].sustained_flop_per_s,
                       generated.base.accelerator.gemm[DTYPE_BF16].sustained_flop_per_s, 0);
    cr_assert_float_eq(child.relative_uncertainty, generated.base.relative_uncertainty, 0);
    const ClusterProfile again = written_and_read();
    const Target *target = target_on_cluster(generated.target, &again, &arena);
    cr_assert_str_eq(target->evidence, "calibrated on 36 runs");
    cr_assert_neq(target, generated.target);
}

// The machine is at its prior and the framework's costs make up for it: only one factor for both keeps what is known of
// their sum.
Test(calibration_child, one_set_of_runs_widens_the_whole_covariance_by_one_factor) {
    arena_free(&arena);
    make_child("accelerate");
    const ClusterProfile again = written_and_read();
    CalibrationPosterior posterior;
    cr_assert_eq(calibration_of_profile(&again, &arena, &posterior, &error), STATUS_OK, "%s", error.message);
    for (int i = 0; i < posterior.count * posterior.count; i++) {
        const double fitted = calibration.posterior.covariance[i];
        cr_assert_float_eq(posterior.covariance[i], 2.25 * fitted, 1e-5 * fabs(fitted) + 1e-12);
    }
}

Test(calibration_child, names_tell_profiles_of_one_machine) {
    cr_assert(calibration_same_machine("dgx-h100", "dgx-h100-calibrated"));
    cr_assert(calibration_same_machine("dgx-h100-calibrated", "dgx-h100"));
    cr_assert_not(calibration_same_machine("dgx-h100", "dgx-h200-calibrated"));
    cr_assert_not(calibration_same_machine("dgx-h100", "dgx-h100-96g"));
}

Test(calibration_child, a_covariance_that_is_not_square_is_refused_by_its_place) {
    char *text = NULL;
    json_t *root = NULL;
    ClusterProfile again;
    cr_assert_eq(cluster_write(&child, &text, &error), STATUS_OK);
    cr_assert_eq(json_text_load(text, "child.json", &root, &error), STATUS_OK);
    json_array_remove(json_object_get(json_object_get(root, "calibration"), "covariance"), 0);
    cr_assert_eq(cluster_read(root, "child.json", &arena, &again, &error), STATUS_USAGE);
    cr_assert(strstr(error.message, "child.json: calibration.covariance: must be"), "%s", error.message);
    json_decref(root);
    free(text);
}

Test(calibration_child, a_plan_unlike_those_that_ran_is_less_certain_than_one_that_ran) {
    const ClusterProfile again = written_and_read();
    const Target *target = target_on_cluster(generated.target, &again, &arena);
    TuneRequest request = {.model = generated.model, .cluster = again, .target = target, .serial_lanes = true};
    Prediction predictions[2] = {{.plan = generated.cases[1].plan, .step_s = 1},
                                 {.plan = generated.cases[1].plan, .step_s = 1}};
    predictions[1].plan.micro_batch = 1;  // mostly collectives of many ranks, which no run had
    predictions[1].plan.seq = 16;
    predictions[1].plan.mesh = (Mesh){SIZES(1, 8, 1, 1), {{0}}};
    cr_assert_eq(calibrated_intervals(&request, predictions, 2, &error), STATUS_OK, "%s", error.message);
    cr_assert(0 < predictions[0].step_low_s && predictions[0].step_low_s < 1 && predictions[0].step_high_s > 1);
    cr_assert_gt(predictions[1].step_high_s, predictions[0].step_high_s);
    cr_assert_lt(predictions[1].step_low_s, predictions[0].step_low_s);
}

Test(calibration_child, a_framework_s_program_that_our_executor_runs_has_the_executor_s_interval) {
    const ClusterProfile again = written_and_read();
    const Target *executor = target_on_cluster(generated.target, &again, &arena), *program;
    cr_assert_eq(target_find("accelerate", &program, &error), STATUS_OK);
    const Target mixed = target_run_by(program, executor);
    TuneRequest request = {.model = generated.model, .cluster = again, .target = &mixed, .serial_lanes = true};
    Prediction prediction = {.plan = generated.cases[0].plan, .step_s = 1, .step_low_s = 0.01, .step_high_s = 99};
    cr_assert_eq(calibrated_intervals(&request, &prediction, 1, &error), STATUS_OK, "%s", error.message);
    cr_assert_float_eq(prediction.step_high_s, 99, 0, "runs of accelerate taught nothing");
    request.runner = executor;
    cr_assert_eq(calibrated_intervals(&request, &prediction, 1, &error), STATUS_OK, "%s", error.message);
    cr_assert(prediction.step_low_s > 0.2 && prediction.step_high_s < 5);
}

Test(calibration_child, a_profile_that_nobody_calibrated_keeps_its_own_intervals) {
    TuneRequest request = {.model = generated.model, .cluster = generated.base, .target = generated.target};
    Prediction prediction = {.plan = generated.cases[1].plan, .step_s = 1, .step_low_s = 0.5, .step_high_s = 2};
    cr_assert_eq(calibrated_intervals(&request, &prediction, 1, &error), STATUS_OK);
    cr_assert_float_eq(prediction.step_low_s, 0.5, 0);
    cr_assert_float_eq(prediction.step_high_s, 2, 0);
}
