// Where the store is, and what happens where it cannot be created.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli.h"

#define PLAN "plan", "--world", "8", "--model", "tiny"

Test(cli_store, a_name_that_keeps_nothing_is_refused) {
    static const char *const names[] = {"", ":memory:"};
    for (int i = 0; i < 2; i++) {
        ProgramRun run = CLI(PLAN, "--db", names[i]);
        cr_expect_eq(run.exit_code, 1, "%s", run.err);
        cr_expect(strstr(run.err, "is no file, so nothing would be kept"), "%s", run.err);
        cr_expect_str_empty(run.out);
        program_run_free(&run);
    }
}

Test(cli_store, a_mistyped_folder_is_an_error_and_is_not_made) {
    char *folder = temp_dir_make();
    char above[512], db[600];
    snprintf(above, sizeof above, "%s/mistyped", folder);
    snprintf(db, sizeof db, "%s/sub/ndtune.db", above);
    ProgramRun run = CLI(PLAN, "--db", db);
    cr_expect_eq(run.exit_code, 3, "%s", run.err);
    cr_expect(strstr(run.err, "No such file or directory"), "%s", run.err);
    cr_expect_neq(access(above, F_OK), 0);
    program_run_free(&run);
    temp_dir_remove(folder);
}

// HOME that is not set, and one in which nothing can be made.
Test(cli_store, without_a_place_a_plan_is_answered_with_a_warning) {
    static const char *const places[][3] = {{"XDG_DATA_HOME=", "HOME=", NULL},
                                            {"XDG_DATA_HOME=", "HOME=/proc/ndtune", NULL}};
    static const char *const says[] = {"so there is no place for the store; what this call finds is not kept",
                                       "cannot create the folder /proc/ndtune"};
    ProgramRun usual = CLI(PLAN);
    for (int i = 0; i < 2; i++) {
        ProgramRun run = program_run((const char *const[]){"ndtune", PLAN, NULL}, places[i], 240);
        cr_expect_eq(run.exit_code, 0, "%s", run.err);
        cr_expect(strstr(run.err, says[i]), "%s", run.err);
        cr_expect_eq(strlen(run.out), strlen(usual.out), "%s", run.out);
        program_run_free(&run);
    }
    program_run_free(&usual);
}

Test(cli_store, what_costs_time_is_not_measured_where_it_cannot_be_kept) {
    static const char *const place[] = {"XDG_DATA_HOME=", "HOME=", NULL};
    ProgramRun run = program_run(
        (const char *const[]){"ndtune", "run", "--model", "tiny", "--mesh", "dp_shard=2", NULL}, place, 240);
    cr_expect_eq(run.exit_code, 3, "%s", run.err);
    cr_expect(strstr(run.err, "no place for the store"), "%s", run.err);
    program_run_free(&run);
}

// As another user where the tests run as root, because root can write everywhere.
static ProgramRun as_reader(const char *const *words) {
    const char *all[CLI_MAX_WORDS] = {"/usr/bin/setpriv", "--reuid=65534", "--clear-groups", NDTUNE_BIN_DIR "/ndtune"};
    int count = 3 + 1;
    for (int i = 0; words[i]; i++) {
        all[count++] = words[i];
    }
    return program_run(geteuid() == 0 ? all : all + 3, NULL, 240);
}

Test(cli_store, a_read_only_store_is_listed_and_asked) {
    ProgramRun version = as_reader((const char *const[]){"--version", NULL});
    const int can = version.exit_code;
    program_run_free(&version);
    if (can != 0) {
        cr_skip_test("root writes everywhere, and no other user can start ndtune here");
    }
    char *folder = temp_dir_make();
    char db[512];
    snprintf(db, sizeof db, "%s/a store?.db", folder);
    ProgramRun made = CLI(PLAN, "--db", db);
    cr_assert_eq(made.exit_code, 0, "%s", made.err);
    cr_assert(chmod(db, 0444) == 0 && chmod(folder, 0555) == 0);
    ProgramRun list = as_reader((const char *const[]){"runs", "--format", "json", "--db", db, NULL});
    ProgramRun asked = as_reader((const char *const[]){PLAN, "--db", db, NULL});
    ProgramRun last = as_reader((const char *const[]){"export", "--as", "accelerate-yaml", "--db", db, NULL});
    cr_expect_eq(list.exit_code, 0, "%s", list.err);
    cr_expect(strstr(list.out, "ndtune plan --world 8 --model tiny"), "%s", list.out);
    cr_expect_eq(asked.exit_code, 0, "%s", asked.err);
    cr_expect(strstr(asked.err, "not writable; what this call finds is not kept"), "%s", asked.err);
    cr_expect_eq(last.exit_code, 0, "%s", last.err);
    cr_expect(strstr(last.err, "going on with the last request"), "%s", last.err);
    chmod(folder, 0755);
    program_run_free(&made);
    program_run_free(&list);
    program_run_free(&asked);
    program_run_free(&last);
    temp_dir_remove(folder);
}
