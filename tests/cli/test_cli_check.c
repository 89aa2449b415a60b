// ndtune check as reviewers and CI call it: exit codes, the lines to blame, the cost of a change in a file.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli.h"

#define FILES NDTUNE_SOURCE_DIR "/tests/golden/import/files/"
#define SLOW FILES "accelerate_fsdp2.yaml"
#define MODEL "--model", "llama-3-8b"

// A file with some of its lines replaced.
static const char *changed(const char *from, const char *folder, const char *name, const char *const *swaps) {
    static char path[4][512];
    static int used;
    char *out = path[used++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    FILE *in = fopen(from, "r"), *file = fopen(out, "w");
    cr_assert(in && file);
    char line[256];
    while (fgets(line, sizeof line, in)) {
        const char *printed = line;
        for (const char *const *swap = swaps; *swap; swap += 2) {
            printed = strstr(line, swap[0]) ? swap[1] : printed;
        }
        fputs(printed, file);
    }
    fclose(in);
    fclose(file);
    return out;
}

static const char *changed_file(const char *folder, const char *name, const char *const *swaps) {
    return changed(SLOW, folder, name, swaps);
}

Test(cli_check, a_slow_file_fails_with_the_lines_to_blame) {
    json_t *root = CLI_JSON(2, "check", SLOW, MODEL, "--format", "json");
    cr_expect_str_eq(cli_text(root, "schema"), "ndtune.check/1");
    cr_expect(json_is_true(json_object_get(root, "runs")) && json_is_true(json_object_get(root, "fits")));
    cr_expect(json_is_false(json_object_get(root, "passed")));
    const double own = cli_number(json_object_get(root, "own"), "tokens_per_s"),
                 best = cli_number(json_object_get(root, "best"), "tokens_per_s");
    cr_expect_float_eq(cli_number(root, "slower"), 1 - own / best, 1e-9);
    const json_t *note;
    size_t index;
    bool recompute = false;
    json_array_foreach(json_object_get(root, "notes"), index, note) {
        const char *key = json_string_value(json_object_get(note, "key"));
        if (key && strcmp(key, "fsdp_config.fsdp_activation_checkpointing") == 0) {
            recompute = true;
            cr_expect_eq(cli_number(note, "line"), 8);
        }
    }
    cr_expect(recompute, "recomputation costs most of it");
    json_decref(root);
}

Test(cli_check, a_file_within_the_tolerance_passes) {
    json_t *root = CLI_JSON(0, "check", SLOW, MODEL, "--tolerance", "50", "--format", "json");
    cr_expect(json_is_true(json_object_get(root, "passed")));
    json_decref(root);
    ProgramRun table = CLI("check", SLOW, MODEL, "--tolerance", "50");
    cr_expect(table.exit_code == 0 && strstr(table.out, "tolerance 50 %"), "%s", table.out);
}

Test(cli_check, what_cannot_run_and_what_does_not_fit_fail_each_in_its_words) {
    ProgramRun product = CLI("check", FILES "accelerate_wrong_product.yaml", MODEL);
    cr_expect_eq(product.exit_code, 2);
    cr_expect(strstr(product.out, "no   runs     cannot run: dp_replicate 1"), "%s", product.out);
    ProgramRun large = CLI("check", SLOW, "--model", "70b", "--seq", "8192");
    cr_expect_eq(large.exit_code, 2);
    cr_expect(strstr(large.out, "ok   runs") && strstr(large.out, "no   fits"), "%s", large.out);
    cr_expect(strstr(large.err, "does not fit by"), "%s", large.err);
}

// A plan follows from the other lines; the framework stops at this one.
Test(cli_check, what_the_framework_stops_at_fails_alone_and_in_a_change) {
    static const char *const stops[] = {
        "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 5",
        "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 8",
        "--no-such-argument"};
    char *folder = temp_dir_make();
    char path[512];
    snprintf(path, sizeof path, "%s/train.sh", folder);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        FILE *file = fopen(path, "w");
        cr_assert_not_null(file);
        fprintf(file,
                "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --seq-length 4096 --micro-batch-size 1 "
                "--global-batch-size 32 --bf16 --use-distributed-optimizer --tensor-model-parallel-size 2 "
                "--sequence-parallel %s\n",
                stops[i]);
        fclose(file);
        ProgramRun one = CLI("check", path, MODEL, "--tolerance", "99"), two = CLI("check", path, path, MODEL);
        cr_expect(one.exit_code == 2 && strstr(one.err, "cannot run: "), "%s: %d %s", stops[i], one.exit_code, one.err);
        cr_expect(two.exit_code == 2 && strstr(two.err, "cannot run: "), "%s: %d %s", stops[i], two.exit_code, two.err);
    }
    temp_dir_remove(folder);
}

Test(cli_check, annotations_name_file_and_line_and_escape_what_they_hold) {
    const char *const none[] = {NULL};
    char *folder = temp_dir_make();
    const char *hostile = changed_file(folder, "a,b%:c.yaml", none);
    ProgramRun run = CLI("check", hostile, MODEL, "--format", "github");
    cr_expect_eq(run.exit_code, 2);
    cr_expect(strstr(run.out, "/a%2Cb%25%3Ac.yaml,line=8,endLine=8,title=ndtune::fsdp_config."), "%s", run.out);
    for (const char *line = run.out; *line; line = strchr(line, '\n') + 1) {
        cr_expect(strncmp(line, "::error ", 8) == 0 || strncmp(line, "::warning ", 10) == 0 ||
                      strncmp(line, "::notice ", 9) == 0,
                  "%s", line);
    }
    temp_dir_remove(folder);
}

Test(cli_check, a_change_is_priced_line_by_line_and_sizes_of_axes_together) {
    const char *const faster[] = {"tp_size: 2",
                                  "  parallelism_config_tp_size: 1\n",
                                  "dp_shard_size: 8",
                                  "  parallelism_config_dp_shard_size: 16\n",
                                  "reshard_after",
                                  "  fsdp_reshard_after_forward: false\n",
                                  "rdzv_backend",
                                  "",
                                  NULL};
    char *folder = temp_dir_make();
    const char *mine = changed_file(folder, "mine.yaml", faster);
    json_t *root = CLI_JSON(0, "check", SLOW, mine, MODEL, "--format", "json");
    const json_t *changes = json_object_get(root, "changes");
    cr_expect_str_eq(cli_text(root, "schema"), "ndtune.check-pair/1");
    cr_assert_eq(json_array_size(changes), 4);
    const json_t *reshard = json_array_get(changes, 0), *shard = json_array_get(changes, 1),
                 *tp = json_array_get(changes, 2), *gone = json_array_get(changes, 3);
    cr_expect_str_eq(cli_text(reshard, "key"), "fsdp_config.fsdp_reshard_after_forward");
    cr_expect(json_is_true(json_object_get(reshard, "alone")) && cli_number(reshard, "slower") < 0);
    cr_expect(json_is_false(json_object_get(tp, "alone")) && json_is_false(json_object_get(shard, "alone")));
    cr_expect_eq(cli_number(tp, "slower"), cli_number(shard, "slower"));
    cr_expect(json_is_null(json_object_get(gone, "after")) && cli_number(gone, "slower") == 0);
    const json_t *before = json_object_get(json_object_get(root, "before"), "own"),
                 *after = json_object_get(json_object_get(root, "after"), "own");
    cr_expect_float_eq(cli_number(root, "slower"),
                       1 - cli_number(after, "tokens_per_s") / cli_number(before, "tokens_per_s"), 1e-9);
    json_decref(root);
    ProgramRun back = CLI("check", mine, SLOW, MODEL);
    cr_expect(back.exit_code == 2 && strstr(back.err, "fewer tokens per second"), "%s", back.err);
    temp_dir_remove(folder);
}

// A change alone is what the changed file comes to.
Test(cli_check, a_change_of_nothing_costs_nothing) {
    ProgramRun run = CLI("check", SLOW, SLOW, MODEL, "--effort", "estimate");
    cr_expect(run.exit_code == 0 && strstr(run.out, "the change costs no time and no memory"), "%s", run.out);
}

Test(cli_check, the_price_of_a_line_is_the_difference_of_two_files) {
    const char *const one[] = {"activation_check", "  fsdp_activation_checkpointing: false\n", NULL};
    const char *const two[] = {"activation_check", "  fsdp_activation_checkpointing: false\n", "reshard_after",
                               "  fsdp_reshard_after_forward: false\n", NULL};
    char *folder = temp_dir_make();
    const char *mine = changed_file(folder, "one.yaml", one), *both = changed_file(folder, "two.yaml", two);
    json_t *whole = CLI_JSON(0, "check", SLOW, mine, MODEL, "--format", "json"),
           *part = CLI_JSON(0, "check", SLOW, both, MODEL, "--format", "json");
    const json_t *line = json_array_get(json_object_get(part, "changes"), 0);
    cr_expect_float_eq(cli_number(line, "slower"), cli_number(whole, "slower"), 1e-12);
    cr_expect_float_eq(cli_number(line, "more_bytes"), cli_number(whole, "more_bytes"), 1);
    json_decref(whole);
    json_decref(part);
    temp_dir_remove(folder);
}

#define PUBLISHED NDTUNE_SOURCE_DIR "/tests/accuracy/configs/files/"

static bool fits(json_t *root) {
    const bool said = json_is_true(json_object_get(root, "runs")) && json_is_true(json_object_get(root, "fits"));
    json_decref(root);
    return said;
}

// Published runs (tests/accuracy/configs) that earlier versions read otherwise.
Test(cli_check, switches_of_the_trainer_are_no_sections_of_deepspeed) {
    json_t *root = CLI_JSON(2, "check", PUBLISHED "alpaca-7b-4xa100-80.json", "--model", "llama-1-7b", "--world", "4",
                            "--cluster", "dgx-a100-40g", "--format", "json");
    cr_expect_str_eq(cli_text(root, "format"), "trainer");
    json_decref(root);
}

Test(cli_check, deepspeed_trains_adapters_with_data_parallelism_alone) {
    ProgramRun data = CLI("predict", "--target", "deepspeed", "--finetune", "lora", "--mesh", "dp_shard=4", "--model",
                          "7b", "--zero", "3"),
               tensor = CLI("predict", "--target", "deepspeed", "--finetune", "lora", "--mesh", "dp_shard=2,tp=2",
                            "--model", "7b", "--zero", "3");
    cr_expect_eq(data.exit_code, 0, "%s", data.err);
    cr_expect(tensor.exit_code == 2 && strstr(tensor.err, "beside data parallelism alone"), "%s", tensor.err);
}

Test(cli_check, one_rank_offloads_its_states_and_asks_its_host_for_its_own_alone) {
    const char *file = PUBLISHED "deepspeed-10b-z2-offload-1xv100.json",
               *model = NDTUNE_SOURCE_DIR "/tests/accuracy/configs/models/gpt2-10b.json";
    cr_expect(fits(CLI_JSON(0, "check", file, "--model", model, "--world", "1", "--cluster", "dgx-2", "--seq", "1024",
                            "--attention", "eager", "--recompute", "full", "--format", "json")));
}

Test(cli_check, frozen_weights_wait_on_the_host_too) {
    cr_expect(fits(CLI_JSON(0, "check", PUBLISHED "axolotl-llama3-70b-qlora-fsdp-2x24g.yaml", "--model", "llama-3-70b",
                            "--world", "2", "--cluster", "pcie-4090-8x", "--tolerance", "100", "--format", "json")));
}

Test(cli_check, paged_states_need_not_be_there_while_nothing_is_updated) {
    const char *const unpaged[] = {"paged_adamw_8bit", "optimizer: adamw_bnb_8bit\n", NULL};
    const char *paged = PUBLISHED "axolotl-yi-34b-qlora-4090.yaml";
    char *folder = temp_dir_make();
    const char *resident = changed(paged, folder, "resident.yaml", unpaged);
#define ON_ONE                                                                                                         \
    "--model", "yi-34b", "--world", "1", "--cluster", "pcie-4090-8x", "--tolerance", "100", "--format", "json"
    cr_expect(fits(CLI_JSON(0, "check", paged, ON_ONE)));
    cr_expect_not(fits(CLI_JSON(2, "check", resident, ON_ONE)));
    temp_dir_remove(folder);
}

// Each by its version: what the file is read as is what it was written for.
Test(cli_check, what_is_exported_as_python_is_checked_for_its_own_target) {
    static const struct {
        const char *target, *name, *version;
    } rows[] = {{"trainer", "trainer", "5.23"},
                {"trl", "trl", "1.16"},
                {"torchtitan@0.3", "torchtitan", "0.3"},
                {"torchtitan@head", "torchtitan", "head"},
                {"megatron@bridge-0.6", "megatron", "bridge-0.6"}};
    char *folder = temp_dir_make();
    char path[512];
    snprintf(path, sizeof path, "%s/made.py", folder);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ProgramRun made = CLI("export", "--mesh", "dp_shard=8", "--model", "llama-3-8b", "--seq", "2048", "--recompute",
                              "full", "--target", rows[i].target, "--out", path);
        cr_assert_eq(made.exit_code, 0, "%s: %s", rows[i].target, made.err);
        program_run_free(&made);
        json_t *root = CLI_JSON(0, "check", path, MODEL, "--world", "8", "--tolerance", "99", "--effort", "estimate",
                                "--format", "json");
        const json_t *request = json_object_get(root, "request");
        cr_expect_str_eq(cli_text(request, "target"), rows[i].name);
        cr_expect_str_eq(cli_text(request, "target_version"), rows[i].version);
        json_decref(root);
    }
    temp_dir_remove(folder);
}

Test(cli_check, words_that_are_wrong_get_one_sentence) {
    ProgramRun none = CLI("check"), three = CLI("check", SLOW, SLOW, SLOW, MODEL),
               elsewhere = CLI("explain", "--world", "8", "--model", "7b", "--format", "github"),
               absent = CLI("check", "/nowhere.yaml", MODEL);
    cr_expect(none.exit_code == 1 && strstr(none.err, "check reads a config file"), "%s", none.err);
    cr_expect(three.exit_code == 1 && strstr(three.err, "does not expect the word"), "%s", three.err);
    cr_expect(elsewhere.exit_code == 1 && strstr(elsewhere.err, "--format github is of ndtune check"), "%s",
              elsewhere.err);
    cr_expect(absent.exit_code == 3 && strstr(absent.err, "/nowhere.yaml cannot be read"), "%s", absent.err);
}

Test(cli_check, annotations_are_offered_by_the_one_command_that_writes_them) {
    ProgramRun own = CLI("check", "--help");
    cr_expect(own.exit_code == 0 && strstr(own.out, "--format table|json|csv|github "), "%s", own.out);
    cr_expect(strstr(own.out, "annotations of a pull request"));
    const char *const others[] = {"plan", "predict", "explain",  "run",     "validate",  "calibrate",
                                  "tune", "export",  "report",   "probe",   "preflight", "blame",
                                  "runs", "models",  "clusters", "accuracy"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ProgramRun help = CLI("help", others[i]);
        cr_expect(help.exit_code == 0 && strstr(help.out, "--format table|json|csv "), "%s: %s", others[i], help.out);
        cr_expect(!strstr(help.out, "github"), "%s: %s", others[i], help.out);
    }
    ProgramRun word = CLI("plan", "--world", "8", "--model", "7b", "--format", "page");
    cr_expect(word.exit_code == 1 && strstr(word.err, "takes table|json|csv, not"), "%s", word.err);
}

// The script of .github/actions/check: every file is checked, and one that fails fails the step.
Test(cli_check, the_action_checks_every_file) {
    const char *const words[] = {"/bin/bash", NDTUNE_SOURCE_DIR "/.github/actions/check/check.sh", NULL};
    char *folder = temp_dir_make();
    char data[512];
    snprintf(data, sizeof data, "XDG_DATA_HOME=%s", folder);
    const char *const environment[] = {data, "FILES=" FILES "accelerate_fsdp[12].yaml", "ARGUMENTS=--model llama-3-8b",
                                       "NDTUNE=" NDTUNE_BIN_DIR "/ndtune", NULL};
    ProgramRun run = program_run(words, environment, 240);
    temp_dir_remove(folder);
    cr_expect_eq(run.exit_code, 1, "%s", run.err);
    cr_expect(strstr(run.out, "accelerate_fsdp1.yaml runs, fits") && strstr(run.out, "::error file=" SLOW), "%s",
              run.out);
}
