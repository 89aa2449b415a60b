// ndtune calibrate as users and scripts call it. The runs in files are synthetic; those in the store are real.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/store/store.h"
#include "tests/cli/cli.h"
#include "tests/support/sizes.h"

#define LOGS NDTUNE_SOURCE_DIR "/tests/unit/autotune/validate/logs/"

static char *folder;
static char runs[512], profile[512], db[512];

static void begin(void) {
    folder = temp_dir_make();
    snprintf(runs, sizeof runs, "%s/runs.csv", folder);
    snprintf(profile, sizeof profile, "%s/ours.json", folder);
    snprintf(db, sizeof db, "%s/store.db", folder);
}

static void end(void) {
    temp_dir_remove(folder);
}

TestSuite(cli_calibrate, .init = begin, .fini = end);

static const char header[] =
    "id,source,model,layers,hidden,heads,kv_heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,cp,"
    "tp,seq_len,micro_batch,step_time_s,usable\n";

// llama-3-8b on 8 H100 for accelerate: made-up times of these micro-batches.
static void write_runs(const char *cluster, const double *times, int count) {
    FILE *file = fopen(runs, "w");
    cr_assert_not_null(file);
    fputs(header, file);
    for (int i = 0; i < count; i++) {
        fprintf(file, "made-%d,made,llama-3-8b,32,4096,32,8,14336,128256,%s,accelerate,1,8,1,1,4096,%d,%g,1\n", i,
                cluster, i + 1, times[i]);
    }
    fclose(file);
}

static const double slow[] = {1.3, 2.5, 3.7, 4.9};

Test(cli_calibrate, a_file_of_runs_becomes_a_profile_that_predicts_by_it) {
    write_runs("dgx-h100", slow, 4);
    json_t *root = CLI_JSON(0, "calibrate", "--runs", runs, "--out", profile, "--db", db, "--format", "json");
    cr_assert_str_eq(json_string_value(json_object_get(root, "schema")), "ndtune.calibrate/1");
    cr_assert_str_eq(json_string_value(json_object_get(root, "parent")), "dgx-h100");
    cr_assert_eq(json_array_size(json_object_get(root, "runs")), 4);
    cr_assert_eq(json_array_size(json_object_get(root, "plans")), 4);
    const json_t *held = json_object_get(root, "held_out");
    cr_assert_eq(cli_number(held, "plans"), 4);
    cr_assert_lt(cli_number(held, "median_after"), cli_number(held, "median_before"));
    json_decref(root);
    json_t *before =
        CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "llama-3-8b", "--db", db, "--format", "json");
    json_t *after = CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "llama-3-8b", "--cluster", profile,
                             "--db", db, "--format", "json");
    const double was = cli_number(before, "step_time_s"), is = cli_number(after, "step_time_s");
    cr_assert_lt(is > 1.3 ? is - 1.3 : 1.3 - is, was > 1.3 ? was - 1.3 : 1.3 - was);
    cr_assert_str_eq(json_string_value(json_object_get(after, "evidence")), "calibrated on 4 runs");
    cr_assert_lt(cli_number(after, "step_time_high_s") / is, cli_number(before, "step_time_high_s") / was);
    json_decref(before);
    json_decref(after);
}

Test(cli_calibrate, the_table_says_what_the_runs_cannot_tell) {
    write_runs("dgx-h100", slow, 4);
    ProgramRun run = CLI("calibrate", "--runs", runs, "--out", profile, "--db", db);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_assert(strstr(run.out, "only runs of our executor teach the machine"), "%s", run.out);
    cr_assert(strstr(run.out, "held out (each of 4 plans by the fit without it)"), "%s", run.out);
    cr_assert(strstr(run.out, "one run set only"), "%s", run.out);
    program_run_free(&run);
}

Test(cli_calibrate, too_few_runs_are_refused_in_one_sentence) {
    write_runs("dgx-h100", slow, 1);
    ProgramRun run = CLI("calibrate", "--runs", runs, "--out", profile, "--db", db);
    cr_assert_eq(run.exit_code, 1);
    cr_assert(
        strstr(run.err, "1 run of 1 plan with a step time: a calibration needs runs of at least 2 different plans"),
        "%s", run.err);
    program_run_free(&run);
}

Test(cli_calibrate, runs_of_another_cluster_are_left_out_by_name) {
    write_runs("dgx-h100", slow, 2);
    ProgramRun run = CLI("calibrate", "--runs", runs, "--cluster", "dgx-h200", "--out", profile, "--db", db);
    cr_assert_eq(run.exit_code, 1);
    cr_assert(strstr(run.err, "can be used; 2: cluster dgx-h100 is not dgx-h200"), "%s", run.err);
    program_run_free(&run);
}

// Playbook rows that name aws-p5 are of hf-p5; whoever ran on aws-p5 calibrates that.
Test(cli_calibrate, runs_of_aws_p5_are_of_it_unless_their_source_ran_elsewhere) {
    write_runs("aws-p5", slow, 4);
    json_t *own = CLI_JSON(0, "calibrate", "--runs", runs, "--cluster", "aws-p5", "--out", profile, "--db", db,
                           "--format", "json");
    cr_assert_str_eq(json_string_value(json_object_get(own, "parent")), "aws-p5");
    json_decref(own);
    static const char theirs[] = NDTUNE_SOURCE_DIR "/tests/guard/runs.csv";
    ProgramRun run = CLI("calibrate", "--runs", theirs, "--cluster", "aws-p5", "--out", profile, "--db", db);
    cr_assert_eq(run.exit_code, 1);
    cr_assert_eq(remove(profile), 0);
    json_t *both = CLI_JSON(0, "calibrate", "--runs", theirs, "--cluster", "hf-p5", "--target", "nanotron", "--out",
                            profile, "--db", db, "--format", "json");
    cr_assert_eq(json_array_size(json_object_get(both, "runs")), 2);
    json_decref(both);
    program_run_free(&run);
}

Test(cli_calibrate, a_target_chooses_among_frameworks_and_keeps_the_executor_s_runs) {
    write_runs("dgx-h100", slow, 4);
    ProgramRun other = CLI("calibrate", "--runs", runs, "--target", "torchtitan", "--out", profile, "--db", db);
    cr_assert_eq(other.exit_code, 1);
    cr_assert(strstr(other.err, "4: target accelerate@1.15 is not torchtitan"), "%s", other.err);
    json_t *same = CLI_JSON(0, "calibrate", "--runs", runs, "--target", "accelerate", "--out", profile, "--db", db,
                            "--format", "json");
    cr_assert_eq(json_array_size(json_object_get(same, "runs")), 4);
    json_t *own = CLI_JSON(0, "calibrate", "--runs", NDTUNE_SOURCE_DIR "/tests/accuracy/calibrate/quiet.csv",
                           "--target", "accelerate", "--out", profile, "--db", db, "--format", "json");
    cr_assert_eq(json_array_size(json_object_get(own, "runs")), 5);
    json_decref(same);
    json_decref(own);
    program_run_free(&other);
}

Test(cli_calibrate, times_in_another_unit_make_no_profile) {
    static const double milliseconds[] = {1300, 2500, 3700, 4900};
    write_runs("dgx-h100", milliseconds, 4);
    ProgramRun run = CLI("calibrate", "--runs", runs, "--out", profile, "--db", db);
    cr_assert_eq(run.exit_code, 1, "%s%s", run.out, run.err);
    cr_assert(strstr(run.err, "times what is predicted (median): no calibration makes up for that"), "%s", run.err);
    cr_assert(strstr(run.err, "in seconds"), "%s", run.err);
    cr_assert_neq(access(profile, F_OK), 0, "nothing is written");
    program_run_free(&run);
}

Test(cli_calibrate, runs_that_taught_the_parent_already_are_told) {
    write_runs("dgx-h100", slow, 4);
    ProgramRun first = CLI("calibrate", "--runs", runs, "--out", profile, "--db", db);
    ProgramRun again = CLI("calibrate", "--runs", runs, "--cluster", profile, "--out", profile, "--db", db);
    cr_assert_eq(again.exit_code, 0, "%s", again.err);
    cr_assert_null(strstr(first.err, "count twice"), "%s", first.err);
    cr_assert(strstr(again.err, "4 of these runs taught dgx-h100-calibrated already"), "%s", again.err);
    cr_assert(strstr(again.err, "calibrate its parent dgx-h100 instead"), "%s", again.err);
    program_run_free(&first);
    program_run_free(&again);
}

Test(cli_calibrate, an_empty_store_says_how_to_make_runs) {
    ProgramRun run = CLI("calibrate", "--db", db);
    cr_assert_eq(run.exit_code, 1);
    cr_assert(strstr(run.err, "no run with a step time"), "%s", run.err);
    cr_assert(strstr(run.err, "ndtune validate"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_calibrate, logs_of_two_meshes_calibrate_a_framework) {
    json_t *root =
        CLI_JSON(0, "calibrate", "--target", "megatron", "--model", "llama-3-8b", "--seq", "8192", "--cluster",
                 "dgx-h100", "--warm-up", "1", "--log", LOGS "megatron.log@dp_shard=8,grad_accum=8", "--log",
                 LOGS "megatron.log@dp_shard=4,tp=2,grad_accum=16", "--out", profile, "--db", db, "--format", "json");
    const json_t *plans = json_object_get(root, "plans");
    cr_assert_eq(json_array_size(plans), 2);
    // the median of the two iterations after the warm-up
    cr_assert_float_eq(cli_number(json_array_get(plans, 0), "measured_step_time_s"), 3.6002, 1e-9);
    json_decref(root);
}

Test(cli_calibrate, a_log_of_a_batch_that_its_accumulation_does_not_make_is_refused) {
    ProgramRun run = CLI("calibrate", "--target", "megatron", "--model", "llama-3-8b", "--grad-accum", "3", "--log",
                         LOGS "megatron.log@dp_shard=8,global_batch=64,grad_accum=3", "--db", db);
    cr_assert_eq(run.exit_code, 1);
    cr_assert(strstr(run.err, "a global batch of 64 sequences is not dp_replicate x dp_shard x accumulation = 24: use "
                              "that, or leave one of the two out"),
              "%s", run.err);
    program_run_free(&run);
}

Test(cli_calibrate, a_log_without_step_times_is_refused_in_words) {
    snprintf(runs, sizeof runs, "%s/empty.log", folder);
    FILE *file = fopen(runs, "w");
    cr_assert_not_null(file);
    fputs("Loading checkpoint shards\n", file);
    fclose(file);
    ProgramRun run = CLI("calibrate", "--target", "megatron", "--model", "llama-3-8b", "--mesh", "dp_shard=8", "--log",
                         runs, "--db", db);
    cr_assert_eq(run.exit_code, 1);
    cr_assert(strstr(run.err, "holds no step time: there are step_time=SECONDS"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_calibrate, runs_of_the_store_calibrate_the_machine_that_ran_them) {
    static const char *const meshes[] = {"dp_shard=1", "dp_shard=2", "tp=2"};
    for (int i = 0; i < 3; i++) {
        ProgramRun run =
            CLI("run", "--mesh", meshes[i], "--model", "tiny", "--layers", "2", "--steps", "3", "--db", db);
        cr_assert_eq(run.exit_code, 0, "%s", run.err);
        program_run_free(&run);
    }
    json_t *root = CLI_JSON(0, "calibrate", "--out", profile, "--db", db, "--format", "json");
    cr_assert_str_eq(json_string_value(json_object_get(root, "parent")), "local-cpu");
    cr_assert_str_eq(json_string_value(json_array_get(json_object_get(root, "runs"), 0)), "run 3");
    cr_assert_eq(json_array_size(json_object_get(root, "plans")), 3);
    cr_assert_eq(json_array_size(json_object_get(root, "left_out")), 0);
    json_decref(root);
    // and again on its own child: the same machine
    root = CLI_JSON(0, "calibrate", "--cluster", profile, "--out", profile, "--db", db, "--format", "json");
    cr_assert_str_eq(json_string_value(json_object_get(root, "parent")), "local-cpu-calibrated");
    cr_assert_eq(json_array_size(json_object_get(root, "runs")), 3);
    json_decref(root);
}

// A run of tiny as the store keeps it, made up.
static void save_run(int ranks, const char *transport, const char *executor, const char *core_type, double step_s) {
    static const double nothing[1] = {1};
    Error error = {0};
    Store *store = NULL;
    TuneRequest request = {.command = "ndtune run --mesh dp_shard=2 --model tiny",
                           .model = {.name = "tiny"},
                           .cluster = {.name = "local-cpu"}};
    cr_assert_eq(target_find("ndtune", &request.target, &error), STATUS_OK, "%s", error.message);
    const RunRecord record = {.request = &request,
                              .source = "executor",
                              .executor = executor,
                              .core_type = core_type,
                              .host = "elsewhere",
                              .device = "cpu",
                              .transport = transport,
                              .lanes = "serial",
                              .steps = 1,
                              .losses = nothing,
                              .grad_norms = nothing,
                              .step_times_s = &step_s,
                              .measured_step_s = step_s,
                              .state = "ok",
                              .prediction = {.plan = {.mesh = {.size = SIZES(1, ranks, 1, 1)},
                                                      .seq = 128,
                                                      .micro_batch = 1,
                                                      .grad_accum = 1,
                                                      .zero = 3,
                                                      .precision = DTYPE_FP32}}};
    cr_assert_eq(store_open(db, &store, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(store_save_run(store, &record, NULL, &error), STATUS_OK, "%s", error.message);
    store_close(store);
}

static bool left_out(const json_t *root, const char *words, int count) {
    const json_t *rows = json_object_get(root, "left_out");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (strstr(cli_text(row, "reason"), words) && (int)cli_number(row, "runs") == count) {
            return true;
        }
    }
    return false;
}

Test(cli_calibrate, runs_over_other_links_or_by_another_executor_are_no_repeats) {
    save_run(2, "shm", "old", "SkylakeX", 0.03);
    save_run(2, "shm", NULL, NULL, 0.03);  // of a store before schema 8
    save_run(4, "mpi", "new", "SkylakeX", 0.05);
    save_run(2, "mpi", "new", "SkylakeX", 0.02);
    save_run(2, "shm", "new", "SkylakeX", 0.015);
    save_run(4, "shm", "new", "SkylakeX", 0.025);
    json_t *root = CLI_JSON(0, "calibrate", "--out", profile, "--db", db, "--format", "json");
    cr_expect_eq(json_array_size(json_object_get(root, "runs")), 2);
    cr_expect(left_out(root, "over mpi, not shm (--transport mpi takes these)", 2));
    cr_expect(left_out(root, "by another version of the executor than run 6", 2));
    json_decref(root);
    root = CLI_JSON(0, "calibrate", "--transport", "mpi", "--out", profile, "--db", db, "--format", "json");
    cr_expect_str_eq(json_string_value(json_array_get(json_object_get(root, "runs"), 0)), "run 4");
    cr_expect(left_out(root, "over shm, not mpi", 4));
    json_decref(root);
    ProgramRun run = CLI("calibrate", "--transport", "nccl", "--out", profile, "--db", db);
    cr_expect_eq(run.exit_code, 1, "%s", run.err);
    cr_expect(strstr(run.err, "no run of the store can be used; 4: over shm, which --transport does not ask for"), "%s",
              run.err);
    program_run_free(&run);
}

Test(cli_calibrate, runs_with_kernels_for_another_core_are_no_repeats) {
    save_run(2, "shm", "new", "Prescott", 0.075);
    save_run(4, "shm", "new", "Prescott", 0.125);
    save_run(2, "shm", "new", "SkylakeX", 0.015);
    save_run(4, "shm", "new", "SkylakeX", 0.025);
    json_t *root = CLI_JSON(0, "calibrate", "--out", profile, "--db", db, "--format", "json");
    cr_expect_eq(json_array_size(json_object_get(root, "runs")), 2);
    cr_expect(left_out(root, "with OpenBLAS' kernels for another core than run 4", 2));
    json_decref(root);
}

Test(cli_calibrate, what_says_what_a_log_ran_is_refused_without_one) {
    static const char *const options[][2] = {{"--mesh", "dp_shard=2"}, {"--model", "tiny"}, {"--seq", "64"}};
    for (int i = 0; i < 3; i++) {
        ProgramRun run = CLI("calibrate", options[i][0], options[i][1], "--db", db);
        cr_expect_eq(run.exit_code, 1);
        cr_expect(strstr(run.err, options[i][0]) && strstr(run.err, "there is no --log"), "%s", run.err);
        program_run_free(&run);
    }
    write_runs("dgx-h100", slow, 2);
    ProgramRun run = CLI("calibrate", "--runs", runs, "--transport", "shm", "--db", db);
    cr_expect_eq(run.exit_code, 1);
    cr_expect(strstr(run.err, "chooses among the runs of the store"), "%s", run.err);
    program_run_free(&run);
}
