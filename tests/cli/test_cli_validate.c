// ndtune validate, probe, preflight and runs: real steps of a tiny model on this machine, as scripts use them.

#define _GNU_SOURCE  // sched_setaffinity

#include <criterion/criterion.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli.h"

#define QUICK "--model", "tiny", "--layers", "1", "--steps", "3", "--warm-up", "1", "--repeats", "1", "--format", "json"

static char *folder, db[512];

static void begin(void) {
    folder = temp_dir_make();
    snprintf(db, sizeof db, "%s/test.db", folder);
}

static void end(void) {
    temp_dir_remove(folder);
}

TestSuite(cli_validate, .init = begin, .fini = end);

static const json_t *rows_of(const json_t *root) {
    return json_object_get(root, "rows");
}

Test(cli_validate, one_object_keeps_the_contract) {
    json_t *root = CLI_JSON(0, "validate", "--world", "2", "--top", "2", "--spread", "1", QUICK);
    cr_assert_str_eq(cli_text(root, "schema"), "ndtune.validate/1");
    cr_assert_eq(json_array_size(rows_of(root)), 3);
    size_t i;
    json_t *row;
    json_array_foreach(rows_of(root), i, row) {
        cr_assert_str_eq(cli_text(row, "state"), "ok");
        cr_assert_gt(cli_number(row, "measured_step_time_s"), 0);
        cr_assert_gt(cli_number(row, "predicted_step_time_s"), 0);
        cr_assert_eq(cli_number(row, "peak_bytes"), cli_number(row, "planned_peak_bytes"));
        cr_assert_gt(json_array_size(json_object_get(row, "tasks")), 20);
    }
    const json_t *agreement = json_object_get(root, "agreement");
    cr_assert_eq(cli_number(agreement, "measured"), 3);
    cr_assert_geq(cli_number(agreement, "regret"), 1);
    cr_assert_leq(fabs(cli_number(agreement, "kendall_tau")), 1);
    json_decref(root);
}

Test(cli_validate, fewer_cores_than_the_prediction_has_are_named) {
    cpu_set_t allowed, one;
    int core = 0;
    cr_assert_eq(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    while (!CPU_ISSET(core, &allowed)) {
        core++;
    }
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        cr_skip_test("a machine of one core");
    }
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ProgramRun run = CLI("validate", "--world", "1", "--top", "1", "--spread", "0", QUICK, "--set", "node.cores=2",
                         "--with", "ndtune", "--", "echo", "step_time_s: 0.25");
    cr_assert(strstr(run.err, "bound to 1 of the 2 cores that local-cpu predicts for: give --set node.cores=1"), "%s",
              run.err);
    program_run_free(&run);
    run = CLI("validate", "--world", "1", "--top", "1", "--spread", "0", QUICK, "--set", "node.cores=1", "--with",
              "ndtune", "--", "echo", "step_time_s: 0.25");
    cr_assert_null(strstr(run.err, "bound to"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_validate, the_terms_of_a_measured_step_sum_to_it) {
    json_t *root = CLI_JSON(0, "validate", "--world", "2", "--top", "1", "--spread", "0", QUICK);
    const json_t *row = json_array_get(rows_of(root), 0), *parts = json_object_get(row, "measured_time");
    double sum = cli_number(parts, "compute_s") + cli_number(parts, "optimizer_s") + cli_number(parts, "overhead_s");
    const char *axis;
    json_t *seconds;
    json_object_foreach(json_object_get(parts, "exposed_communication_s"), axis, seconds) {
        sum += json_number_value(seconds);
    }
    // the recorded step is one of the two after the warm-up, the measured time their middle
    const json_t *steps = json_object_get(json_array_get(json_object_get(row, "runs"), 0), "step_time_s");
    const double second = json_number_value(json_array_get(steps, 1)),
                 third = json_number_value(json_array_get(steps, 2));
    cr_assert(fabs(sum - second) < 1e-6 * second || fabs(sum - third) < 1e-6 * third, "%g: %g %g", sum, second, third);
    json_decref(root);
}

Test(cli_validate, what_was_measured_is_not_run_again_until_it_is_wished) {
    json_t *first = CLI_JSON(0, "validate", "--world", "2", "--top", "1", "--spread", "0", "--db", db, QUICK);
    json_t *second = CLI_JSON(0, "validate", "--world", "2", "--top", "1", "--spread", "0", "--db", db, QUICK);
    json_t *third =
        CLI_JSON(0, "validate", "--world", "2", "--top", "1", "--spread", "0", "--no-cache", "--db", db, QUICK);
    const json_t *a = json_array_get(rows_of(first), 0), *b = json_array_get(rows_of(second), 0);
    const json_t *c = json_array_get(rows_of(third), 0);
    cr_assert_eq(cli_number(a, "measured_step_time_s"), cli_number(b, "measured_step_time_s"));
    cr_assert(json_is_true(json_object_get(json_array_get(json_object_get(b, "runs"), 0), "known")));
    cr_assert_eq(json_array_size(json_object_get(b, "tasks")), json_array_size(json_object_get(a, "tasks")));
    cr_assert(json_is_false(json_object_get(json_array_get(json_object_get(c, "runs"), 0), "known")));
    json_t *runs = CLI_JSON(0, "runs", "--db", db, "--format", "json");
    cr_assert_eq(json_array_size(json_object_get(runs, "runs")), 2);
    json_decref(first);
    json_decref(second);
    json_decref(third);
    json_decref(runs);
}

Test(cli_validate, the_runs_are_a_file_that_accuracy_predicts_as_validate_did) {
    char path[600];
    snprintf(path, sizeof path, "%s/runs.csv", folder);
    json_t *root = CLI_JSON(0, "validate", "--world", "2", "--top", "1", "--spread", "0", "--max-tp", "1", "--reshard",
                            "never", "--set", "node.cores=1", "--csv", path, QUICK);
    json_t *score = CLI_JSON(0, "accuracy", "--runs", path, "--format", "json");
    const json_t *row = json_array_get(rows_of(root), 0), *step = json_object_get(score, "step_time");
    const double error = cli_number(row, "predicted_step_time_s") / cli_number(row, "measured_step_time_s") - 1;
    cr_assert_eq(cli_number(score, "scored"), 1);
    cr_assert_float_eq(cli_number(step, "median_bias"), error, 1e-6, "%g", error);
    json_decref(root);
    json_decref(score);
}

Test(cli_validate, without_a_world_the_last_request_goes_on) {
    json_t *plan = CLI_JSON(0, "--world", "2", "--model", "tiny", "--seq", "64", "--db", db, "--cluster", "dgx-h100",
                            "--format", "json");
    ProgramRun run = CLI("validate", "--top", "1", "--spread", "0", "--db", db, "--steps", "3", "--repeats", "1",
                         "--format", "json");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "the last request: ndtune --world 2 --model tiny"), "%s", run.err);
    cr_assert_not_null(strstr(run.out, "\"seq\": 64"), "%s", run.out);
    cr_assert_not_null(strstr(run.out, "local-cpu"), "a GPU cluster is not where it runs: %s", run.out);
    program_run_free(&run);
    json_decref(plan);
}

Test(cli_validate, the_last_request_may_itself_have_gone_on) {
    json_t *plan = CLI_JSON(0, "--world", "2", "--model", "tiny", "--seq", "64", "--db", db, "--target", "ndtune",
                            "--cluster", "local-cpu", "--reduce-dtype", "bf16", "--set", "node.cores=1",
                            "--global-batch", "8", "--format", "json");
    for (int i = 0; i < 2; i++) {
        json_t *root = CLI_JSON(0, "validate", "--top", "1", "--spread", "0", "--db", db, "--layers", "1", "--steps",
                                "3", "--repeats", "1", "--format", "json");
        const json_t *request = json_object_get(root, "request");
        cr_assert_str_eq(cli_text(request, "reduce_dtype"), "bf16");
        cr_assert_not_null(strstr(cli_text(request, "command"), "--set node.cores=1"), "%s",
                           cli_text(request, "command"));
        json_decref(root);
    }
    json_decref(plan);
}

Test(cli_validate, an_empty_store_has_nothing_to_go_on_with) {
    ProgramRun run = CLI("validate", "--db", db);
    cr_assert_eq(run.exit_code, 1, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "--world"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_validate, a_framework_that_fails_for_one_shape_does_not_stop_the_others) {
    json_t *root = CLI_JSON(0, "validate", "--world", "2", "--top", "0", "--db", db, QUICK, "--with", "accelerate",
                            "--", "sh", "-c",
                            "if [ {tp} = 2 ]; then echo no rank 1 >&2; exit 7; fi; echo warm; for i in 1 2 3; do echo "
                            "step_time=0.0$i; done");
    size_t i, failed = 0;
    json_t *row;
    json_array_foreach(rows_of(root), i, row) {
        if (cli_number(json_object_get(row, "mesh"), "tp") > 1) {
            cr_assert_str_eq(cli_text(row, "state"), "failed");
            cr_assert_not_null(strstr(cli_text(row, "reason"), "code 7; its last words: no rank 1"));
            failed++;
        } else {
            cr_assert_float_eq(cli_number(row, "measured_step_time_s"), 0.025, 1e-12);  // of 0.02 and 0.03
        }
    }
    cr_assert_eq(failed, 1);
    cr_assert_gt(json_array_size(rows_of(root)), 2);
    json_t *one = CLI_JSON(0, "runs", "1", "--db", db, "--format", "json");
    cr_assert_str_eq(cli_text(one, "source"), "command");
    json_decref(root);
    json_decref(one);
}

Test(cli_validate, a_command_reads_its_shape_from_words_environment_and_file) {
    json_t *root = CLI_JSON(
        0, "validate", "--world", "2", "--top", "1", "--spread", "0", QUICK, "--with", "ndtune", "--", "sh", "-c",
        "test $NDTUNE_DP_SHARD = {dp_shard} && grep -q '\"dp_shard\": {dp_shard}' {config} && for i in 1 2 3; do "
        "echo step_time={global_batch}; done");
    cr_assert_eq(cli_number(json_array_get(rows_of(root), 0), "measured_step_time_s"), 2);
    json_decref(root);
}

Test(cli_validate, words_that_cannot_be_meant_are_usage_errors) {
    static const char *const base[] = {"validate", "--world", "2", "--model", "tiny"};
    const struct {
        const char *words[4];
        const char *says;
    } cases[] = {{{"--with", "accelerate"}, "needs a command"},
                 {{"--", "true"}, "--with"},
                 {{"--with", "accelerate", "--", "{tq}"}, "there is no {tq}"},
                 {{"--steps", "2"}, "leave nothing"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *words[10] = {0};
        memcpy(words, base, sizeof base);
        memcpy(words + 5, cases[i].words, sizeof cases[i].words);
        ProgramRun run = cli_words(words);
        cr_assert_eq(run.exit_code, 1, "case %zu: exit %d: %s", i, run.exit_code, run.err);
        cr_assert_not_null(strstr(run.err, cases[i].says), "%s", run.err);
        program_run_free(&run);
    }
}

Test(cli_validate, runs_that_all_fail_are_stored_with_their_reason) {
    setenv("NDTUNE_WORKER", "/bin/false", 1);
    ProgramRun run =
        CLI("validate", "--world", "2", "--model", "tiny", "--layers", "1", "--top", "2", "--spread", "0", "--db", db);
    cr_assert_eq(run.exit_code, 3, "%s", run.err);
    json_t *stored = CLI_JSON(0, "runs", "2", "--db", db, "--format", "json");  // the second shape was tried as well
    cr_assert_str_eq(cli_text(stored, "state"), "failed");
    cr_assert_not_null(strstr(cli_text(stored, "failure"), "exited with code 1"), "%s", cli_text(stored, "failure"));
    json_decref(stored);
    program_run_free(&run);
}

Test(cli_validate, a_repeat_that_fails_is_stored_as_failed_after_one_that_went_well) {
    char twice[1100];  // once for each rank
    snprintf(twice, sizeof twice, "mkdir %s/1 2>/dev/null || mkdir %s/2 2>/dev/null || exit 1", folder, folder);
    cli_worker(folder, twice);
    ProgramRun run = CLI("validate", "--world", "2", "--model", "tiny", "--layers", "1", "--steps", "3", "--top", "1",
                         "--spread", "0", "--repeats", "2", "--db", db);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    json_t *first = CLI_JSON(0, "runs", "1", "--db", db, "--format", "json");
    json_t *second = CLI_JSON(0, "runs", "2", "--db", db, "--format", "json");
    cr_expect_str_eq(cli_text(first, "state"), "ok");
    cr_expect_str_eq(cli_text(second, "state"), "failed");
    json_decref(first);
    json_decref(second);
    program_run_free(&run);
}

Test(cli_validate, a_rank_that_dies_in_one_shape_is_named_and_the_others_are_measured) {
    cli_worker_that_dies(folder, "cp=2");
    json_t *root = CLI_JSON(0, "validate", "--world", "2", "--top", "0", "--db", db, QUICK);
    size_t i, failed = 0;
    json_t *row;
    json_array_foreach(rows_of(root), i, row) {
        if (cli_number(json_object_get(row, "mesh"), "cp") > 1) {
            cr_assert_str_eq(cli_text(row, "state"), "failed");
            cr_assert_not_null(strstr(cli_text(row, "reason"), "rank 1"), "%s", cli_text(row, "reason"));
            cr_assert_not_null(strstr(cli_text(row, "reason"), "signal 9"), "%s", cli_text(row, "reason"));
            failed++;
        } else {
            cr_assert_str_eq(cli_text(row, "state"), "ok", "%s", json_string_value(json_object_get(row, "reason")));
        }
    }
    cr_assert_eq(failed, 1);
    cr_assert_gt(json_array_size(rows_of(root)), 2);
    json_decref(root);
}

Test(cli_validate, a_run_that_is_not_there_is_a_usage_error) {
    ProgramRun stored = CLI("predict", "--model", "tiny", "--mesh", "tp=1", "--db", db);  // makes the store
    program_run_free(&stored);
    ProgramRun run = CLI("runs", "7", "--db", db);
    cr_assert_eq(run.exit_code, 1);
    cr_assert_not_null(strstr(run.err, "no run 7"), "%s", run.err);
    program_run_free(&run);
}

// Ready, or not for speed alone: what else the machine does is not for a test to say.
static bool is_ready_or_slow(const ProgramRun *run) {
    return run->exit_code == 0 || (run->exit_code == 3 && strstr(run->err, "slow"));
}

Test(cli_validate, preflight_checks_every_group_exactly) {
    ProgramRun run = CLI("preflight", "--mesh", "dp_replicate=2,tp=2", "--model", "tiny", "--layers", "1", "--timeout",
                         "60", "--format", "json");
    cr_assert(is_ready_or_slow(&run), "exit %d: %s", run.exit_code, run.err);
    json_t *root = json_loads(run.out, JSON_REJECT_DUPLICATES, NULL);
    program_run_free(&run);
    cr_assert_not_null(root);
    cr_assert_str_eq(cli_text(root, "schema"), "ndtune.preflight/1");
    cr_assert_eq(json_array_size(json_object_get(root, "ranks")), 4);
    const json_t *groups = json_object_get(root, "groups");
    cr_assert_eq(json_array_size(groups), 8);  // two axes, four collectives
    size_t i;
    json_t *group;
    json_array_foreach(groups, i, group) {
        cr_assert_eq(cli_number(group, "wrong_elements"), 0);
        cr_assert_gt(cli_number(group, "measured_s"), 0);
    }
    json_decref(root);
}

Test(cli_validate, preflight_checks_every_link_between_stages) {
    ProgramRun run = CLI("preflight", "--mesh", "pp=3", "--model", "tiny", "--layers", "3", "--grad-accum", "3",
                         "--timeout", "60", "--format", "csv");
    cr_assert(is_ready_or_slow(&run), "exit %d: %s", run.exit_code, run.err);
    static const char *const received[] = {"pp,send_forward,", "pp,send_backward,"};
    for (size_t i = 0; i < sizeof received / sizeof received[0]; i++) {
        cr_expect_not_null(strstr(run.out, received[i]), "%s: %s", received[i], run.out);
    }
    program_run_free(&run);
}

// The fault of a run, on the link that carries its task.
Test(cli_validate, preflight_names_the_rank_that_a_message_between_stages_waits_for) {
    cr_assert_eq(setenv("NDTUNE_FAULT", "hang:0:send activations", 1), 0);
    ProgramRun run =
        CLI("preflight", "--mesh", "pp=2", "--model", "tiny", "--layers", "2", "--grad-accum", "2", "--timeout", "3");
    cr_assert_eq(unsetenv("NDTUNE_FAULT"), 0);
    cr_expect_eq(run.exit_code, 3, "exit %d: %s", run.exit_code, run.err);
    cr_expect_not_null(strstr(run.err, "rank 0"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_validate, preflight_works_over_mpi_too) {
    ProgramRun run = CLI("preflight", "--launcher", "mpirun", "--transport", "mpi", "--mesh", "pp=2", "--model", "tiny",
                         "--layers", "2", "--grad-accum", "2", "--timeout", "60", "--format", "csv");
    const bool lacks = strstr(run.err, "is not installed") || strstr(run.err, "not part of this build");
    if (lacks) {
        program_run_free(&run);
        cr_skip_test("no Open MPI here");
    }
    cr_assert(is_ready_or_slow(&run), "exit %d: %s", run.exit_code, run.err);
    cr_assert_not_null(strstr(run.out, "pp,all_reduce"), "%s", run.out);
    cr_assert_not_null(strstr(run.out, "pp,send_forward"), "%s", run.out);
    program_run_free(&run);
}

Test(cli_validate, preflight_names_a_rank_that_dies) {
    cli_worker_that_dies(folder, "tp=2");
    ProgramRun run = CLI("preflight", "--mesh", "tp=2", "--model", "tiny", "--layers", "1");
    cr_assert_eq(run.exit_code, 3, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "rank 1"), "%s", run.err);
    cr_assert_not_null(strstr(run.err, "signal 9"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_validate, preflight_names_what_is_missing) {
    ProgramRun one = CLI("preflight", "--mesh", "tp=1", "--model", "tiny");
    cr_assert_eq(one.exit_code, 1, "%s", one.err);
    program_run_free(&one);
    ProgramRun illegal = CLI("preflight", "--mesh", "tp=3", "--model", "tiny");
    cr_assert_eq(illegal.exit_code, 2, "%s", illegal.err);
    program_run_free(&illegal);
}

Test(cli_validate, a_probed_profile_plans_and_runs) {
    char path[600];
    snprintf(path, sizeof path, "%s/mine.json", folder);
    ProgramRun probe = CLI("probe", "--world", "2", "--out", path);
    cr_assert_eq(probe.exit_code, 0, "%s", probe.err);
    cr_assert_not_null(strstr(probe.out, "curves.all_reduce-1x2"), "%s", probe.out);
    program_run_free(&probe);
    json_t *plan = CLI_JSON(0, "--world", "2", "--model", "tiny", "--cluster", path, "--format", "json");
    cr_assert_gt(json_array_size(json_object_get(plan, "entries")), 0);
    json_t *checked = CLI_JSON(0, "validate", "--world", "2", "--cluster", path, "--top", "1", "--spread", "0", QUICK);
    cr_assert_str_eq(cli_text(json_object_get(checked, "request"), "cluster"), "mine");
    json_decref(plan);
    json_decref(checked);
}

Test(cli_validate, a_probe_extends_only_what_is_built_in) {
    ProgramRun run = CLI("probe", "--cluster", "nowhere");
    cr_assert_eq(run.exit_code, 1, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "nowhere"), "%s", run.err);
    program_run_free(&run);
}
