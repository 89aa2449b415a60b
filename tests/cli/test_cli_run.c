// ndtune run: real training steps on this machine, as scripts use them.

#define _GNU_SOURCE  // setenv in strict C

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli.h"

static double at(const json_t *root, const char *key, size_t index) {
    const json_t *value = json_array_get(json_object_get(root, key), index);
    cr_assert(json_is_number(value), "%s[%zu]", key, index);
    return json_number_value(value);
}

Test(cli_run, one_object_keeps_the_contract) {
    json_t *root = CLI_JSON(0, "run", "--mesh", "dp_shard=2", "--model", "tiny", "--steps", "4", "--format", "json");
    cr_assert_str_eq(json_string_value(json_object_get(root, "schema")), "ndtune.run/1");
    cr_assert_str_eq(json_string_value(json_object_get(root, "state")), "ok");
    cr_assert_eq(cli_number(json_object_get(root, "mesh"), "dp_shard"), 2);
    cr_assert_eq(json_array_size(json_object_get(root, "loss")), 4);
    cr_assert_eq(json_array_size(json_object_get(root, "grad_norm")), 4);
    cr_assert_eq(json_array_size(json_object_get(root, "step_time_s")), 4);
    cr_assert_eq(cli_number(root, "peak_bytes"), cli_number(root, "planned_peak_bytes"));
    json_decref(root);
}

// A device that goes on another way than asked, which the run's numbers do not show.
Test(cli_run, what_rank_0_notes_is_a_warning_and_all_else_that_workers_say_is_not) {
    char *folder = temp_dir_make();
    cli_worker(folder, "echo 'note: the moon is full' >&2; echo 'and the sky is clear' >&2");
    ProgramRun run = CLI("run", "--mesh", "dp_shard=1", "--model", "tiny", "--steps", "1", "--seq", "16");
    cr_expect_eq(run.exit_code, 0);
    cr_expect(strstr(run.err, "ndtune: warning: the moon is full\n"), "%s", run.err);
    cr_expect(!strstr(run.err, "sky"), "%s", run.err);
    program_run_free(&run);
    unsetenv("NDTUNE_WORKER");
    temp_dir_remove(folder);
}

Test(cli_run, the_loss_falls) {
    json_t *root = CLI_JSON(0, "run", "--mesh", "tp=2", "--model", "tiny", "--steps", "10", "--format", "json");
    cr_assert_lt(at(root, "loss", 9), at(root, "loss", 0));
    json_decref(root);
}

Test(cli_run, every_shape_starts_at_the_loss_of_one_rank) {
    json_t *one = CLI_JSON(0, "run", "--mesh", "dp_shard=1", "--model", "tiny", "--steps", "1", "--grad-accum", "2",
                           "--format", "json");
    json_t *two = CLI_JSON(0, "run", "--mesh", "dp_shard=2", "--model", "tiny", "--steps", "1", "--format", "json");
    const double loss = at(one, "loss", 0);  // the same two sequences; fp32 at step 1: sim/SOURCES.md X3
    cr_assert_float_eq(at(two, "loss", 0), loss, 2e-6 * loss);
    json_decref(one);
    json_decref(two);
}

Test(cli_run, the_program_of_another_target_starts_at_the_same_loss) {
    json_t *own = CLI_JSON(0, "run", "--mesh", "tp=2", "--model", "tiny", "--steps", "1", "--format", "json");
    static const char *const targets[] = {"accelerate", "megatron@2022"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        json_t *other = CLI_JSON(0, "run", "--mesh", "tp=2", "--model", "tiny", "--steps", "1", "--target", targets[i],
                                 "--format", "json");
        const double loss = at(own, "loss", 0);
        cr_expect_float_eq(at(other, "loss", 0), loss, 2e-6 * loss, "%s", targets[i]);
        cr_expect_eq(strncmp(targets[i], json_string_value(json_object_get(other, "target")), 8), 0);
        json_decref(other);
    }
    json_decref(own);
}

Test(cli_run, bitwise_gives_every_shape_the_same_losses) {
    static const char *const meshes[] = {"dp_shard=1", "tp=2", "cp=2"};
    json_t *runs[3];
    for (int i = 0; i < 3; i++) {
        runs[i] = CLI_JSON(0, "run", "--mesh", meshes[i], "--model", "tiny", "--layers", "1", "--seq", "16", "--steps",
                           "2", "--bitwise", "--format", "json");
        cr_expect_str_eq(json_string_value(json_object_get(runs[i], "lanes")), "serial, bitwise");
        cr_expect(json_equal(json_object_get(runs[i], "loss"), json_object_get(runs[0], "loss")), "%s", meshes[i]);
        cr_expect(json_equal(json_object_get(runs[i], "grad_norm"), json_object_get(runs[0], "grad_norm")), "%s",
                  meshes[i]);
    }
    for (int i = 0; i < 3; i++) {
        json_decref(runs[i]);
    }
}

Test(cli_run, bitwise_refuses_a_model_without_exact_sums) {
    ProgramRun run = CLI("run", "--mesh", "dp_shard=2", "--model", "gpt2", "--layers", "1", "--bitwise");
    cr_assert_eq(run.exit_code, 2, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "models of the Llama type"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_run, deterministic_refuses_attention_without_an_order) {
    ProgramRun run = CLI("run", "--mesh", "dp_shard=1", "--model", "tiny", "--device", "cuda", "--attention", "cudnn",
                         "--deterministic");
    cr_assert_eq(run.exit_code, 2, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "use attention flash with deterministic"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_run, what_the_executor_has_not_is_exit_2_in_words) {
    ProgramRun run = CLI("run", "--mesh", "tp=2", "--model", "tiny", "--target", "megatron", "--tp-overlap", "on");
    cr_assert_eq(run.exit_code, 2, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "tp_overlap off"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_run, every_task_has_a_measured_and_a_predicted_time) {
    json_t *root =
        CLI_JSON(0, "run", "--mesh", "dp_shard=2,tp=2", "--model", "tiny", "--steps", "3", "--format", "json");
    const json_t *tasks = json_object_get(root, "tasks");
    cr_assert_gt(json_array_size(tasks), 20);
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task) {
        cr_assert_gt(cli_number(task, "count"), 0, "%s", json_string_value(json_object_get(task, "name")));
        cr_assert_gt(cli_number(task, "measured_s"), 0, "%s", json_string_value(json_object_get(task, "name")));
        cr_assert_gt(cli_number(task, "predicted_s"), 0, "%s", json_string_value(json_object_get(task, "name")));
    }
    json_decref(root);
}

Test(cli_run, the_table_shows_losses_tasks_and_memory) {
    ProgramRun run = CLI("run", "--mesh", "cp=2", "--model", "tiny", "--steps", "2");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    static const char *const words[] = {"grad norm", "measured", "predicted", "attention", "planned", "state: ok"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        cr_assert_not_null(strstr(run.out, words[i]), "no %s in %s", words[i], run.out);
    }
    program_run_free(&run);
}

Test(cli_run, csv_has_a_line_per_step) {
    ProgramRun run =
        CLI("run", "--mesh", "dp_shard=1", "--model", "tiny", "--steps", "3", "--layers", "1", "--format", "csv");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    int lines = 0;
    for (const char *p = run.out; (p = strchr(p, '\n')); p++) {
        lines++;
    }
    cr_assert_eq(lines, 1 + 3);
    program_run_free(&run);
}

Test(cli_run, an_illegal_shape_is_exit_2_in_words) {
    ProgramRun run = CLI("run", "--mesh", "tp=3", "--model", "tiny");
    cr_assert_eq(run.exit_code, 2, "%s", run.err);
    cr_assert_not_null(strstr(run.err, "tp=3"), "%s", run.err);
    program_run_free(&run);
}

// The latest run of the store.
static json_t *latest_run(const char *db) {
    json_t *root = CLI_JSON(0, "runs", "--db", db, "--format", "json");
    json_t *run = json_incref(json_array_get(json_object_get(root, "runs"), 0));
    json_decref(root);
    cr_assert_not_null(run);
    return run;
}

Test(cli_run, a_failed_run_is_stored_with_its_reason_and_the_next_one_goes_well) {
    char *folder = temp_dir_make(), db[512];
    snprintf(db, sizeof db, "%s/test.db", folder);
    setenv("NDTUNE_FAULT", "hang:1:mlp down", 1);
    ProgramRun failed = CLI("run", "--mesh", "tp=2", "--model", "tiny", "--steps", "2", "--db", db, "--timeout", "2");
    unsetenv("NDTUNE_FAULT");
    cr_expect_eq(failed.exit_code, 3, "%d: %s", failed.exit_code, failed.err);
    json_t *run = latest_run(db);
    const char *reason = json_string_value(json_object_get(run, "failure"));
    cr_expect_str_eq(json_string_value(json_object_get(run, "state")), "failed");
    cr_expect(reason && strstr(reason, "for rank 1 on") && strstr(reason, "mlp down") && strstr(failed.err, reason),
              "%s", reason ? reason : "no reason");
    json_decref(run);
    json_decref(
        CLI_JSON(0, "run", "--mesh", "tp=2", "--model", "tiny", "--steps", "1", "--db", db, "--format", "json"));
    run = latest_run(db);
    cr_expect_str_eq(json_string_value(json_object_get(run, "state")), "ok");
    json_decref(run);
    program_run_free(&failed);
    temp_dir_remove(folder);
}

Test(cli_run, a_run_whose_trace_cannot_be_written_is_stored) {
    char *folder = temp_dir_make(), db[512];
    snprintf(db, sizeof db, "%s/test.db", folder);
    ProgramRun run =
        CLI("run", "--mesh", "tp=2", "--model", "tiny", "--steps", "1", "--db", db, "--trace", "/dev/full");
    cr_expect_eq(run.exit_code, 3, "%d: %s", run.exit_code, run.err);
    json_t *stored = latest_run(db);
    cr_expect_str_eq(json_string_value(json_object_get(stored, "state")), "ok");
    json_decref(stored);
    program_run_free(&run);
    temp_dir_remove(folder);
}
