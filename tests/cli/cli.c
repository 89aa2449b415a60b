// Runs ndtune from tests.

#include "tests/cli/cli.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/kept.h"

ProgramRun cli_words(const char *const *words) {
    const char *line[CLI_MAX_WORDS] = {"ndtune"};
    for (int i = 0; words[i]; i++) {
        cr_assert_lt(i, CLI_MAX_WORDS - 2);
        line[i + 1] = words[i];
    }
    char *folder = temp_dir_make();
    char data[512];
    snprintf(data, sizeof data, "XDG_DATA_HOME=%s", folder);
    const char *const environment[] = {data, NULL};
    ProgramRun run = program_run(line, environment, 240);
    temp_dir_remove(folder);
    cr_assert_not(run.timed_out);
    return run;
}

enum { OUT_BYTES = 4 << 20, ERR_BYTES = 64 << 10 };

typedef struct Printed {
    int exit_code;
    char out[OUT_BYTES], err[ERR_BYTES];
} Printed;

static const char *const *words_to_print;

static void print_once(void *value) {
    Printed *printed = value;
    ProgramRun run = cli_words(words_to_print);
    printed->exit_code = run.exit_code;
    cr_assert_lt(snprintf(printed->out, OUT_BYTES, "%s", run.out), OUT_BYTES);
    cr_assert_lt(snprintf(printed->err, ERR_BYTES, "%s", run.err), ERR_BYTES);
    program_run_free(&run);
}

ProgramRun cli_words_once(const char *const *words) {
    char name[KEPT_NAME_BYTES] = "";
    for (int i = 0; words[i]; i++) {
        cr_assert_lt(strlen(name) + strlen(words[i]) + 2, sizeof name);
        strcat(strcat(name, words[i]), " ");
    }
    Printed *printed = calloc(1, sizeof *printed);
    words_to_print = words;
    kept(name, printed, sizeof *printed, print_once);
    const ProgramRun run = {.exit_code = printed->exit_code, .out = strdup(printed->out), .err = strdup(printed->err)};
    free(printed);
    return run;
}

static json_t *json_of(ProgramRun run, int exit_code) {
    cr_assert_eq(run.exit_code, exit_code, "exit %d: %s", run.exit_code, run.err);
    json_error_t where;
    json_t *root = json_loads(run.out, JSON_REJECT_DUPLICATES, &where);
    cr_assert_not_null(root, "%s at %d:%d", where.text, where.line, where.column);
    program_run_free(&run);
    return root;
}

json_t *cli_json_words(int exit_code, const char *const *words) {
    return json_of(cli_words(words), exit_code);
}

json_t *cli_json_words_once(int exit_code, const char *const *words) {
    return json_of(cli_words_once(words), exit_code);
}

double cli_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_number(value), "%s is not a number", key);
    return json_number_value(value);
}

const char *cli_text(const json_t *object, const char *key) {
    const char *value = json_string_value(json_object_get(object, key));
    cr_assert_not_null(value, "%s", key);
    return value;
}

void cli_worker(const char *folder, const char *before) {
    char self[400], path[600];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    cr_assert_gt(length, 0);
    self[length] = '\0';
    *strrchr(self, '/') = '\0';  // tests/bin
    snprintf(path, sizeof path, "%s/worker", folder);
    FILE *script = fopen(path, "w");
    fprintf(script, "#!/bin/sh\n%s\nexec %s/../../bin/ndtune-worker \"$@\"\n", before, self);
    fclose(script);
    chmod(path, 0700);
    setenv("NDTUNE_WORKER", path, 1);
}

void cli_worker_that_dies(const char *folder, const char *words) {
    char before[300];
    snprintf(before, sizeof before, "[ \"$3\" = 1 ] && grep -q '%s' \"$2\" && kill -9 $$", words);
    cli_worker(folder, before);
}

int cli_lines(const char *text) {
    int lines = 0;
    for (; *text; text++) {
        lines += *text == '\n';
    }
    return lines;
}
