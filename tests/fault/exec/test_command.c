// A program that is not ours: its exit status is reported whatever its output and whatever this process ignores, and
// its child processes end with it.

#define _GNU_SOURCE  // kill, setenv

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/launch/command.h"
#include "tests/support/run_program.h"

static Arena arena;
static char *directory;

static void begin(void) {
    directory = temp_dir_make();
    setenv("TMPDIR", directory, 1);
}

static void end(void) {
    temp_dir_remove(directory);
    arena_free(&arena);
}

TestSuite(command, .init = begin, .fini = end);

static Status shell(const char *script, double timeout_s, Error *error) {
    char *const words[] = {arena_text(&arena, "sh"), arena_text(&arena, "-c"), arena_text(&arena, script), NULL};
    const CommandSetup setup = {.argv = words, .timeout_s = timeout_s};
    const char *output;
    return command_run(&setup, &arena, &output, error);
}

Test(command, the_line_that_names_an_error_says_why) {
    Error error = {0};
    cr_expect(shell("echo first; echo 'ValueError: no such axis'; echo ----; echo bye; exit 3", 20, &error) ==
              STATUS_ENVIRONMENT);
    cr_expect_str_eq(error.message, "sh exited with code 3; its last words: ValueError: no such axis");
}

// Searching the rest of the output from every line would take hours here.
Test(command, a_million_lines_without_an_error_end_with_the_last) {
    Error error = {0};
    cr_expect(shell("yes 'a line' | head -n 1000000; echo 'the last'; exit 3", 60, &error) == STATUS_ENVIRONMENT);
    cr_expect_str_eq(error.message, "sh exited with code 3; its last words: the last");
}

Test(command, how_it_ended_is_known_where_the_ends_of_children_are_ignored) {
    Error error = {0};
    signal(SIGCHLD, SIG_IGN);
    cr_expect(shell("exit 3", 20, &error) == STATUS_ENVIRONMENT);
    cr_expect(strstr(error.message, "exited with code 3"), "%s", error.message);
    cr_expect_eq(signal(SIGCHLD, SIG_DFL), SIG_IGN);
}

static bool is_alive(long pid) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    const bool there = file && fgets(line, sizeof line, file);
    if (file) {
        fclose(file);
    }
    const char *state = there ? strrchr(line, ')') : NULL;
    return state && state[2] != 'Z' && state[2] != 'X';
}

// As torchrun does with its workers.
Test(command, beyond_its_time_it_may_end_what_it_started_in_other_sessions) {
    const char *script = "setsid sleep 600 & pid=$!; trap 'kill $pid; exit' TERM; echo $pid > \"$TMPDIR/pid\"; wait";
    Error error = {0};
    long pid = 0;
    cr_expect(shell(script, 0.5, &error) == STATUS_ENVIRONMENT);
    cr_expect(strstr(error.message, "did not end within"), "%s", error.message);
    FILE *file = fopen(arena_format(&arena, "%s/pid", directory), "r");
    cr_assert(file && fscanf(file, "%ld", &pid) == 1 && pid > 1);
    fclose(file);
    cr_expect(!is_alive(pid));
    if (is_alive(pid)) {
        kill((pid_t)pid, SIGKILL);
    }
}
