// ndtune explain --from as users call it: what it says about their file, and that the advice matches what the program
// predicts elsewhere.

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autotune/cli/quote.h"
#include "sim/base/arena.h"
#include "tests/cli/cli.h"

#define FILES NDTUNE_SOURCE_DIR "/tests/golden/import/files/"
#define FROM(file) "explain", "--from", FILES file, "--model", "tiny", "--seq", "1024"

Test(cli_import, an_import_of_each_kind_has_its_prediction_and_its_advice) {
    static const struct {
        const char *file, *format;
    } kinds[] = {{FILES "accelerate_fsdp2.yaml", "accelerate"},
                 {FILES "axolotl_fsdp2.yaml", "axolotl"},
                 {FILES "torchtitan_llama3_8b.toml", "torchtitan"},
                 {FILES "deepspeed_zero3.json", "deepspeed"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        json_t *root = CLI_JSON(0, "explain", "--from", kinds[i].file, "--model", "tiny", "--seq", "1024", "--world",
                                i == 0   ? "32"
                                : i == 3 ? "8"
                                         : "16",
                                "--format", "json");
        cr_expect_str_eq(json_string_value(json_object_get(root, "schema")), "ndtune.explain-from/1");
        cr_expect_str_eq(json_string_value(json_object_get(root, "format")), kinds[i].format);
        const json_t *own = json_object_get(root, "own"), *best = json_object_get(root, "best");
        cr_expect_gt(cli_number(own, "step_time_s"), 0);
        cr_expect_geq(cli_number(best, "tokens_per_s"), cli_number(own, "tokens_per_s"), "%s", kinds[i].file);
        cr_expect_float_eq(cli_number(root, "gain"),
                           cli_number(best, "tokens_per_s") / cli_number(own, "tokens_per_s") - 1, 1e-9);
        cr_expect_eq(cli_number(json_object_get(own, "plan"), "global_batch"),
                     cli_number(json_object_get(best, "plan"), "global_batch"));
        cr_expect_gt(json_array_size(json_object_get(root, "changes")), 0);
        cr_expect_gt(json_array_size(json_object_get(root, "findings")), 0);
        json_decref(root);
    }
}

// The same plan by predict, and the same change by predict, are the same numbers.
Test(cli_import, its_numbers_are_those_of_predict) {
    json_t *root = CLI_JSON(0, FROM("deepspeed_zero3.json"), "--format", "json");
    json_t *same = CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "tiny", "--seq", "1024", "--target",
                            "deepspeed", "--micro-batch", "2", "--grad-accum", "8", "--format", "json");
    cr_expect_float_eq(cli_number(json_object_get(root, "own"), "step_time_s"), cli_number(same, "step_time_s"), 1e-12);
    json_t *full =
        CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "tiny", "--seq", "1024", "--target", "deepspeed",
                 "--micro-batch", "2", "--grad-accum", "8", "--recompute", "full", "--format", "json");
    const json_t *change;
    size_t index;
    bool found = false;
    json_array_foreach(json_object_get(root, "changes"), index, change) {
        if (strcmp(json_string_value(json_object_get(change, "change")), "recompute full") == 0) {
            found = true;
            cr_expect_float_eq(cli_number(change, "step_time_s"), cli_number(full, "step_time_s"), 1e-12);
            cr_expect_float_eq(cli_number(change, "gain"),
                               cli_number(full, "tokens_per_s") / cli_number(same, "tokens_per_s") - 1, 1e-9);
        }
    }
    cr_expect(found);
    json_decref(root);
    json_decref(same);
    json_decref(full);
}

Test(cli_import, a_config_that_cannot_run_still_gets_the_best_and_the_exit_code_says_it) {
    ProgramRun run = CLI(FROM("accelerate_wrong_product.yaml"));
    cr_expect_eq(run.exit_code, 2);
    cr_expect(strstr(run.err, "= 64, and the world has 16 ranks"), "%s", run.err);
    cr_expect(strstr(run.out, "\nbest "), "%s", run.out);
    program_run_free(&run);
}

Test(cli_import, a_plan_that_does_not_fit_is_said_with_the_changes_that_do) {
    json_t *root = CLI_JSON(2, "explain", "--from", FILES "deepspeed_trainer.json", "--model", "13b", "--world", "8",
                            "--seq", "4096", "--micro-batch", "8", "--grad-accum", "2", "--format", "json");
    const json_t *own = json_object_get(root, "own");
    cr_expect(json_is_false(json_object_get(own, "feasible")));
    cr_expect(json_is_true(json_object_get(own, "legal")));
    const json_t *changes = json_object_get(root, "changes");
    cr_assert_gt(json_array_size(changes), 0);
    cr_expect(json_is_true(json_object_get(json_array_get(changes, 0), "feasible")));
    json_decref(root);
}

Test(cli_import, what_the_file_does_not_hold_is_said) {
    ProgramRun run = CLI(FROM("accelerate_fsdp2.yaml"));
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "micro-batch 1: the file does not hold it; say it with --micro-batch"), "%s", run.out);
    cr_expect(strstr(run.out, "line 10, fsdp_config.fsdp_backward_prefetch"), "%s", run.out);
    cr_expect(strstr(run.out, "ndtune export --as accelerate-yaml --mesh"), "%s", run.out);
    program_run_free(&run);
}

// "without it" is of the key, which the file has on no line.
Test(cli_import, what_a_key_would_do_that_the_file_lacks_names_the_key) {
    char *folder = temp_dir_make(), path[512];
    snprintf(path, sizeof path, "%s/rows.yaml", folder);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fputs("max_length: 1024\nper_device_train_batch_size: 1\ndataset_name: a/b\n", out);
    fclose(out);
    ProgramRun run = CLI("explain", "--from", path, "--from-format", "trl", "--model", "tiny", "--world", "2");
    cr_expect(strstr(run.out, "\n  packing: rows are max_length tokens long"), "%s%s", run.out, run.err);
    program_run_free(&run);
    temp_dir_remove(folder);
}

Test(cli_import, the_table_of_csv_is_rectangular) {
    ProgramRun run = CLI(FROM("torchtitan_llama3_8b.toml"), "--world", "16", "--format", "csv");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    static const char header[] = "kind,key,what,line,plan,step_time_s,tokens_per_s,gain,reserved_bytes,feasible\r\n";
    cr_expect_eq(strncmp(run.out, header, strlen(header)), 0, "%.100s", run.out);
    int rows = 0;
    for (const char *line = run.out; *line; line = strstr(line, "\r\n") + 2) {
        int commas = 0;
        bool quoted = false;
        for (const char *at = line; *at != '\r'; at++) {
            quoted ^= *at == '"';
            commas += *at == ',' && !quoted;
        }
        cr_expect_eq(commas, 9, "row %d", rows);
        rows++;
    }
    cr_expect_gt(rows, 5);
    program_run_free(&run);
}

Test(cli_import, errors_point_at_the_file) {
    ProgramRun none = CLI("explain", "--from", "/nowhere.yaml", "--model", "tiny");
    cr_expect_eq(none.exit_code, 3);
    cr_expect(strstr(none.err, "/nowhere.yaml cannot be read"), "%s", none.err);
    program_run_free(&none);
    ProgramRun worldless = CLI(FROM("axolotl_lora.yaml"));
    cr_expect_eq(worldless.exit_code, 1);
    cr_expect(strstr(worldless.err, "neither the file nor --world"), "%s", worldless.err);
    program_run_free(&worldless);
    ProgramRun alone = CLI("explain", "--world", "8", "--model", "tiny", "--grad-accum", "2");
    cr_expect_eq(alone.exit_code, 1);
    cr_expect(strstr(alone.err, "goes with --from"), "%s", alone.err);
    program_run_free(&alone);
    ProgramRun other = CLI(FROM("axolotl_lora.yaml"), "--from-format", "deepspeed", "--world", "8");
    cr_expect_eq(other.exit_code, 0, "%s", other.err);  // read as the stated format, and every ignored key is reported
    cr_expect(strstr(other.out, "base_model: no key of DeepSpeed's"), "%s", other.out);
    program_run_free(&other);
}

// Runs the line that is offered, with these words before the format.
static void check_line(const char *const *asked) {
    const char *as_json[CLI_MAX_WORDS] = {0};
    int words_asked = 0;
    for (; asked[words_asked]; words_asked++) {
        as_json[words_asked] = asked[words_asked];
    }
    as_json[words_asked] = "--format";
    as_json[words_asked + 1] = "json";
    ProgramRun run = cli_words(asked);
    json_t *root = cli_json_words(0, as_json);
    const json_t *best = json_object_get(root, "best");
    const char *line = strstr(run.out, "The best as a file: ndtune ");
    cr_assert(line, "%s", run.out);
    int count = 0;
    Arena arena = {0};
    line += strlen("The best as a file: ");
    char **words = quote_split(arena_format(&arena, "%.*s", (int)strcspn(line, "\n"), line), &count, &arena);
    const char *argv[CLI_MAX_WORDS] = {0};
    cr_assert_lt(count, CLI_MAX_WORDS - 4);
    for (int i = 1; i < count; i++) {
        argv[i - 1] = words[i];
    }
    argv[count - 1] = "--format";
    argv[count] = "json";
    json_t *file = cli_json_words(0, argv);
    const json_t *written = json_object_get(file, "prediction");
    cr_expect(json_equal(json_object_get(written, "plan"), json_object_get(best, "plan")), "%s", line);
    cr_expect(json_equal(json_object_get(written, "mesh"), json_object_get(best, "mesh")), "%s", line);
    cr_expect_float_eq(cli_number(written, "step_time_s"), cli_number(best, "step_time_s"), 1e-12);
    json_decref(file);
    json_decref(root);
    arena_free(&arena);
    program_run_free(&run);
}

// A stage of sharding that is not the target's own, a batch, kernels and a changed cluster: the line that is offered
// has them all.
Test(cli_import, the_line_that_writes_the_best_writes_that_plan) {
    check_line((const char *const[]){FROM("deepspeed_zero3.json"), "--attention", "eager", "--set",
                                     "fabric.node_gbps=800", NULL});
}

// The flags of Megatron-LM are read as a newer version than a file of them is written for.
Test(cli_import, the_line_that_writes_the_best_names_a_version_that_is_not_the_files_usual_one) {
    check_line((const char *const[]){"explain", "--from",
                                     NDTUNE_SOURCE_DIR "/tests/golden/export/megatron_bf16_states.sh", "--model",
                                     "tiny", "--seq", "1024", NULL});
}

// DeepSpeed's file cannot hold gathered layers, so the search has to look at stage 3 without them.
Test(cli_import, no_single_change_that_fits_is_faster_than_the_best) {
    json_t *root = CLI_JSON(0, "explain", "--from", FILES "deepspeed_trainer.json", "--model", "7b", "--world", "32",
                            "--format", "json");
    const double best = cli_number(json_object_get(root, "best"), "tokens_per_s");
    const json_t *change;
    size_t index, fitting = 0;
    json_array_foreach(json_object_get(root, "changes"), index, change) {
        if (json_is_true(json_object_get(change, "feasible"))) {
            fitting++;
            cr_expect_leq(cli_number(change, "tokens_per_s"), best, "%s",
                          json_string_value(json_object_get(change, "change")));
        }
    }
    cr_expect_gt(fitting, 3);
    json_decref(root);
}

Test(cli_import, where_no_file_can_say_what_fits_the_reason_stands_there) {
    ProgramRun run = CLI(FROM("accelerate_wrong_product.yaml"), "--world", "30");
    cr_expect_eq(run.exit_code, 2);
    cr_expect(strstr(run.out, "\nbest  there is none: 30 ranks do not fill whole nodes"), "%s", run.out);
    program_run_free(&run);
    json_t *root = CLI_JSON(2, FROM("accelerate_wrong_product.yaml"), "--world", "30", "--format", "json");
    cr_expect(json_is_null(json_object_get(root, "best")));
    const char *reason = json_string_value(json_object_get(root, "no_best"));
    cr_assert_not_null(reason);
    cr_expect(strstr(reason, "30 ranks do not fill whole nodes"), "%s", reason);
    json_decref(root);
}

// "meta-llama/Llama-3.1-8B" has a preset: the user need not name it twice.
Test(cli_import, a_file_that_names_a_model_of_the_hub_says_the_model) {
    json_t *root = CLI_JSON(0, "explain", "--from", FILES "axolotl_fsdp2.yaml", "--world", "16", "--effort", "estimate",
                            "--format", "json");
    cr_expect_str_eq(cli_text(json_object_get(json_object_get(root, "own"), "model"), "name"), "llama-3.1-8b");
    json_decref(root);
}

// The signals that a process has handlers for, bit n - 1 for signal n (proc(5)).
static unsigned long long caught_signals(pid_t pid) {
    char path[64], line[256];
    unsigned long long mask = ~0ull;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "r");
    cr_assert_not_null(status);
    while (fgets(line, sizeof line, status)) {
        sscanf(line, "SigCgt: %llx", &mask);
    }
    fclose(status);
    return mask;
}

// It waits for the text of a file that is a pipe: the reader of a long file looks for signals as little.
Test(cli_import, a_signal_while_the_file_is_read_ends_the_program) {
    char *folder = temp_dir_make(), pipe_path[512];
    snprintf(pipe_path, sizeof pipe_path, "%s/slow.yaml", folder);
    cr_assert_eq(mkfifo(pipe_path, 0600), 0);
    char *const words[] = {NDTUNE_BIN_DIR "/ndtune", "explain", "--from", pipe_path, "--model", "tiny", NULL};
    extern char **environ;
    pid_t pid = 0;
    cr_assert_eq(posix_spawn(&pid, words[0], NULL, NULL, words, environ), 0);
    const int writer = open(pipe_path, O_WRONLY);  // returns when it reads
    cr_assert_geq(writer, 0);
    cr_expect_eq(caught_signals(pid) & (1ull << (SIGTERM - 1)), 0);
    kill(pid, SIGTERM);
    int status = 0;
    waitpid(pid, &status, 0);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "status %x", (unsigned)status);
    close(writer);
    temp_dir_remove(folder);
}

// Written, read back and predicted the same, in each format that names an optimizer.
Test(cli_import, a_file_that_names_an_optimizer_is_the_plan_that_wrote_it) {
    static const struct {
        const char *as, *target, *optimizer, *file;
    } kinds[] = {{"axolotl", "axolotl", "adamw-8bit-torchao", "axolotl.yaml"},
                 {"torchtitan-toml", "torchtitan", "adamw-foreach", "torchtitan.toml"},
                 {"deepspeed", "deepspeed", "lion", "deepspeed.json"},
                 {"deepspeed", "deepspeed", "adamw-loop", "deepspeed.json"}};
    char folder[] = "/tmp/ndtune-optimizer-XXXXXX", path[64];
    cr_assert_not_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, kinds[i].file);
        ProgramRun run = CLI("export", "--as", kinds[i].as, "--target", kinds[i].target, "--mesh", "dp_shard=8",
                             "--model", "llama-3.1-8b", "--optimizer", kinds[i].optimizer, "--out", path);
        cr_assert_eq(run.exit_code, 0, "%s", run.err);
        program_run_free(&run);
        json_t *root = CLI_JSON(0, "explain", "--from", path, "--world", "8", "--model", "llama-3.1-8b", "--seq",
                                "4096", "--effort", "estimate", "--format", "json");
        const json_t *plan = json_object_get(json_object_get(root, "own"), "plan");
        cr_expect_str_eq(json_string_value(json_object_get(plan, "optimizer")), kinds[i].optimizer);
        json_decref(root);
        unlink(path);
    }
    rmdir(folder);
}

// 8 bytes of 8,030,261,248 parameters on 8 ranks, and 2 x (1 + 4 / 256).
Test(cli_import, states_of_8_bits_save_three_quarters_of_them) {
    json_t *own = CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "llama-3-8b", "--target", "trainer",
                           "--format", "json");
    json_t *packed = CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "llama-3-8b", "--target", "trainer",
                              "--optimizer", "adamw-8bit-torchao", "--format", "json");
    const json_t *terms = json_object_get(own, "memory"), *fewer = json_object_get(packed, "memory");
    cr_expect_float_eq(cli_number(terms, "optimizer"), 8030261248.0, 1e6);
    cr_expect_float_eq(cli_number(fewer, "optimizer") / cli_number(terms, "optimizer"), 2.03125 / 8, 1e-3);
    json_decref(own);
    json_decref(packed);
}

Test(cli_import, an_optimizer_that_a_target_does_not_have_is_refused_with_those_that_it_has) {
    ProgramRun none =
        CLI("predict", "--mesh", "dp_shard=8", "--model", "tiny", "--target", "torchtitan", "--optimizer", "muon");
    cr_expect_neq(none.exit_code, 0);
    cr_expect(strstr(none.err, "torchtitan@0.2 has no optimizer=muon: use optimizer adamw or adamw-foreach"), "%s",
              none.err);
    program_run_free(&none);
    ProgramRun newer =
        CLI("predict", "--mesh", "dp_shard=8", "--model", "tiny", "--target", "megatron", "--optimizer", "adamw-fp8");
    cr_expect(strstr(newer.err, "use optimizer adamw or muon, or target megatron@0.19"), "%s", newer.err);
    program_run_free(&newer);
    ProgramRun sharded =
        CLI("predict", "--mesh", "dp_shard=8", "--model", "tiny", "--target", "trainer", "--optimizer", "adamw-8bit");
    cr_expect(strstr(sharded.err, "do not take the sharded parameters (DTensors) of trainer"), "%s", sharded.err);
    program_run_free(&sharded);
}

// Axolotl's file says that it packs, not how long the documents are.
Test(cli_import, the_mean_length_of_packed_documents_is_an_option_in_addition_to_the_file) {
#define PACKED(more)                                                                                                   \
    CLI_JSON(0, "explain", "--from", FILES "axolotl_lora.yaml", "--model", "llama-3.2-1b", "--seq", "8192", "--world", \
             "8", "--effort", "estimate", "--pack", more, "--format", "json")
    json_t *whole = PACKED("0"), *parts = PACKED("512");
    const json_t *own = json_object_get(whole, "own"), *packed = json_object_get(parts, "own");
    cr_expect_eq(cli_number(json_object_get(packed, "plan"), "pack"), 512);
    cr_expect_lt(cli_number(packed, "step_time_s"), 0.95 * cli_number(own, "step_time_s"));
    json_decref(whole);
    json_decref(parts);
}

// 512 (1 - e^-8) of 4096 tokens are no padding: 87.5 % are.
Test(cli_import, what_padding_would_waste_is_said) {
    ProgramRun run = CLI("predict", "--mesh", "dp_shard=8", "--model", "llama-3-8b", "--seq", "4096", "--target", "trl",
                         "--pack", "512");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "a token's has 896; one to a sequence would leave 88 % of it padding"), "%s%s", run.out,
              run.err);
    program_run_free(&run);
}
