// Slow ranks and links on the command line.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/cli/cli.h"

static double step_of(const char *const *words) {
    json_t *root = cli_json_words(0, words);
    const double step_s = cli_number(root, "step_time_s");
    json_decref(root);
    return step_s;
}

#define PREDICT_ON(mesh) "predict", "--mesh", mesh, "--model", "7b", "--format", "json"
#define PREDICT PREDICT_ON("dp_shard=8,tp=2")
#define STEP_ON(mesh, ...) step_of((const char *const[]){PREDICT_ON(mesh), __VA_ARGS__, NULL})
#define STEP(...) STEP_ON("dp_shard=8,tp=2", __VA_ARGS__)

Test(cli_what_if, a_slow_rank_slows_the_step_and_is_among_the_assumptions) {
    const double sound_s = STEP("--seq", "4096");
    const double slow_s = STEP("--set", "rank.3.slowdown=1.2");
    cr_assert_gt(slow_s, sound_s);
    cr_assert_lt(slow_s, 1.2 * sound_s);
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=8,tp=2", "--model", "7b", "--set", "rank.3.slowdown=1.2");
    cr_assert_not_null(strstr(run.out, "what if: rank 3 computes 1.2 times as long"), "%s", run.out);
    program_run_free(&run);
}

// However many ranks read, and in words.
Test(cli_what_if, a_drive_that_is_late_is_what_a_step_waits_for) {
    cr_expect_float_eq(STEP_ON("dp_shard=64", "--grad-accum", "1", "--set", "node.sequence_read_s=9"), 9, 1e-9);
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=64", "--model", "7b", "--grad-accum", "1", "--set",
                         "node.sequence_read_s=9");
    cr_assert_not_null(strstr(run.out, "steps wait for their data"), "%s", run.out);
    program_run_free(&run);
}

// One ring over all ranks goes as fast as its slowest link. With tp there is no such law: of two rings at once the one
// without the slow link is done sooner, and until then disturbs products more (7b, dp_shard=8, tp=2: 0.003 %).
Test(cli_what_if, a_slow_node_is_slower_than_one_of_its_links) {
    const double one_s = STEP_ON("dp_shard=16", "--set", "rank.9.link_slowdown=2");
    cr_assert_gt(one_s, STEP_ON("dp_shard=16", "--seq", "4096"));
    cr_assert_geq(STEP_ON("dp_shard=16", "--set", "node.1.link_slowdown=2"), one_s);
}

Test(cli_what_if, nodes_are_counted_after_the_profile_is_changed) {
    ProgramRun run = CLI(PREDICT, "--set", "node.3.slowdown=2", "--set", "node.gpus=4");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    run = CLI(PREDICT, "--set", "node.3.slowdown=2");
    cr_assert_eq(run.exit_code, 1);
    cr_assert_not_null(strstr(run.err, "there is no node 3: a world of 16 has 2 nodes"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_what_if, a_rank_beyond_the_world_is_underlined) {
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=8", "--model", "7b", "--set", "rank.8.slowdown=2");
    cr_assert_eq(run.exit_code, 1);
    cr_assert_not_null(strstr(run.err, "~~~~~~~~~~~~~~~~~\n"), "%s", run.err);
    cr_assert_not_null(strstr(run.err, "there is no rank 8: a world of 8 has 8 ranks"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_what_if, each_world_of_a_list_must_have_the_rank) {
    ProgramRun run = CLI("--world", "8,16", "--model", "tiny", "--set", "rank.12.slowdown=2");
    cr_assert_eq(run.exit_code, 1);
    cr_assert_not_null(strstr(run.err, "a world of 8 has 8 ranks"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_what_if, estimates_are_refused) {
    ProgramRun run = CLI("--world", "8", "--model", "7b", "--set", "rank.3.slowdown=2", "--effort", "estimate");
    cr_assert_eq(run.exit_code, 1);
    cr_assert_not_null(strstr(run.err, "an estimate knows no slow rank"), "%s", run.err);
    program_run_free(&run);
}

// A log of torchtitan that reports fewer tokens per second than predicted, and seconds.
Test(cli_what_if, a_measured_step_stands_next_to_the_prediction) {
    char *folder = temp_dir_make(), path[512];
    snprintf(path, sizeof path, "%s/train.log", folder);
    FILE *log = fopen(path, "wb");
    cr_assert_not_null(log);
    for (int step = 1; step <= 6; step++) {
        fprintf(
            log,
            "[titan] INFO - step: %2d  loss: 9.1  memory: 45.3GiB(57.3%%)  tps: 3,900  tflops: 301.2  mfu: 30.4%%\n",
            step);
    }
    fclose(log);
    const char *const given[] = {path, "2.1005"};  // 8192 tokens of a rank at 3,900 per second
    for (int i = 0; i < 2; i++) {
        json_t *root = CLI_JSON(0, "predict", "--mesh", "dp_shard=16", "--model", "8b", "--target", "torchtitan",
                                "--seq", "8k", "--recompute", "selective", "--measured", given[i], "--format", "json");
        const json_t *measured = json_object_get(root, "measured");
        cr_expect_float_eq(cli_number(measured, "step_time_s"), 8192.0 / 3900, 1e-3);
        cr_expect(json_is_false(json_object_get(measured, "in_interval")));
        cr_expect_gt(json_array_size(json_object_get(measured, "causes")), 3);
        json_decref(root);
    }
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=16", "--model", "8b", "--measured", "/no/such.log");
    cr_expect_eq(run.exit_code, 3);
    cr_expect_not_null(strstr(run.err, "--measured /no/such.log cannot be read"), "%s", run.err);
    program_run_free(&run);
    temp_dir_remove(folder);
}
