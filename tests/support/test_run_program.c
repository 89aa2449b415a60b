// The helper that other tests trust to start programs.

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/support/run_program.h"

static ProgramRun run_shell(const char *script, double timeout_s) {
    const char *const environment[] = {"NDTUNE_PLANTED=yes", NULL};
    return program_run((const char *const[]){"/bin/sh", "-c", script, NULL}, environment, timeout_s);
}

Test(run_program, captures_both_streams_and_the_exit_code) {
    ProgramRun run = run_shell("echo result; echo words >&2; exit 3", 10);
    cr_assert_eq(run.exit_code, 3);
    cr_assert_str_eq(run.out, "result\n");
    cr_assert_str_eq(run.err, "words\n");
    program_run_free(&run);
}

Test(run_program, gives_no_stdin_and_the_asked_environment) {
    ProgramRun run = run_shell("cat; echo $NDTUNE_PLANTED", 10);
    cr_assert_str_eq(run.out, "yes\n");
    program_run_free(&run);
}

Test(run_program, a_signal_is_seen_in_the_exit_code) {
    ProgramRun run = run_shell("kill -ABRT $$", 10);
    cr_assert_eq(run.exit_code, 128 + SIGABRT);
    program_run_free(&run);
}

// A killed process may remain a zombie until init reaps it; that does not count as running.
static bool is_running(int process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    char state = 'X';
    if (file) {
        cr_expect_eq(fscanf(file, "%*d %*s %c", &state), 1);
        fclose(file);
    }
    return state != 'Z' && state != 'X';
}

Test(run_program, a_timeout_ends_the_children_too) {
    ProgramRun run = run_shell("sleep 100 & echo $!; wait", 0.2);
    cr_assert_eq(run.timed_out, 1);
    const int child = atoi(run.out);
    cr_assert_gt(child, 1);
    for (int wait = 0; wait < 200 && is_running(child); wait++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    cr_assert_not(is_running(child));
    program_run_free(&run);
}

Test(run_program, a_temporary_directory_goes_with_its_content) {
    char *path = temp_dir_make();
    char inner[256];
    snprintf(inner, sizeof inner, "%s/a", path);
    cr_assert_eq(mkdir(inner, 0700), 0);
    char *kept = strdup(path);
    temp_dir_remove(path);
    struct stat info;
    cr_assert_neq(stat(kept, &info), 0);
    free(kept);
}
