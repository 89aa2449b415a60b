// Names, paths and files with unusual characters: each is used unchanged or refused with a message, and none of it
// reaches a terminal unescaped.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/cli/cli.h"

typedef struct Folder {
    char *path;
    char file[512];
} Folder;

// cl.json: a built-in profile in which one key is another text.
static Folder profile_with(const char *key, const char *value) {
    Folder folder = {.path = temp_dir_make()};
    json_t *root = CLI_JSON(0, "clusters", "dgx-h100", "--format", "json");
    cr_assert_eq(json_object_set_new(root, key, json_string(value)), 0);
    snprintf(folder.file, sizeof folder.file, "%s/cl.json", folder.path);
    cr_assert_eq(json_dump_file(root, folder.file, 0), 0);
    json_decref(root);
    return folder;
}

static void write_text(const char *path, const char *text) {
    FILE *out = fopen(path, "wb");
    cr_assert_not_null(out, "%s", path);
    fputs(text, out);
    cr_assert_eq(fclose(out), 0);
}

#define LLAMA                                                                                                          \
    "{\"model_type\": \"llama\", \"hidden_size\": 256, \"intermediate_size\": 512, \"num_hidden_layers\": 4, "         \
    "\"num_attention_heads\": 4, \"vocab_size\": 1024, \"max_position_embeddings\": 4096}"

static void expect_refused(ProgramRun run, int exit_code, const char *says) {
    cr_expect_eq(run.exit_code, exit_code, "%s", run.err);
    cr_expect(strstr(run.err, says), "%s", run.err);
    cr_expect_str_empty(run.out);
    cr_expect_null(strpbrk(run.err, "\r\x1b"), "%s", run.err);
    program_run_free(&run);
}

Test(cli_text, a_profile_whose_texts_hold_control_characters_is_refused) {
    static const char *const values[] = {"x\rimport os;os.system('touch PWNED')\r#", "x\nb", "x\xc2\x85y",
                                         "x\xe2\x80\xa8y", "\x1b[31mred"};
    static const char *const keys[] = {"name", "description", "date"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const char *key = keys[i % 3];
        Folder folder = profile_with(key, values[i]);
        char says[96];
        snprintf(says, sizeof says, "cl.json: %s: must be text without control characters", key);
        expect_refused(CLI("export", "--mesh", "dp_shard=8", "--model", "7b", "--cluster", folder.file), 1, says);
        temp_dir_remove(folder.path);
    }
}

Test(cli_text, a_word_with_control_characters_or_other_bytes_than_utf8_is_refused) {
    static const char *const paths[] = {"./a\rb/config.json", "./\x1b[2J/config.json", "./\xff/config.json", "a\nb"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        expect_refused(CLI("export", "--mesh", "dp_shard=8", "--model", paths[i]), 1,
                       "word 5 holds control characters or is not UTF-8");
    }
}

// 30 characters of four bytes each; a name holds 15 of them.
Test(cli_text, a_long_name_is_cut_between_two_characters) {
    char *folder = temp_dir_make();
    char path[512], name[256] = "";
    for (int i = 0; i < 30; i++) {
        strcat(name, "\xf0\x9f\x94\xa5");
    }
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    write_text(path, LLAMA);
    json_t *root = CLI_JSON(0, "predict", "--mesh", "dp_shard=8", "--model", path, "--format", "json");
    name[4 * 15] = '\0';
    cr_expect_str_eq(cli_text(json_object_get(root, "request"), "model"), name);
    json_decref(root);
    temp_dir_remove(folder);
}

Test(cli_text, json_may_begin_with_a_byte_order_mark) {
    char *folder = temp_dir_make();
    char path[512], config[512];
    snprintf(path, sizeof path, "%s/model.json", folder);
    write_text(path, "\xef\xbb\xbf" LLAMA);
    snprintf(config, sizeof config, "%s/ds.json", folder);
    write_text(config, "\xef\xbb\xbf{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": 3}}");
    ProgramRun model = CLI("predict", "--mesh", "dp_shard=8", "--model", path);
    cr_expect_eq(model.exit_code, 0, "%s", model.err);
    ProgramRun import = CLI("explain", "--from", config, "--model", "tiny", "--world", "8");
    cr_expect_eq(import.exit_code, 0, "%s", import.err);
    program_run_free(&model);
    program_run_free(&import);
    temp_dir_remove(folder);
}

// What a file of another framework holds is shown, not sent.
Test(cli_text, words_of_a_config_file_do_not_steer_the_terminal) {
    char *folder = temp_dir_make();
    char config[512];
    snprintf(config, sizeof config, "%s/a.yaml", folder);
    write_text(config, "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\nnum_processes: "
                       "8\n\"\\x1b[2J\\x1b]0;owned\\x07\": 1\n");
    ProgramRun run = CLI("explain", "--from", config, "--model", "tiny");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_null(strpbrk(run.out, "\x1b\x07"), "%s", run.out);
    cr_expect_null(strpbrk(run.err, "\x1b\x07"), "%s", run.err);
    cr_expect(strstr(run.out, "\\u001b[2J"), "%s", run.out);
    program_run_free(&run);
    temp_dir_remove(folder);
}

Test(cli_text, a_number_too_small_to_divide_by_is_refused) {
    char *folder = temp_dir_make();
    char path[512];
    json_t *root = CLI_JSON(0, "clusters", "dgx-h100", "--format", "json");
    json_t *rate = json_object_get(json_object_get(root, "fabric"), "nic_bytes_per_s");
    snprintf(path, sizeof path, "%s/cl.json", folder);
    cr_assert_eq(json_object_set_new(rate, "value", json_real(5e-324)), 0);
    cr_assert_eq(json_dump_file(root, path, 0), 0);
    expect_refused(CLI("--world", "16", "--model", "7b", "--cluster", path), 1,
                   "fabric.nic_bytes_per_s.value: must be 0 or at least 1e-30");
    expect_refused(CLI("--world", "16", "--model", "7b", "--set", "fabric.nic_bytes_per_s=5e-324"), 1,
                   "must be 0 or at least 1e-30");
    json_decref(root);
    temp_dir_remove(folder);
}

Test(cli_text, a_host_that_an_option_could_be_is_refused) {
    static const char *const hosts[] = {"-oProxyCommand=touch PWNED", "node1,-x"};
    for (int i = 0; i < 2; i++) {
        expect_refused(CLI("run", "--mesh", "dp_shard=2", "--model", "tiny", "--transport", "mpi", "--hosts", hosts[i]),
                       1, "does not begin with '-'");
    }
}

Test(cli_text, a_cell_of_text_is_no_formula_for_a_spreadsheet) {
    Folder folder = profile_with("description", "=HYPERLINK(1)");
    json_t *root = json_load_file(folder.file, 0, NULL);
    json_t *memory = json_object_get(json_object_get(root, "accelerator"), "memory_bytes");
    json_object_set_new(memory, "source", json_string("@SUM(1,2)"));
    cr_assert_eq(json_dump_file(root, folder.file, 0), 0);
    ProgramRun run = CLI("clusters", folder.file, "--format", "csv");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, ",\"'@SUM(1,2)\"\r\n"), "%s", run.out);
    program_run_free(&run);
    json_decref(root);
    temp_dir_remove(folder.path);
}

Test(cli_text, a_file_is_one_with_or_without_its_folder) {
    Folder folder = profile_with("description", "as it was");
    char model[512];
    snprintf(model, sizeof model, "%s/model", folder.path);
    write_text(model, LLAMA);
    cr_assert_eq(rename(folder.file, "cl-of-a-test"), 0);
    cr_assert_eq(rename(model, "model-of-a-test"), 0);
    ProgramRun run = CLI("export", "--mesh", "dp_shard=8", "--model", "model-of-a-test", "--cluster", "cl-of-a-test",
                         "--as", "accelerate-python");
    remove("cl-of-a-test");
    remove("model-of-a-test");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "MODEL = \"model-of-a-test\"\n"), "%s", run.out);
    program_run_free(&run);
    temp_dir_remove(folder.path);
}
