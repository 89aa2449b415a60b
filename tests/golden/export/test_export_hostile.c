// Names and paths that try to escape from their comment, string or word: the parser of each format reads the files, and
// finds the same as in a file of harmless names. Skipped where the parser is not installed.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/escape.h"
#include "tests/golden/export/export_case.h"
#include "tests/support/run_program.h"

static const char *const hostile[] = {
    "x\rimport os;os.system('touch PWNED')\r#",
    "x\nimport os;os.system('touch PWNED')\n#",
    "x\xc2\x85import os;os.system('touch PWNED')\xc2\x85#",
    "x\xe2\x80\xa8import os;os.system('touch PWNED')\xe2\x80\xa8#",
    "x\xe2\x80\xa9import os;os.system('touch PWNED')\xe2\x80\xa9#",
    "x\x0bimport os;os.system('touch PWNED')\x0c#",
    "x\x1c\x1d\x1e#",
    "x\rtrust_remote_code: true\r#",
    "x\nEND_OF_FILE\ntouch PWNED\n",
    "x\x1b[2J\x1b]0;owned\x07\x9b",
    "\xef\xbb\xbfx\xe2\x80\xae\x7f",
    "\xff\xfe\xc3(",
    "\"+__import__('os').system('touch PWNED')+\"",
    "\\\"+__import__('os').system('touch PWNED')#",
    "'''\"\"\"\\",
    "$(touch PWNED)`touch PWNED`",
    "';touch PWNED;'",
    "x;touch PWNED|touch PWNED&touch PWNED #",
    "!!python/object/apply:os.system ['touch PWNED']",
    "- &a *a {x: y} [z] %YAML |",
    "%s%n {0} {{x}} ${HOME}",
    "\xf0\x9f\x94\xa5 caf\xc3\xa9 \xf0\x9f\xbf\xbe",
};

enum { HOSTILE = sizeof hostile / sizeof hostile[0] };

static void put(const char *folder, const char *name, const char *text) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    cr_assert_not_null(out, "%s", path);
    fputs(text, out);
    cr_assert_eq(fclose(out), 0);
}

static void take_name(char *name, size_t bytes, const char *text) {
    snprintf(name, bytes, "%.*s", (int)text_cut(text, bytes - 1), text);
}

// Every text that is not ours is this one; NULL = harmless.
static void write_one(const char *folder, const Golden *golden, int number, const char *text) {
    Case made;
    Error error = {0};
    char asked[256], name[64];
    snprintf(asked, sizeof asked, "./%s/config.json", text && text_is_utf8(text) ? text : "x");
    case_fill(&made, asked, golden->target, &golden->plan);
    cr_assert_eq(model_find(golden->model, &made.arena, &made.request.model, &error), STATUS_OK, "%s", error.message);
    made.request.model.path = asked;
    if (text) {
        take_name(made.request.model.name, sizeof made.request.model.name, text);
        take_name(made.request.cluster.name, sizeof made.request.cluster.name, text);
        made.target.evidence = made.job.command = made.job.file_name = text;
    }
    char *file = exported(golden->format, &made, &error);
    cr_assert_not_null(file, "%s: %s", golden->file, error.message);
    snprintf(name, sizeof name, "%02d_%s", number, golden->file);
    put(folder, name, file);
    snprintf(name, sizeof name, "%02d_%s.model", number, golden->file);
    asked[strlen(asked) - strlen("/config.json")] = '\0';
    put(folder, name, asked);
    free(file);
    arena_free(&made.arena);
}

// The files whose names end so, 00 with harmless names, each read by the parser.
static void check(const char *ending) {
    char *folder = temp_dir_make();
    int files = 0;
    for (int i = 0; i < golden_count; i++) {
        const size_t length = strlen(goldens[i].file), tail = strlen(ending);
        if (length < tail || strcmp(goldens[i].file + length - tail, ending) != 0) {
            continue;
        }
        files++;
        for (int k = 0; k <= HOSTILE; k++) {
            write_one(folder, &goldens[i], k, k == 0 ? NULL : hostile[k - 1]);
        }
    }
    cr_assert_gt(files, 0);
    ProgramRun run = program_run((const char *const[]){"/usr/bin/env", "python3",
                                                       NDTUNE_SOURCE_DIR "/tests/golden/export/read_hostile.py", ending,
                                                       folder, NULL},
                                 NULL, 50);
    temp_dir_remove(folder);
    if (run.exit_code == 77 || run.exit_code == 127) {
        cr_skip_test("%s", run.exit_code == 77 ? run.out : "there is no python3");
    }
    char expected[64];
    snprintf(expected, sizeof expected, "%d files read\n", files * HOSTILE);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_str_eq(run.out, expected);
    program_run_free(&run);
}

Test(export_hostile, python_runs_only_what_we_wrote) {
    check(".py");
}

Test(export_hostile, pyyaml_reads_the_same_keys) {
    check(".yaml");
}

Test(export_hostile, tomllib_reads_the_same_keys) {
    check(".toml");
}

Test(export_hostile, json_reads_the_same_keys) {
    check(".json");
}

Test(export_hostile, bash_runs_only_what_we_wrote) {
    check(".sh");
}

Test(export_hostile, a_batch_script_runs_only_what_we_wrote) {
    check(".sbatch");
}
