// Mistyped input: exit code, the words underlined, what is allowed, a suggestion; nothing on standard output.

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/cli.h"

typedef struct Refusal {
    const char *words[16];
    int exit_code;
    const char *says;  // in standard error
} Refusal;

#define LAID_OUT(layout) "predict", "--mesh", "pp=4", "--model", "8b", "--target", "megatron", "--pp-split", layout

static const Refusal refusals[] = {
    {{"--world", "abc", "--model", "7b"}, 1, "--world takes a whole number from 1 to 1048576 (ranks), not \"abc\""},
    {{"--world", "0", "--model", "7b"}, 1, "not \"0\""},
    {{"--world", "-3", "--model", "7b"}, 1, "not \"-3\""},
    {{"--world", "100000000000000000000", "--model", "7b"}, 1, "not \"100000000000000000000\""},
    {{"--world", "16,8,16", "--model", "7b"}, 1, "--world names 16 twice"},
    {{"--world", "8,,16", "--model", "7b"}, 1, "not \"\""},
    {{"--world", "8,x", "--model", "7b"}, 1, "not \"x\""},
    {{"--world", "8,16", "--model", "7b", "--top", "3"}, 1, "--top belongs to one world, not to a list"},
    {{"explain", "--world", "8,16", "--model", "7b"}, 1, "takes one world"},
    {{"--world", "8", "--model", "7b", "--baseline", "dp_shard=4"}, 1, "has 4 ranks, the world has 8"},
    {{"--world", "8", "--model", "7b", "--baseline", "shard=4"}, 1, "shard"},
    {{"--world", "8", "--model", "7b", "--objective", "speed"}, 1, "throughput|memory|cost"},
    {{"--world", "8", "--model", "7b", "--objective", "cost"}, 1, "needs a price"},
    {{"--world", "8", "--model", "7b", "--tokens", "many"}, 1, "such as 300e9 or 2T"},
    {{"--world", "8", "--model", "7b", "--tokens", "0"}, 1, "such as 300e9 or 2T"},
    {{"--world", "8", "--model", "7b", "--attention", "flahs"}, 1, "hint: did you mean flash?"},
    {{"--world", "8", "--model", "7b", "--recompute", "selective"}, 2, "accelerate has no selective recompute"},
    {{"--world", "8", "--model", "7b", "--precision", "fp8", "--cluster", "dgx-a100-80g"}, 1, "no rate for fp8"},
    {{"--world", "8", "--model", "7b", "--precision", "fp8", "--target", "nanotron"}, 2, "nanotron does not run fp8"},
    {{"--world", "8", "--model", "7b", "--fp8-recipe", "rowwise"}, 1, "--fp8-recipe goes with --precision fp8"},
    {{"--world", "8", "--model", "7b", "--cuda-graphs", "off,attn"}, 1, "of which some stand alone: off,attn"},
    {{"--world", "8", "--model", "7b", "--master-weights", "bf16", "--target", "megatron"},
     2,
     "no bf16 master weights"},
    {{"--world", "8", "--model", "7b", "--effort", "estimat"}, 1, "hint: did you mean estimate?"},
    {{"run", "--model", "tiny", "--mesh", "dp_shard=2", "--attention", "eager"}, 2, "attention eager does"},
    {{"run", "--model", "tiny", "--mesh", "dp_shard=2", "--recompute", "selective"}, 2, "selective"},
    {{"run", "--model", "tiny", "--mesh", "tp=2", "--tp-overlap", "on"}, 2, "overlap"},
    {{"run", "--model", "tiny", "--mesh", "tp=2", "--data", "/no/tokens.bin"}, 1, "/no/tokens.bin: cannot be read"},
    {{"run", "--model", "tiny", "--mesh", "tp=2", "--data", "/etc"}, 1, "/etc is not a file of tokens"},
    {{"predict", "--model", "7b", "--mesh", "dp_replicate=8"}, 2, "does not fit by"},
    {{"predict", "--model", "7b", "--mesh", "pp=2", "--pp-schedule", "no.csv"}, 1, "no.csv cannot be read"},
    {{"predict", "--model", "7b", "--mesh", "pp=2", "--pp-schedule", ORDERS "/1f1b_pp4_m8.csv"}, 1, "use pp=4"},
    {{"--world", "8", "--model", "7b", "--pp-schedule", ORDERS "/1f1b_pp4_m8.csv"}, 1, "the order of one pipeline"},
    {{"predict", "--model", "7b", "--mesh", "pp=2", "--target", "megatron", "--pp-schedule", ORDERS "/own_pp2_m4.csv"},
     2,
     "megatron has no pipelines with pp_schedule=file"},
    {{"predict", "--model", "7b", "--mesh", "pp=2", "--grad-accum", "8", "--pp-schedule", ORDERS "/own_pp2_m4.csv"},
     1,
     "own_pp2_m4.csv has 4 micro-batches, not 8"},
    {{"predict", "--model", "7b", "--mesh", "dp_shard=0"}, 1, "dp_shard"},
    {{"predict", "--model", "7b", "--mesh", "dp_shard=8,cp=3"}, 2, "seq=4096 cannot be cut"},
    {{"--world", "4", "--model", "7b", "--memory-limit", "10GiB"}, 2, "none of the 10 shapes can run"},
    {{"--world", "8", "--model", "gpt-oss-20b", "--finetune", "qlora"}, 2, "dp_shard=8: the experts"},
    {{"predict", "--model", "7b", "--mesh", "dp_shard=8", "--finetune", "lora", "--lora-rank", "0"},
     1,
     "from 1 to 1024"},
    {{"predict", "--model", "7b", "--mesh", "dp_shard=8", "--measured", "nan"}, 1, "above 0 or a log, not \"nan\""},
    {{"--world", "0x8", "--model", "7b"}, 1, "--world takes a whole number from 1 to 1048576 (ranks), not \"0x8\""},
    {{"predict", "--model", "7b", "--mesh", "tp=3"}, 2, "tp=3 does not divide"},
    {{"predict", "--model", "70b", "--mesh", "dp_shard=8"}, 2, "hint: ndtune plan --world 8, with the same model"},
    {{"--world", "8", "--model", "7b", "--rank-order", "tp,shard"}, 1, "unknown axis \"shard\""},
    {{"--world", "8", "--model", "7b", "--rank-order", "tp,cp,tp"}, 1, "tp is named twice"},
    {{"predict", "--model", "7b", "--mesh", "dp_shard=4,tp=2", "--rank-order", "tp,dp_shard"}, 2, "in one order"},
    {{"--world", "8", "--model", "/dev/null"}, 1, "/dev/null:1:1: empty; a JSON object"},
    {{"--world", "8", "--model", "7b", "--db", "/dev/null"}, 3, "is a device or pipe, not a file"},
    {{"help", "--completion", "tcsh"}, 1, "--completion takes bash|zsh|fish"},
    {{"--world", "8", "--model", "etc/passwd"}, 1, "unknown model \"etc/passwd\""},
    {{"--world", "8", "--model", "7bb"}, 1, "hint: did you mean 7b?"},
    {{"--world", "8", "--model", "/no/such/config.json"}, 3, "/no/such/config.json"},
    {{"--world", "8", "--model", "7b", "--cluster", "dgx-h10"}, 1, "hint: did you mean dgx-h100?"},
    {{"--world", "8", "--model", "7b", "--cluster", "dgx-a100"}, 1, "one of dgx-a100-40g, dgx-a100-80g?"},
    {{"--world", "8", "--model", "7b", "--target", "acelerate"}, 1, "hint: did you mean accelerate?"},
    {{"--world", "8", "--model", "7b", "--target", "accelerate@9"}, 1, "not modelled"},
    {{"--world", "8", "--model", "7b", "--set", "node.gpsu=4"}, 1, "hint: did you mean node.gpus?"},
    {{"--world", "8", "--model", "7b", "--log", "x"}, 1, "ndtune plan does not take --log; it belongs to calibrate"},
    {{"--world", "8", "--model", "7b", "--format", "jsn"}, 1, "hint: did you mean json?"},
    {{"--world", "64", "--model", "tiny", "--cluster", "local-cpu"}, 1, "one node of 8 without a network"},
    {{"--world", "8", "--model", "7b", "--cluster", "local-cpu", "--precision", "bf16"}, 1, "it has fp32"},
    {{"--world", "8"}, 1, "--model is needed"},
    {{"--model", "7b"}, 1, "--world is needed"},
    {{"calibrate", "--top", "3"}, 1, "ndtune calibrate does not take --top"},
    {{"pln"}, 1, "hint: did you mean ndtune plan?"},
    {{"predict", "--model", "7b"}, 1, "--mesh is needed"},
    {{"predict", "--model", "7b", "--mesh", "dp_sahrd=8"}, 1, "dp_shard"},
    {{"run", "--model", "tiny", "--mesh", "dp_shard=2", "--device", "cuad"}, 1, "hint: did you mean cuda?"},
    {{"run", "--model", "tiny", "--mesh", "dp_shard=2", "--device", "cuda", "--lanes", "async"}, 1, "use lanes serial"},
    {{"run", "--model", "tiny", "--mesh", "dp_shard=2", "--device", "cuda", "--bitwise"},
     1,
     "bitwise runs on device cpu"},
    {{"run", "--model", "tiny", "--mesh", "dp_shard=2", "--launcher", "torchrun", "--hosts", "a,b"},
     1,
     "use --launcher mpirun or srun"},
    {{"run", "--model", "tiny", "--mesh", "dp_shard=2", "--transport", "shm", "--hosts", "a,b"},
     1,
     "use --transport mpi"},
    {{"run", "--model", "tiny", "--mesh", "tp=2", "--timeout", "0"}, 1, "--timeout takes a number above 0"},
    {{"runs", "--db", "/no/such.db"}, 1, "there is no store /no/such.db"},
    {{"--world", "8", "--model", "/proc/version"}, 1, "/proc/version:1:"},
    {{"clusters", "nowhere"}, 1, "nowhere"},
    {{"--world", "8", "--model", "7b", "--set", "fabric=4"}, 1, "hint: fabric has several numbers, such as fabric."},
    {{"--world", "8", "--model", "7b", "--set", "foo=4"}, 1, "hint: ndtune clusters NAME lists the fields"},
    {{"--world", "8", "--model", "7b", "--set", "link.0.slowdown=2"}, 1, "rank.N.link_slowdown=FACTOR"},
    {{"--world", "8", "--model", "--no-cache"}, 1, "--model needs a value: NAME|FILE"},
    {{"models", "llama-3-8"}, 1, "hint: did you mean llama-3-8b?"},
    {{"--world", "1", "--model", "7b"}, 2, "the only shape, "},
    {{"help", "calibrat"}, 1, "did you mean calibrate?"},
    {{"--world", "8", "--model", "databricks/dbrx-base"}, 1, "models with experts (MoE) is not predicted yet"},
    {{"--world", "8", "--model", "14b"}, 1, "hint: did you mean qwen2.5-14b, qwen3-14b?"},
    {{"--world", "8", "--model", "some/Model"}, 1, "--model path/to/config.json"},
    {{"--world", "8", "--model", "7b", "--cluster", "H100-NVL"}, 1, "did you mean one of azure-nd-h100-v5, "},
    {{"--world", "8", "--model", "7b", "--target", "llama-factory"}, 1, "hint: LLaMA-Factory trains by it: --target"},
    {{"--gpus", "8", "--model", "7b"}, 1, "hint: --world N: all accelerators together"},
    {{"--world", "8", "--model", "7b", "--batch-size", "8"}, 1, "hint: --global-batch N: sequences per optimizer step"},
    {{"--world", "8", "--model", "7b", "--seq", "8kk"}, 1, "--seq takes a whole number from 1 to 16777216 (tokens)"},
    {{"--world", "8", "--model", "7b", "--seq", "99999999999999k"}, 1, "--seq takes a whole number"},
    {{"predict", "--model", "7b", "--mesh", "pp=2,dp_shard=4"},
     2,
     "accelerate has no pp: use pp=1; its ParallelismConfig has dp_replicate, dp_shard, cp, sp and tp"},
    {{"predict", "--model", "7b", "--mesh", "pp=2,dp_shard=4", "--target", "axolotl"},
     2,
     "axolotl has no pp: use pp=1; its config has"},
    {{"predict", "--model", "7b", "--mesh", "pp=2,dp_shard=4", "--target", "trainer"},
     2,
     "the pp_size of transformers' DistributedConfig has no backward schedule"},
    {{"predict", "--model", "7b", "--mesh", "fsdp=8"}, 1, "hint: the axis that FSDP shards over is dp_shard"},
    {{"predict", "--model", "7b", "--mesh", "dp_shard=4,tp=2", "--global-batch", "66"}, 2, "nearest it could do is 64"},
    {{"--world", "100", "--model", "8b", "--global-batch", "256"},
     2,
     "a global batch of 256 sequences is not a multiple"},
    {{"--world", "12", "--model", "8b", "--global-batch", "100"},
     2,
     "hint: by estimate something fits with --global-batch 96 ("},
    {{"--world", "16", "--model", "llama-3-70b"},
     2,
     "hint: by estimate something fits with --offload parameters,optimizer ("},
    {{"--world", "16", "--model", "8b", "--target", "megatron", "--pp-split", "ends", "--pp-first", "40", "--pp-last",
      "2"},
     1,
     "pp_first=40 and pp_last=2 are 42 layers, and llama-3.1-8b has 32: use at most so many together\nhint: --pp-first "
     "31"},
    {{"--world", "16", "--model", "8b", "--target", "megatron", "--pp-split", "ends", "--pp-first", "0", "--pp-last",
      "0"},
     1,
     "megatron has layers on the first and on the last stage: use pp_split chunks\nhint: --pp-first 1 --pp-last 1"},
    {{"predict", "--mesh", "pp=2", "--model", "8b", "--target", "megatron", "--pp-split", "weighted"},
     1,
     "--pp-split weighted needs a number"},
    {{"--world", "16", "--model", "8b", "--target", "megatron", "--pp-group", "+4"},
     1,
     "--pp-group takes a whole number from 0 to 4095 (micro-steps), not \"+4\""},
    {{"predict", "--mesh", "pp=2", "--model", "8b", "--target", "megatron", "--pp-schedule", "interleaved",
      "--virtual-stages", "63"},
     2,
     "pp=2 with 63 chunks of layers each needs 126 layers, llama-3.1-8b has 32: use virtual_stages 16 or less"},
    {{"predict", "--mesh", "pp=2", "--model", "8b", "--target", "megatron", "--pp-split", "ends", "--pp-first", "10",
      "--pp-last", "2"},
     2,
     "pp_first=10 and pp_last=2 are 12 of the 32 layers of llama-3.1-8b, and no stage is between: use pp_last 22"},
    {{LAID_OUT("Et*8|t*8|t*16L")}, 1, "the layout of --pp-split has 3 chunks of layers, and pp is 4: use pp 3"},
    {{LAID_OUT("Et*8|t*8|t*8|t*7L")},
     1,
     "the layout of --pp-split has 31 layers (t), and llama-3.1-8b has 32: use 1 more"},
    {{LAID_OUT("Et*8|t*8|t*8|t*8mL")},
     1,
     "the layout of --pp-split has 1 m, layers that predict further tokens, and --mtp is 0: use --mtp 1, or as many m"},
    {{LAID_OUT("t*8|t*8|t*8|t*8L")}, 1, "The first layer must be embedding"},
    {{LAID_OUT("Et*8|x|t*8|t*8L")}, 1, "has a sign other than E, t, m, L and |: a layout is such as Et*8|t*8|t*8|t*8L"},
    {{LAID_OUT("Et*6|t*9|t*10|t*7L")},
     1,
     "the layout of --pp-split has 9 layers in chunk 2 and 10 in chunk 3, and a plan holds as many in each of the 2 "
     "between the first and the last"},
    {{LAID_OUT("Et*7|t*9|t*9|t*7L"), "--pp-first", "8"},
     1,
     "the layout of --pp-split has 7 layers on the first chunk, not 8"},
    {{LAID_OUT("Et*7|t*9|t*9|t*7L"), "--pp-schedule", "interleaved"}, 1, "use --virtual-stages 2 or more"},
    {{"--world", "8", "--model", "8b", "--target", "megatron", "--pp-split", "Et*8|t*8|t*8|t*8L"},
     1,
     "a layout is the layers of one pipeline: give it to predict, run or export, with --mesh"},
    {{"predict", "--mesh", "pp=4", "--model", "8b", "--target", "nanotron", "--pp-split", "Et*7|t*9|t*9|t*7L"},
     1,
     "nanotron has no pipelines with the split chunks"},
    {{"predict", "--mesh", "pp=4", "--model", "8b", "--pp-layout", "Et*8|t*8|t*8|t*8L"}, 1, "hint: --pp-split"},
    {{"predict", "--mesh", "pp=2", "--model", "8b", "--target", "automodel"},
     2,
     "automodel@0.7 is not predicted with pp: its pipelines (pp_size) are not modelled; use pp=1"},
    {{"predict", "--mesh", "dp_shard=1", "--model", "8b", "--global-batch", "33", "--grad-accum", "4"},
     2,
     "a global batch of 33 sequences is not dp_replicate x dp_shard x accumulation = 4: use that, or leave one"},
    {{NULL}, 1, "needs --world and --model"},
};

static ProgramRun refuse(const Refusal *refusal) {
    return cli_words(refusal->words);
}

Test(cli_errors, each_has_its_exit_code_and_sentence) {
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        ProgramRun run = refuse(&refusals[i]);
        cr_expect_eq(run.exit_code, refusals[i].exit_code, "case %zu: exit %d: %s", i, run.exit_code, run.err);
        cr_expect_not_null(strstr(run.err, refusals[i].says), "case %zu: %s", i, run.err);
        cr_expect(run.exit_code == 2 || run.out[0] == '\0', "case %zu: %s", i, run.out);
        program_run_free(&run);
    }
}

Test(cli_errors, the_words_are_underlined) {
    ProgramRun run = CLI("--world", "32", "--modle", "7b");
    cr_assert_str_eq(run.err, "ndtune: error: ndtune --world 32 --modle 7b\n"
                              "ndtune: error:                   ~~~~~~~\n"
                              "ndtune: error: unknown option --modle\n"
                              "hint: did you mean --model? (ndtune help plan lists all options)\n");
    program_run_free(&run);
}

Test(cli_errors, a_value_after_an_equals_sign_is_underlined_with_its_option) {
    ProgramRun run = CLI("--world=x", "--model", "7b");
    cr_assert_not_null(strstr(run.err, "ndtune: error:        ~~~~~~~~~\n"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_errors, a_quoted_word_is_underlined_as_it_is_shown) {
    ProgramRun run = CLI("--world", "8", "--model", "7b", "--cluster", "my box");
    cr_assert_not_null(strstr(run.err, "--cluster 'my box'\n"), "%s", run.err);
    cr_assert_not_null(strstr(run.err, " ~~~~~~~~\n"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_errors, an_unwritable_store_is_exit_3) {
    ProgramRun run = CLI("--world", "8", "--model", "7b", "--db", "/proc/ndtune/x.db");
    cr_assert_eq(run.exit_code, 3);
    cr_assert_not_null(strstr(run.err, "/proc/ndtune"), "%s", run.err);
    program_run_free(&run);
}

// Built with CUDA or not.
Test(cli_errors, a_machine_without_a_gpu_says_so_once_and_is_exit_3) {
    if (access("/dev/nvidiactl", F_OK) == 0) {
        cr_skip_test("this machine has a GPU");
    }
    ProgramRun run = CLI("run", "--model", "tiny", "--mesh", "dp_shard=2", "--device", "cuda");
    cr_assert_eq(run.exit_code, 3, "%s", run.err);
    const char *says = strstr(run.err, "ndtune: error: ");
    cr_assert(says && strstr(says, "device cuda"), "%s", run.err);
    cr_assert(!strstr(says + 1, "ndtune: error: "), "%s", run.err);
    program_run_free(&run);
}

Test(cli_errors, a_full_disk_under_standard_output_is_exit_3) {
    const char *const words[] = {"/bin/sh", "-c", "exec \"$0\" help > /dev/full", NDTUNE_BIN_DIR "/ndtune", NULL};
    ProgramRun run = program_run(words, NULL, 30);
    cr_assert_eq(run.exit_code, 3, "%s", run.err);
    program_run_free(&run);
}

Test(cli_help, help_and_version_are_exit_0) {
    static const char *const calls[][3] = {{"help"},
                                           {"--help"},
                                           {"-h"},
                                           {"--version"},
                                           {"help", "plan"},
                                           {"plan", "--help"},
                                           {"predict", "--help"},
                                           {"run", "--help"},
                                           {"models"},
                                           {"clusters"},
                                           {"clusters", "dgx-h100"}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        ProgramRun run = cli_words(calls[i]);
        cr_expect_eq(run.exit_code, 0, "%s: %s", calls[i][0], run.err);
        cr_expect_str_not_empty(run.out);
        cr_expect_str_empty(run.err);
        program_run_free(&run);
    }
}

Test(cli_help, every_command_has_an_example_that_parses) {
    static const char *const commands[] = {"plan",   "predict",  "explain",  "run", "runs",
                                           "models", "clusters", "accuracy", "help"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        ProgramRun run = CLI("help", commands[i]);
        cr_expect_not_null(strstr(run.out, "Examples:\n  ndtune"), "%s", run.out);
        program_run_free(&run);
    }
}

Test(cli_help, does_not_list_what_this_version_lacks) {
    ProgramRun run = CLI("help", "plan");
    static const char *const later[] = {"--launcher", "--log"};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        cr_expect_null(strstr(run.out, later[i]), "%s", later[i]);
    }
    program_run_free(&run);
}

Test(cli_help, the_lists_parse_as_json) {
    json_t *models = CLI_JSON(0, "models", "--format", "json");
    cr_assert_gt(json_array_size(json_object_get(models, "models")), 3);
    json_decref(models);
    json_t *clusters = CLI_JSON(0, "clusters", "--format", "json");
    cr_assert_gt(json_array_size(json_object_get(clusters, "clusters")), 2);
    json_decref(clusters);
}

Test(cli_help, one_model_is_shown_in_full) {
    ProgramRun run = CLI("models", "gemma-7b");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_assert_not_null(strstr(run.out, "8537680896"), "%s", run.out);  // google/gemma-7b: 8.54 B
    cr_assert_not_null(strstr(run.out, "1 2 4 8 16"), "%s", run.out);
    program_run_free(&run);
    json_t *list = CLI_JSON(0, "models", "7b", "--format", "json");
    const json_t *models = json_object_get(list, "models");
    cr_assert_eq(json_array_size(models), 1);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(models, 0), "name")), "llama-2-7b");
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(models, 0), "alias")), "7b");
    json_decref(list);
}

Test(cli_help, a_printed_profile_is_a_profile_file) {
    ProgramRun run = CLI("clusters", "dgx-h100", "--format", "json");
    char *folder = temp_dir_make();
    char path[512];
    snprintf(path, sizeof path, "%s/mine.json", folder);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(run.out, file);
    fclose(file);
    program_run_free(&run);
    json_t *built_in = CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "7b", "--format", "json");
    json_t *from_file =
        CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", "7b", "--cluster", path, "--format", "json");
    cr_assert_eq(cli_number(built_in, "step_time_s"), cli_number(from_file, "step_time_s"));
    json_decref(built_in);
    json_decref(from_file);
    temp_dir_remove(folder);
}

// What one command is told of an option leaves away what is true of others, and every topic can be read.
Test(cli_help, an_option_shows_what_is_true_of_the_command) {
    ProgramRun run = CLI("help", "plan");
    cr_expect_not_null(strstr(run.out, "a profile file [dgx-h100]\n"), "%s", run.out);
    cr_expect_null(strstr(run.out, "local-cpu"), "%s", run.out);
    program_run_free(&run);
    run = CLI("help", "validate");
    cr_expect_not_null(strstr(run.out, "[3]\n"), "%s", run.out);
    cr_expect_not_null(strstr(run.out, "[local-cpu, with --device cuda dgx-h100]"), "%s", run.out);
    program_run_free(&run);
    run = CLI("help", "export");
    cr_expect_not_null(strstr(run.out, "|deepspeed|accelerate-deepspeed|sbatch\n"), "%s", run.out);
    program_run_free(&run);
}

Test(cli_help, topics_are_listed_and_told) {
    static const char *const topics[] = {"shape", "batch", "memory", "hang", "slow", "cluster", "logs", "words"};
    ProgramRun all = CLI("help");
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        ProgramRun run = CLI("help", topics[i]);
        cr_expect_eq(run.exit_code, 0, "%s", run.err);
        cr_expect_not_null(strstr(all.out, topics[i]), "%s", topics[i]);
        cr_expect_gt(strlen(run.out), 300, "%s", run.out);
        program_run_free(&run);
    }
    program_run_free(&all);
}
