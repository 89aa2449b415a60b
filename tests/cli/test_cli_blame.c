// ndtune blame as people and scripts call it.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/cli.h"

TestSuite(cli_blame, .timeout = 300);

Test(cli_blame, what_is_no_folder_of_dumps_is_refused_in_words) {
    ProgramRun none = CLI("blame");
    cr_expect_eq(none.exit_code, 1);
    cr_expect_not_null(strstr(none.err, "blame reads a folder of dumps"));
    ProgramRun absent = CLI("blame", "/nowhere/at/all");
    cr_expect_eq(absent.exit_code, 3);
    cr_expect_not_null(strstr(absent.err, "cannot read the folder /nowhere/at/all"));
    ProgramRun other = CLI("blame", NDTUNE_SOURCE_DIR "/tests/golden/import/files");
    cr_expect_eq(other.exit_code, 1, "%s", other.err);
}

Test(cli_blame, a_pickle_that_would_run_something_is_refused_by_its_opcode) {
    char hostile[] = "/tmp/ndtune-hostile-XXXXXX", path[128];
    cr_assert_not_null(mkdtemp(hostile));
    snprintf(path, sizeof path, "%s/rank_0", hostile);
    FILE *file = fopen(path, "w");
    fputs("cos\nsystem\n(S'touch /tmp/ndtune-was-here'\ntR.", file);
    fclose(file);
    ProgramRun run = CLI("blame", hostile);
    cr_expect_eq(run.exit_code, 1);
    cr_expect_not_null(strstr(run.err, "byte 0: opcode GLOBAL (0x63) is refused"), "%s", run.err);
    cr_expect_neq(access("/tmp/ndtune-was-here", F_OK), 0);
    remove(path);
    rmdir(hostile);
}

#define STOPPED NDTUNE_SOURCE_DIR "/tests/golden/blame/stopped"

Test(cli_blame, a_shape_of_another_world_is_refused_and_the_step_is_named_in_the_answer) {
    ProgramRun smaller = CLI("blame", STOPPED, "--mesh", "dp_shard=2", "--model", "tiny");
    cr_expect_eq(smaller.exit_code, 1);
    cr_expect_not_null(strstr(smaller.err, "the dumps are of 4 ranks, not of 2"), "%s", smaller.err);
    ProgramRun shapeless = CLI("blame", STOPPED, "--model", "tiny");
    cr_expect_not_null(strstr(shapeless.err, "--model needs the shape: --mesh"));
    json_t *said = CLI_JSON(2, "blame", STOPPED, "--mesh", "dp_shard=2,tp=2", "--model", "tiny", "--format", "json");
    const json_t *program = json_object_get(said, "program");
    cr_expect_not_null(strstr(cli_text(program, "step"), "tiny on dp_shard=2,tp=2 for "));
    cr_expect_gt(cli_number(program, "compared"), 100);
    json_decref(said);
}
