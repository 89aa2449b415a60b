// Starts a program for a test: argv, no shell, no stdin, output captured, a time limit, no process left over.

#pragma once

typedef struct ProgramRun {
    int exit_code;  // 128 + signal when a signal ended it
    int timed_out;  // 1: it was killed, with all its child processes
    char *out;      // stdout and stderr, as text
    char *err;
    double seconds;  // wall time, for information; never asserted
} ProgramRun;

// The first word is a path, or the name of one of our programs ("ndtune"), which is in NDTUNE_BIN_DIR.
// Words end with NULL. environment: NULL, or NULL-terminated "NAME=value" settings on top of the test's own.
// Fails the running test when the program cannot be started.
ProgramRun program_run(const char *const *words, const char *const *environment, double timeout_s);
void program_run_free(ProgramRun *run);

// A fresh directory; temp_dir_remove removes it with its contents.
char *temp_dir_make(void);
void temp_dir_remove(char *path);
