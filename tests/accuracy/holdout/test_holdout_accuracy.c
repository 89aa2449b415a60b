// Published runs from sources that the model was not developed on (README.md): every row is read and scored, and errors
// stay near what RESULTS.md states. The bounds are loose on purpose: no constant may be fitted on these rows, and a
// change that is right for the runs it was made on may cost a little here.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/base/sorted.h"
#include "tests/support/kept_predictions.h"

#define FOLDER NDTUNE_SOURCE_DIR "/tests/accuracy/holdout/"
#define DEVELOPED NDTUNE_SOURCE_DIR "/tests/accuracy/runs/"

static Arena arena;
static Accuracy accuracy;

static void score_holdout(void) {
    const AccuracyOptions options = {.runs_paths = (const char *const[]){FOLDER "runs.csv", NULL},
                                     .groups_paths = (const char *const[]){FOLDER "groups.csv", NULL}};
    Error error = {0};
    cr_assert_eq(accuracy_run_once(&options, &arena, &accuracy, &error), STATUS_OK, "%s", error.message);
}

static void forget(void) {
    arena_free(&arena);
}

TestSuite(holdout_runs, .init = score_holdout, .fini = forget);

Test(holdout_runs, nearly_every_row_is_scored) {
    cr_expect_geq(accuracy.scored, accuracy.runs.count * 95 / 100, "%d of %d", accuracy.scored, accuracy.runs.count);
    cr_expect_eq(accuracy.ranking.unknown_ids, 0);
    for (int i = 0; i < accuracy.runs.count; i++) {
        const RunCase *run = &accuracy.cases[i];
        cr_expect(run->skipped || (isfinite(run->prediction.step_s) && run->prediction.step_s > 0), "%s", run->row->id);
    }
}

static void check_apart(const RunFile *held, const RunFile *developed) {
    for (int i = 0; i < held->count; i++) {
        for (int j = 0; j < developed->count; j++) {
            cr_assert_str_neq(held->rows[i].source, developed->rows[j].source);
        }
    }
}

Test(holdout_runs, no_source_is_one_of_the_sample_that_the_model_was_developed_on) {
    const char *const fresh[] = {FOLDER "fresh.csv",   FOLDER "fresh2.csv",  FOLDER "fresh3.csv",  FOLDER "fresh4.csv",
                                 FOLDER "fresh5.csv",  FOLDER "fresh6.csv",  FOLDER "fresh7.csv",  FOLDER "fresh8.csv",
                                 FOLDER "fresh9.csv",  FOLDER "fresh10.csv", FOLDER "fresh11.csv", FOLDER "fresh12.csv",
                                 FOLDER "fresh13.csv", FOLDER "fresh14.csv", FOLDER "fresh15.csv"};
    RunFile developed, held;
    Error error = {0};
    cr_assert_eq(run_file_read(DEVELOPED "runs.csv", &arena, &developed, &error), STATUS_OK, "%s", error.message);
    check_apart(&accuracy.runs, &developed);
    for (size_t i = 0; i < sizeof fresh / sizeof *fresh; i++) {
        cr_assert_eq(run_file_read(fresh[i], &arena, &held, &error), STATUS_OK, "%s", error.message);
        check_apart(&held, &developed);
    }
}

static void check_errors(const Accuracy *of, double median, double p90) {
    cr_expect_leq(of->step.median_abs, median, "%s: median %.3f", of->runs.rows->id, of->step.median_abs);
    cr_expect_leq(of->step.p90_abs, p90, "%s: 90th percentile %.3f", of->runs.rows->id, of->step.p90_abs);
}

static void check_beats_one_mfu(const Accuracy *of) {
    cr_expect_lt(of->step.median_abs, of->step.baseline_median_abs);
    cr_expect_lt(of->step.p90_abs, of->step.baseline_p90_abs);
}

Test(holdout_runs, errors_stay_near_the_stated_ones) {
    check_errors(&accuracy, 0.10, 0.25);
    cr_expect_geq(accuracy.step.in_interval, 0.8);
    cr_expect_leq(accuracy.memory.median_abs, 0.005, "memory %.3f", accuracy.memory.median_abs);
    cr_expect_geq(accuracy.oom.called_feasible, 0.85 * accuracy.oom.feasible_rows, "%d", accuracy.oom.called_feasible);
}

Test(holdout_runs, predictions_beat_one_constant_mfu) {
    check_beats_one_mfu(&accuracy);
}

typedef enum { TUNED_FSDP, TUNED_BLOCKS, TUNED_OTHER } Tuned;

// Sharded by Megatron's own FSDP; with a scale for every 32 elements; the others.
static Tuned kind_of(const TrainPlan *plan) {
    const bool blocks = plan->precision == DTYPE_FP8 && plan->fp8_recipe == FP8_MX;
    return plan->zero == 3 ? TUNED_FSDP : blocks ? TUNED_BLOCKS : TUNED_OTHER;
}

static void check_tuned(Tuned kind, int count, double median, double p90) {
    Accuracy tuned;
    Error error = {0};
    const AccuracyOptions options = {.runs_paths = (const char *const[]){FOLDER "tuned.csv", NULL}};
    cr_assert_eq(accuracy_run_once(&options, &arena, &tuned, &error), STATUS_OK, "%s", error.message);
    double *errors = ARENA_ARRAY(&arena, double, tuned.runs.count);
    int n = 0;
    for (int i = 0; i < tuned.runs.count; i++) {
        const RunCase *run = &tuned.cases[i];
        if (!run->skipped && kind_of(&run->plan) == kind) {
            errors[n++] = fabs(accuracy_step_error(run));
        }
    }
    cr_assert_geq(n, count);
    sorted_doubles(errors, n);
    cr_expect_leq(errors[n / 2], median, "median %.3f", errors[n / 2]);
    cr_expect_leq(errors[n * 9 / 10], p90, "90th percentile %.3f", errors[n * 9 / 10]);
}

// Tuned Megatron stacks of 2024 and 2025 in fp8, scored apart: 3.7 % in the middle when first predicted. Recorded anew
// on 2026-11-28, as those in mxfp8 and MLPerf's: they have the loss that their recipes run, and those
// of 2024 the attention (RESULTS.md).
Test(holdout_runs, tuned_stacks_stay_near_their_first_score) {
    check_tuned(TUNED_OTHER, 12, 0.06, 0.12);
}

// 7.9 and 10.5 % when first predicted. Recorded anew on 2026-11-29 (9.9 -> 10.0 in the middle): sums in bf16 show the
// bytes that are read, not those that operands are smaller by (RESULTS.md). Since: cuDNN of 2025, products of mxfp8.
Test(holdout_runs, tuned_stacks_in_mxfp8_stay_near_their_first_score) {
    check_tuned(TUNED_BLOCKS, 5, 0.06, 0.08);
}

// 7.9 and 12.1 % when first predicted.
Test(holdout_runs, tuned_stacks_of_megatron_fsdp_stay_near_their_first_score) {
    check_tuned(TUNED_FSDP, 22, 0.085, 0.13);
}

static Accuracy score(AccuracyOptions options) {
    Accuracy of;
    Error error = {0};
    cr_assert_eq(accuracy_run(&options, NULL, &arena, &of, &error), STATUS_OK, "%s", error.message);
    return of;
}

static Accuracy score_file(const char *path, Effort effort) {
    return score((AccuracyOptions){.runs_paths = (const char *const[]){path, NULL}, .effort = effort});
}

static void check_file(const char *path, int count, double median, double p90) {
    const Accuracy of = score_file(path, EFFORT_SIMULATE);
    cr_assert_geq(of.scored, count);
    check_errors(&of, median, p90);
    check_beats_one_mfu(&of);
}

// Llama 3.1 8B in small batches, CUDA graphs: the submitters that mechanisms were looked for on, and the others, which
// were at 9.4 and 31.5 % (7 rows) when first predicted.
Test(holdout_runs, submissions_to_mlperf_are_within_the_stated_errors) {
    check_file(DEVELOPED "mlperf.csv", 16, 0.045, 0.09);
    check_file(FOLDER "mlperf.csv", 17, 0.05, 0.118);
}

// Four of our own on one H200: 4.2 and 4.9 % with the kernels that ran. One MFU is nearer to so few rows of one plan.
Test(holdout_runs, our_runs_on_one_gpu_are_within_the_stated_errors) {
    const Accuracy of = score_file(FOLDER "gpu.csv", EFFORT_SIMULATE);
    cr_assert_eq(of.scored, 4);
    check_errors(&of, 0.05, 0.06);
    for (int i = 0; i < of.runs.count; i++) {
        cr_expect_eq(of.cases[i].plan.optimizer, OPTIMIZER_ADAMW_FUSED, "the column is read");
    }
}

TestSuite(fresh_runs, .fini = forget);

// What a file of fresh sources is held to, and those of its failures and groups, where it has any; 0: no bound.
typedef struct Stated {
    int rows, scored, called_feasible;
    double median, p90, memory_median;
    int failures, called_infeasible, groups;
    double median_regret;
} Stated;

static const char *const *only_path(const char *name, const char *kind, bool has) {
    const char **paths = ARENA_ARRAY(&arena, const char *, 2);
    paths[0] = arena_format(&arena, FOLDER "%s%s.csv", name, kind);
    return has ? (const char *const *)paths : NULL;
}

static void check_failures(const OomScore *oom, Stated stated) {
    cr_expect_geq(oom->called_feasible, stated.called_feasible, "%d", oom->called_feasible);
    cr_expect_eq(oom->n, stated.failures);
    cr_expect_geq(oom->called_infeasible, stated.called_infeasible, "%d", oom->called_infeasible);
}

// Estimated, which is cheap. No row is lost, and most are scored.
static Accuracy check_fresh(const char *name, Stated stated) {
    const Accuracy of = score((AccuracyOptions){.runs_paths = only_path(name, "", true),
                                                .oom_paths = only_path(name, "_oom", stated.failures > 0),
                                                .groups_paths = only_path(name, "_groups", stated.groups > 0),
                                                .effort = EFFORT_ESTIMATE});
    cr_expect_eq(of.runs.count, stated.rows);
    cr_expect_geq(of.scored, stated.scored);
    check_errors(&of, stated.median, stated.p90);
    check_beats_one_mfu(&of);
    check_failures(&of.oom, stated);
    cr_expect(stated.memory_median == 0 || of.memory.median_abs <= stated.memory_median, "memory %.3f",
              of.memory.median_abs);
    cr_expect_eq(of.ranking.groups, stated.groups);
    cr_expect_eq(of.ranking.unknown_ids, 0);
    cr_expect(stated.median_regret == 0 || of.ranking.median_regret <= stated.median_regret, "regret %.3f",
              of.ranking.median_regret);
    return of;
}

// 351 rows with stages and 373 that ran out of memory, of sources that nobody looked at before: 8.9 and 22.3 % when
// first predicted, where one MFU errs by 20.7 and 45.4; 348 runs called feasible, 269 failures infeasible.
Test(fresh_runs, fresh_sources_stay_near_their_first_score) {
    const Stated stated = {
        351, 351, 341, .median = 0.06, .p90 = 0.20, .failures = 373, .called_infeasible = 336, .groups = 26};
    const Accuracy of = check_fresh("fresh", stated);
    cr_expect_leq(of.ranking.p90_regret, 1.20, "regret %.3f", of.ranking.p90_regret);
}

// 83 of 89 rows of ten more sources: 11.7 and 27.8 % when first predicted, where one MFU errs by 20.1 and 52.0.
Test(fresh_runs, ten_more_sources_stay_near_their_first_score) {
    check_fresh("fresh2", (Stated){89, 84, 80, .median = 0.065, .p90 = 0.155, .memory_median = 0.008});
}

// 46 rows of a 70B model with adapters beside fp8 and 4-bit layers: 9.8 and 25.4 % when first predicted, where one MFU
// errs by 12.6 and 26.8.
Test(fresh_runs, adapters_beside_fp8_layers_stay_near_their_first_score) {
    check_fresh("fresh_lora", (Stated){46, 46, .median = 0.065, .p90 = 0.15});
}

// 75 rows of experts, adapters and other chips: 28.1 and 47.9 % when first predicted, where one MFU errs by 22.8 and
// 100.7; AMD's kernels of attention have rates since, and prime-rl a row.
Test(fresh_runs, experts_adapters_and_other_chips_stay_near_what_they_reached) {
    check_fresh("fresh5", (Stated){75, 75, 75, .median = 0.085, .p90 = 0.23, .memory_median = 0.06});
}

// 88 of 89 rows of ten sources and releases more: 9.3 and 25.1 % when first predicted, where one MFU errs by 12.1 and
// 38.1.
Test(fresh_runs, ten_sources_and_releases_stay_near_their_first_score) {
    check_fresh("fresh3", (Stated){89, 88, 86, .median = 0.065, .p90 = 0.15});
}

// 92 of 93 rows of eleven dense sources: 7.1 and 29.1 % when first predicted, where one MFU errs by 15.1 and 50.7.
Test(fresh_runs, eleven_dense_sources_stay_near_their_first_score) {
    check_fresh("fresh4", (Stated){93, 92, 89, .median = 0.055, .p90 = 0.15, .memory_median = 0.05});
}

// 68 rows of seven more sources, most of one node: 15.7 and 52.4 % when 60 of them were first predicted, where one MFU
// errs by 33.9 and 70.8.
Test(fresh_runs, seven_sources_of_small_nodes_stay_near_their_first_score) {
    check_fresh("fresh6", (Stated){68, 68, 68, .median = 0.105, .p90 = 0.24, .memory_median = 0.07, .failures = 3,
                                   .called_infeasible = 2, .groups = 6});
}

// 52 of 78 rows of fifteen more sources, most small models or small nodes: 17.6 and 53.7 % when first predicted, where
// one MFU errs by 59.4 and 127.0; attention as separate operations and padded heads have their bytes since.
Test(fresh_runs, fifteen_sources_stay_near_their_first_score) {
    check_fresh("fresh7", (Stated){78, 52, 51, .median = 0.135, .p90 = 0.36, .memory_median = 0.16, .failures = 2,
                                   .called_infeasible = 2});
}

// 46 of 61 rows of thirteen more sources of dense models: 12.1 and 24.5 % when first predicted, where one MFU errs by
// 20.5 and 51.6; AdamW's chain is counted, the power of GH200 and links of x16 are priced since.
Test(fresh_runs, thirteen_sources_of_dense_models_are_nearer_than_at_their_first_score) {
    const Accuracy of = check_fresh("fresh8", (Stated){61, 48, 48, .median = 0.07, .p90 = 0.215, .memory_median = 0.13,
                                                       .failures = 2, .called_infeasible = 1});
    cr_expect_eq(of.oom.called_feasible, of.oom.feasible_rows);
}

// 44 of 117 rows of fourteen more sources of experts, stages and other chips: 17.9 and 50.9 % when first predicted,
// where one MFU errs by 31.7 and 81.3. 61 since: 25 are AWS's dispatchers on EFA, where the host beside experts and
// training's all-to-alls are short by half.
Test(fresh_runs, fourteen_sources_of_experts_stay_near_their_second_score) {
    const Accuracy of = check_fresh("fresh9", (Stated){117, 61, 61, .median = 0.23, .p90 = 0.495, .memory_median = 0.12,
                                                       .failures = 2, .called_infeasible = 1});
    cr_expect_eq(of.oom.called_feasible, of.oom.feasible_rows);
}

// MLPerf 6.0, LoRA on MI325X and recipes of experts measured again: 49 rows when first predicted, 6.5 and 20.3 %, where
// one MFU errs by 31.7 and 62.4; with GPT-OSS and labels mended 62, 8.3 and 17.7, one MFU 32.0 and 62.2.
Test(fresh_runs, mlperf_6_and_recipes_measured_again_stay_near_their_second_score) {
    check_fresh("fresh10", (Stated){65, 62, 62, .median = 0.085, .p90 = 0.185});
}

// OpenEuroLLM on JUPITER's GH200: 109 rows when first predicted, 16.8 and 26.2 %, where one MFU errs by 25.9 and 73.2.
// Held is what all 127 reached when labels were mended and 13 were added: 16.9 and 27.9, one MFU 27.0 and 80.4. Memory
// as without the label of four runs whose memory alone says fp32 (RESULTS.md).
Test(fresh_runs, jupiter_stays_near_its_second_score_and_rows_added_since) {
    const Accuracy of =
        check_fresh("fresh11", (Stated){131, 127, 127, .median = 0.14, .p90 = 0.2, .memory_median = 0.09,
                                        .failures = 15, .called_infeasible = 8, .groups = 6, .median_regret = 1.005});
    cr_expect_eq(of.scored, 127);
}

// 88 of 120 rows of 15 more sources: 8.2 and 26.4 % when first predicted, where one MFU errs by 31.9 and 49.2. 93 with
// labels mended: 8.2 and 16.9, one MFU 32.4 and 50.0; with GH200's rates of that evening 4.9 and 16.9. Memory 2.9 with
// the optimizers that scripts name.
Test(fresh_runs, fifteen_sources_of_2026_stay_near_their_third_score) {
    check_fresh("fresh12", (Stated){120, 94, 94, .median = 0.055, .p90 = 0.175, .memory_median = 0.035, .failures = 25,
                                    .called_infeasible = 22, .groups = 8, .median_regret = 1.005});
}

// 66 of 77 rows of 11 more sources, a third of experts: 11.6 and 38.2 % when first predicted, where one MFU errs by
// 24.7 and 66.7; memory 7.8 %. With labels mended 11.1 and 37.9, memory 4.9.
Test(fresh_runs, a_thirteenth_set_stays_near_its_second_score) {
    check_fresh("fresh13", (Stated){77, 66, 64, .median = 0.105, .p90 = 0.39, .memory_median = 0.055, .failures = 11,
                                    .called_infeasible = 8, .groups = 9, .median_regret = 1.005});
}

// 51 of 102 rows of 11 more sources, half of experts: 22.0 and 70.4 % when first predicted, where one MFU errs by 49.9
// and 82.6. With words mended that targets do not know 100 rows: 17.4 and 57.1, one MFU 38.3 and 84.1; memory 12.4 %.
// With tokens that are alike and the kernels of Liger 0.8.0 named: 13.1 and 30.6.
Test(fresh_runs, a_fourteenth_set_stays_near_its_second_score) {
    check_fresh("fresh14", (Stated){102, 100, 100, .median = 0.14, .p90 = 0.32, .memory_median = 0.1, .failures = 4,
                                    .called_infeasible = 3, .groups = 11, .median_regret = 1.005});
}

// 79 of 93 rows of 13 more sources, 30 of experts and 15 with stages: 7.8 and 30.3 % when first predicted, where one
// MFU errs by 14.4 and 45.8. With words mended that targets do not know all 93: 6.7 and 29.6, one MFU 16.9 and 45.9.
Test(fresh_runs, a_fifteenth_set_stays_near_its_second_score) {
    check_fresh("fresh15", (Stated){93, 93, 90, .median = 0.07, .p90 = 0.3, .memory_median = 0.175, .failures = 7,
                                    .called_infeasible = 2, .groups = 11, .median_regret = 1.005});
}
