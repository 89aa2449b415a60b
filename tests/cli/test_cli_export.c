// ndtune export as users call it: which plan it takes, where the file goes, what is refused.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/export/export.h"
#include "tests/cli/cli.h"

#define DEEPSPEED "export", "--as", "deepspeed", "--model", "tiny", "--zero", "1"

Test(cli_export, accumulation_holds_the_global_batch) {
    json_t *root = CLI_JSON(0, DEEPSPEED, "--mesh", "dp_shard=4", "--micro-batch", "2", "--global-batch", "64");
    cr_expect_eq(cli_number(root, "train_batch_size"), 64);
    cr_expect_eq(cli_number(root, "train_micro_batch_size_per_gpu"), 2);
    cr_expect_eq(cli_number(root, "gradient_accumulation_steps"), 8);
    json_decref(root);
}

// partition_method of PipelineModule: parameters evens out weights, type:REGEX the layers.
Test(cli_export, deepspeed_s_stages_are_cut_as_they_are_priced) {
    static const char *const splits[][2] = {{"target", "partition_method=\\\"parameters\\\""},
                                            {"even", "partition_method=\\\"type:decoder\\\""}};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        ProgramRun run = CLI("export", "--as", "deepspeed", "--target", "deepspeed", "--model", "tiny", "--mesh",
                             "pp=2", "--global-batch", "8", "--pp-split", splits[i][0]);
        cr_expect_eq(run.exit_code, 0, "%s", run.err);
        cr_expect(strstr(run.out, splits[i][1]), "%s: %s", splits[i][0], run.out);
        program_run_free(&run);
    }
}

Test(cli_export, a_batch_that_no_accumulation_makes_is_refused) {
    ProgramRun run = CLI(DEEPSPEED, "--mesh", "dp_shard=4", "--micro-batch", "2", "--global-batch", "60");
    cr_expect_eq(run.exit_code, 1);
    cr_expect(strstr(run.err, "nearest"), "%s", run.err);
    cr_expect_str_empty(run.out);
    program_run_free(&run);
}

Test(cli_export, the_option_lists_every_format) {
    const ExportFormat *format;
    ProgramRun run = CLI("export", "--as", "nothing-like-it");
    cr_expect_eq(run.exit_code, 1);
    for (int i = 0; (format = export_format_at(i)); i++) {
        cr_expect(strstr(run.err, format->name), "%s is not in: %s", format->name, run.err);
    }
    program_run_free(&run);
}

Test(cli_export, the_best_of_a_world_is_the_first_entry_of_its_plan) {
    json_t *plan = CLI_JSON(0, "plan", "--world", "8", "--model", "tiny", "--target", "deepspeed", "--global-batch",
                            "64", "--format", "json");
    const json_t *best = json_array_get(json_object_get(plan, "entries"), 0);
    json_t *file =
        CLI_JSON(0, "export", "--world", "8", "--model", "tiny", "--target", "deepspeed", "--global-batch", "64");
    cr_expect_eq(cli_number(file, "train_micro_batch_size_per_gpu"),
                 cli_number(json_object_get(best, "plan"), "micro_batch"));
    cr_expect_eq(cli_number(json_object_get(file, "zero_optimization"), "stage"),
                 cli_number(json_object_get(best, "plan"), "zero"));
    cr_expect_eq(cli_number(file, "train_batch_size"), 64);
    json_decref(file);
    json_decref(plan);
}

Test(cli_export, a_world_gives_a_file_even_where_better_shapes_cannot_be_written) {
    ProgramRun run =
        CLI("export", "--world", "32", "--model", "llama-3-8b", "--target", "deepspeed", "--effort", "estimate");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    json_t *file = json_loads(run.out, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(file, "%s", run.out);
    cr_expect(strstr(run.err, "place 1, ") == NULL || strstr(run.err, "is passed over: DeepSpeed"), "%s", run.err);
    json_decref(file);
    program_run_free(&run);
}

// peft's get_peft_model makes them fp32: such a file would be read back so.
Test(cli_export, adapters_in_bf16_are_refused_where_peft_makes_them_fp32) {
    static const char *const formats[] = {"accelerate-yaml", "accelerate-python", "hf-trainer", "trainer", "trl"};
    static const char *const words[][2] = {{"lora", "bf16"}, {"qlora", "bf16"}, {"lora", "fp32"}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        for (size_t j = 0; j < sizeof words / sizeof *words; j++) {
            ProgramRun run =
                CLI("export", "--as", formats[i], "--model", "tiny", "--mesh", "dp_shard=4", "--global-batch", "8",
                    "--finetune", words[j][0], "--lora-rank", "8", "--master-weights", words[j][1]);
            const bool refused = strcmp(words[j][1], "bf16") == 0;
            cr_expect_eq(run.exit_code != 0, refused, "%s %s: %s", formats[i], words[j][0], run.err);
            cr_expect(!refused || strstr(run.err, "makes adapters fp32"), "%s %s: %s", formats[i], words[j][0],
                      run.err);
            program_run_free(&run);
        }
    }
}

// A file says sdpa, or nothing, and which kernel that is depends on the chip and the model.
Test(cli_export, a_kernel_that_sdpa_does_not_take_by_itself_is_said) {
    static const struct {
        const char *format, *model, *mesh, *cluster, *attention, *words;
    } cases[] = {
        {"torchtitan-toml", "llama-3-8b", "dp_shard=8", "dgx-h100", "flash",
         "take CUDNN_ATTENTION out of the backends"},
        {"torchtitan-toml", "llama-3-8b", "dp_shard=8", "dgx-h100", "cudnn", NULL},
        {"torchtitan-toml", "llama-3-8b", "dp_shard=8", "dgx-a100-80g", "flash", NULL},
        {"accelerate-yaml", "llama-3-8b", "dp_shard=4,cp=2", "dgx-h100", "flash", "sdpa_kernel(SDPBackend.FLASH"},
        {"accelerate-yaml", "llama-3-8b", "dp_shard=8", "dgx-h100", "flash", NULL},  // flash_attention_2
        {"trl", "llama-3-8b", "dp_shard=8", "dgx-a100-80g", "cudnn", "sdpa_kernel(SDPBackend.CUDNN"},
        {"trainer", "gemma-7b", "dp_shard=8", "dgx-h100", "cudnn", "sdpa_kernel(SDPBackend.CUDNN"},
        {"trainer", "llama-3-8b", "dp_shard=8", "dgx-h100", "cudnn", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ProgramRun run =
            CLI("export", "--as", cases[i].format, "--model", cases[i].model, "--mesh", cases[i].mesh, "--cluster",
                cases[i].cluster, "--attention", cases[i].attention, "--seq", "4096", "--global-batch", "16");
        cr_assert_eq(run.exit_code, 0, "case %zu: %s", i, run.err);
        const char *note = strstr(run.out, "SDPA ");
        cr_expect_eq(note != NULL, cases[i].words != NULL, "case %zu: %s", i, run.out);
        cr_expect(!note || strstr(note, cases[i].words), "case %zu: %s", i, run.out);
        program_run_free(&run);
    }
}

// deepspeed: plans may keep gathered parameters, its file does not say so. axolotl: no plan for it does.
Test(cli_export, what_the_format_keeps_out_of_the_search_is_said) {
    static const char *const formats[] = {"deepspeed", "axolotl"};
    for (int i = 0; i < 2; i++) {
        ProgramRun run = CLI("export", "--world", "8", "--model", "tiny", "--as", formats[i], "--effort", "estimate");
        cr_assert_eq(run.exit_code, 0, "%s", run.err);
        cr_expect_eq(strstr(run.err, "has no --reshard never: plans with it are left out") != NULL, i == 0, "%s",
                     run.err);
        program_run_free(&run);
    }
}

Test(cli_export, without_words_it_goes_on_with_the_last_request) {
    char *folder = temp_dir_make();
    char db[512], out[512];
    snprintf(db, sizeof db, "%s/here.db", folder);
    snprintf(out, sizeof out, "%s/a file.yaml", folder);
    ProgramRun plan =
        CLI("--world", "8", "--model", "tiny", "--global-batch", "64", "--cluster", "dgx-a100-80g", "--db", db);
    cr_assert_eq(plan.exit_code, 0, "%s", plan.err);
    ProgramRun here = CLI("--world", "2", "--model", "tiny", "--target", "ndtune", "--db", db);  // as validate does
    cr_assert_eq(here.exit_code, 0, "%s", here.err);
    ProgramRun file = CLI("export", "--db", db, "--out", out);
    cr_assert_eq(file.exit_code, 0, "%s", file.err);
    cr_expect_str_empty(file.out);
    cr_expect(strstr(file.err, "going on with the last request: ndtune --world 8"), "%s", file.err);
    FILE *in = fopen(out, "r");
    cr_assert_not_null(in);
    char text[4096] = "";
    cr_expect_gt(fread(text, 1, sizeof text - 1, in), 0);
    fclose(in);
    cr_expect(strstr(text, "8 ranks on 1 node of dgx-a100-80g"), "%s", text);
    cr_expect(strstr(text, "Batch: 64 sequences"), "%s", text);
    cr_expect(strstr(text, "a file.yaml' train.py"), "%s", text);  // quoted, as it has a blank
    ProgramRun why = CLI("explain", "--db", db);
    cr_expect_eq(why.exit_code, 0, "%s", why.err);
    cr_expect(strstr(why.err, "going on with the last request: ndtune export --world 8"), "%s", why.err);
    cr_expect(strstr(why.out, "tiny on 8 x A100-SXM4-80GB (dgx-a100-80g)"), "%s", why.out);
    program_run_free(&plan);
    program_run_free(&here);
    program_run_free(&file);
    program_run_free(&why);
    temp_dir_remove(folder);
}

Test(cli_export, what_a_file_cannot_say_ends_with_exit_code_1_and_no_file) {
    char *folder = temp_dir_make();
    char out[512];
    snprintf(out, sizeof out, "%s/no.yaml", folder);
    ProgramRun run = CLI("export", "--as", "accelerate-yaml", "--mesh", "tp=4", "--model", "tiny", "--out", out);
    cr_expect_eq(run.exit_code, 1, "%s", run.err);
    cr_expect(strstr(run.err, "--as accelerate-python"), "%s", run.err);
    cr_expect_neq(access(out, F_OK), 0);
    program_run_free(&run);
    temp_dir_remove(folder);
}

Test(cli_export, a_plan_that_does_not_fit_is_no_file) {
    ProgramRun run = CLI("export", "--mesh", "dp_replicate=8", "--model", "70b");
    cr_expect_eq(run.exit_code, 2);
    cr_expect(strstr(run.err, "does not fit"), "%s", run.err);
    cr_expect_str_empty(run.out);
    program_run_free(&run);
}

Test(cli_export, as_json_it_is_the_same_file_with_its_prediction) {
    ProgramRun file = CLI("export", "--mesh", "dp_shard=4", "--model", "tiny");
    cr_assert_eq(file.exit_code, 0, "%s", file.err);
    json_t *root = CLI_JSON(0, "export", "--mesh", "dp_shard=4", "--model", "tiny", "--format", "json");
    cr_expect_str_eq(json_string_value(json_object_get(root, "schema")), "ndtune.export/1");
    cr_expect_str_eq(json_string_value(json_object_get(root, "file_name")), "accelerate.yaml");
    const char *content = json_string_value(json_object_get(root, "content")), *from = strstr(content, "compute_env");
    cr_expect(from && strstr(file.out, from), "%s", content);  // below the header, which names the command
    cr_expect_gt(cli_number(json_object_get(root, "prediction"), "step_time_s"), 0);
    json_decref(root);
    program_run_free(&file);
}

Test(cli_export, a_rack_is_as_many_nodes_as_it_has_machines) {
    ProgramRun run = CLI("export", "--as", "sbatch", "--mesh", "dp_shard=16,tp=8", "--model", "70b", "--cluster",
                         "gb200-nvl72", "--target", "megatron", "--micro-batch", "1", "--grad-accum", "1");
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, "#SBATCH --nodes=32\n"), "%s", run.out);
    cr_expect_not_null(strstr(run.out, "#SBATCH --gpus-per-node=4\n"), "%s", run.out);
    program_run_free(&run);
}

Test(cli_export, a_model_that_no_file_can_hold_names_three_shapes_their_count_and_the_file_that_holds_it) {
    ProgramRun run = CLI("export", "--world", "64", "--model", "qwen2-57b-a14b", "--target", "megatron", "--effort",
                         "estimate", "--global-batch", "256");
    cr_expect_eq(run.exit_code, 1);
    cr_expect(strstr(run.err, "place 3, ") && !strstr(run.err, "place 4, "), "%s", run.err);
    cr_expect_not_null(strstr(run.err, " more are passed over\n"), "%s", run.err);
    cr_expect_not_null(strstr(run.err, "use --as megatron-bridge with --target megatron@bridge-0.6"), "%s", run.err);
    program_run_free(&run);
}

// PyTorch decides which kernel it is.
Test(cli_export, sdpa_is_what_pytorch_takes_on_the_chip_and_flash_beside_cudnns_kernel_is_flash_attention_2) {
    static const struct {
        const char *mesh, *cluster, *attention, *written;
    } cases[] = {{"dp_shard=8", "dgx-h100", "auto", "sdpa"},
                 {"dp_shard=8", "dgx-h100", "cudnn", "sdpa"},
                 {"dp_shard=8", "dgx-h100", "flash", "flash_attention_2"},
                 {"dp_shard=4,cp=2", "dgx-h100", "auto", "sdpa"},
                 {"dp_shard=8", "dgx-a100-80g", "flash", "sdpa"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ProgramRun run = CLI("export", "--as", "trl", "--mesh", cases[i].mesh, "--model", "llama-3.2-1b", "--target",
                             "trl", "--cluster", cases[i].cluster, "--attention", cases[i].attention);
        char line[64];
        snprintf(line, sizeof line, "\"attn_implementation\": \"%s\"", cases[i].written);
        cr_expect(strstr(run.out, line), "case %zu: no %s in\n%s%s", i, line, run.out, run.err);
        program_run_free(&run);
    }
}

// Flavors of torchtitan 0.2 say how attention is masked, in its 0.3 it always is by document.
Test(cli_export, documents_of_torchtitan_are_a_flavor_and_a_word_on_the_data) {
    static const struct {
        const char *format, *target, *model, *out, *err;
    } cases[] = {
        {"torchtitan-toml", "torchtitan", "llama-3.1-8b", "flavor = \"8B_flex\"", ""},
        {"torchtitan-toml", "torchtitan", "llama-2-7b", "attn_mask_type block_causal", ""},
        {"torchtitan-toml", "torchtitan", "qwen3-8b", "", "no flavor of qwen3 8B that masks by document"},
        {"torchtitan-python", "torchtitan@0.3", "qwen3-8b", "documents of 512 tokens in the mean", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ProgramRun run = CLI("export", "--as", cases[i].format, "--mesh", "dp_shard=8", "--model", cases[i].model,
                             "--target", cases[i].target, "--pack", "512");
        cr_expect(strstr(run.out, cases[i].out) && strstr(run.err, cases[i].err), "case %zu:\n%s%s", i, run.out,
                  run.err);
        program_run_free(&run);
    }
}
