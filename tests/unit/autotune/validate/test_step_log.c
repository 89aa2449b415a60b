// Step times from lines as the frameworks print them.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "autotune/validate/step_log.h"

static Arena arena;
static StepLog step_log;

static void end(void) {
    arena_free(&arena);
}

TestSuite(step_log, .fini = end);

static void log_is(const char *text, const char *format, int count, double last_s) {
    step_log_read(text, 4096, &arena, &step_log);
    cr_assert_not_null(step_log.format);
    cr_assert_not_null(strstr(step_log.format, format), "%s", step_log.format);
    cr_assert_eq(step_log.count, count, "%d", step_log.count);
    cr_assert_float_eq(step_log.step_s[count - 1], last_s, 1e-9 + 1e-6 * last_s, "%g", step_log.step_s[count - 1]);
}

Test(step_log, plain_lines_are_seconds) {
    log_is("start\nstep 1 loss 3.2 step_time=0.25\nstep 2 step_time=0.125 tokens 9\n", "step_time", 2, 0.125);
    log_is("{\"step\": 3, \"step_time_s\": 1.5e-2}\n", "step_time", 1, 0.015);
    log_is("step time: 12.5 ms\n", "step_time", 1, 0.0125);
}

Test(step_log, megatron_prints_milliseconds) {
    log_is(" [2026-01-01 10:00:00] iteration       10/     100 | consumed samples:         2560 | elapsed time per "
           "iteration (ms): 1234.5 | throughput per GPU (TFLOP/s/GPU): 400.1 | learning rate: 1.0E-04 |\n",
           "Megatron", 1, 1.2345);
}

Test(step_log, nanotron_shortens_its_numbers) {
    log_is("iteration: 1 / 15 | consumed_tokens: 262K | elapsed_time_per_iteration_ms: 3.05K | tokens_per_sec: 86K\n"
           "iteration: 2 / 15 | consumed_tokens: 524K | elapsed_time_per_iteration_ms: 812 | tokens_per_sec: 323K\n",
           "nanotron", 2, 0.812);
}

Test(step_log, torchtitan_prints_tokens_per_second_and_device) {
    log_is("[titan] INFO - step:  1  loss:  8.1  grad_norm: 1.2  memory:  1.2GiB(1.5%)  tps: 1,024  tflops: 3.1  mfu: "
           "0.3%\n"
           "[titan] INFO - step: 10  loss:  7.1  grad_norm: 1.1  memory:  1.2GiB(1.5%)  tps: 8,192  tflops: 25  mfu: "
           "2.5%\n",
           "torchtitan", 2, 0.5);  // 4096 tokens of a rank / 8192 per second
}

Test(step_log, the_progress_bar_of_a_trainer_is_redrawn_on_one_line) {
    log_is("  0%|          | 0/4 [00:00<?, ?it/s]\r 25%|##        | 1/4 [00:02<00:06,  2.00s/it]\r 50%|#####     | 2/4 "
           "[00:02<00:02,  1.25it/s]\n",
           "progress bar", 2, 0.8);
}

Test(step_log, the_summary_of_a_trainer_is_an_average) {
    log_is("{'train_runtime': 12.5, 'train_samples_per_second': 6.4, 'train_steps_per_second': 1.6, 'epoch': 1.0}\n",
           "summary", 1, 0.625);
    cr_assert(step_log.average);
}

Test(step_log, other_words_tell_nothing) {
    step_log_read("loss 3.1\nwarming up\n", 4096, &arena, &step_log);
    cr_assert_null(step_log.format);
    cr_assert_eq(step_log.count, 0);
}

Test(step_log, a_trainer_state_tells_the_time_of_a_run_that_ended) {
    log_is("{\"global_step\": 4, \"max_steps\": 4, \"log_history\": [{\"epoch\": 0.5, \"loss\": 3.1, \"step\": 2},"
           " {\"epoch\": 1.0, \"step\": 4, \"total_flos\": 1.5e15, \"train_loss\": 2.9, \"train_runtime\": 10.0,"
           " \"train_samples_per_second\": 12.8, \"train_steps_per_second\": 0.4}]}",
           "trainer_state", 1, 2.5);
    cr_assert(step_log.average);
}

Test(step_log, a_trainer_state_of_a_run_that_was_stopped_early_counts_the_steps_it_made) {
    log_is("{\"global_step\": 4, \"max_steps\": 100, \"log_history\": [{\"step\": 4, \"train_runtime\": 10.0}]}",
           "trainer_state", 1, 2.5);
}

Test(step_log, a_trainer_state_without_times_says_so_in_words) {
    step_log_read("{\"max_steps\": 4, \"log_history\": [{\"epoch\": 0.5, \"loss\": 3.1, \"step\": 2}]}", 1, &arena,
                  &step_log);
    cr_assert_eq(step_log.count, 0);
    cr_assert_not_null(step_log.nothing);
    cr_assert(strstr(step_log.nothing, "train_runtime"));
}

// Files in the formats of the frameworks; their numbers are made up (logs/README.md).
static void file_is(const char *name, const char *format, int count, double last_s) {
    static char text[1 << 16];
    char path[512];
    snprintf(path, sizeof path, "%s/tests/unit/autotune/validate/logs/%s", NDTUNE_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    log_is(text, format, count, last_s);
}

Test(step_log, whole_logs_of_each_framework_are_read) {
    file_is("torchtitan.log", "torchtitan", 4, 4096 / 5842.0);
    file_is("megatron.log", "Megatron", 3, 3.5984);
    file_is("nanotron.log", "nanotron", 3, 3.04);
    file_is("hf_trainer.log", "summary", 1, 1 / 0.797);
    file_is("trainer_state.json", "trainer_state", 1, 1.254021);
}
