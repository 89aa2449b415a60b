// Names, paths and files with letters that nobody expects: each is used as it is or refused in a sentence, and nothing
// of it reaches a terminal raw.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/cli/cli.h"

TestSuite(cli_text, .timeout = 300);

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
