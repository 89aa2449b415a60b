// Running ndtune from tests.

#include "tests/cli/cli.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

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
    ProgramRun run = program_run(line, environment, 60);
    temp_dir_remove(folder);
    cr_assert_not(run.timed_out);
    return run;
}

json_t *cli_json_words(int exit_code, const char *const *words) {
    ProgramRun run = cli_words(words);
    cr_assert_eq(run.exit_code, exit_code, "exit %d: %s", run.exit_code, run.err);
    json_error_t where;
    json_t *root = json_loads(run.out, JSON_REJECT_DUPLICATES, &where);
    cr_assert_not_null(root, "%s at %d:%d", where.text, where.line, where.column);
    program_run_free(&run);
    return root;
}

double cli_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_number(value), "%s is not a number", key);
    return json_number_value(value);
}
