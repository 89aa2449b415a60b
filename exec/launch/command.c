// Its own process group, output to a file in a private directory, a watch loop like the launcher's, and an exit path
// that always ends the group.

#define _GNU_SOURCE  // memmem

#include "exec/launch/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/launch/environment.h"
#include "exec/launch/run_directory.h"
#include "exec/launch/signals.h"
#include "exec/launch/workers.h"
#include "sim/base/clock.h"

static const double LOOK_S = 0.1;
static const double NAP_S = 0.02;
static const double END_S = 5;  // a command that is asked to exit may take this long to end what it started

static int spawn(const CommandSetup *setup, const char *output_path, Arena *arena, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = signals_of_child(true, &attributes);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    failed = failed ? failed
                    : posix_spawnp(pid, setup->argv[0], &actions, &attributes, setup->argv,
                                   environment_with(setup->environment, arena));
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

// Box frames and rules carry no information.
static bool worth_reading(const char *line, size_t length) {
    return strspn(line, "-=*#_ \t") < length;
}

// "RuntimeError: why": the last such line of a Python program says more than what its launcher prints after it.
static bool names_error(const char *line, size_t length) {
    static const char mark[] = "Error: ";
    const char *at = memmem(line, length, mark, sizeof mark - 1);
    return at && at + sizeof mark <= line + length;
}

// The last line that names an error, else the last informative one.
static const char *last_words(const char *output, Arena *arena) {
    const char *last = "", *p = output;
    size_t length = 0;
    bool error_found = false;
    while (*p) {
        const size_t line = strcspn(p, "\r\n");
        const bool error_here = names_error(p, line);
        if (error_here || (!error_found && worth_reading(p, line))) {
            last = p;
            length = line;
            error_found = error_here;
        }
        p += line + (p[line] != '\0');
    }
    enum { MOST_WORDS = 200 };
    return arena_format(arena, "%.*s", (int)(length < MOST_WORDS ? length : MOST_WORDS), last);
}

static const char *output_read(const char *path, Arena *arena) {
    FILE *file = fopen(path, "r");
    if (!file) {
        return "";
    }
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    const long first = bytes > COMMAND_OUTPUT_MOST ? bytes - COMMAND_OUTPUT_MOST : 0;
    fseek(file, first, SEEK_SET);
    char *text = arena_alloc(arena, (size_t)(bytes - first) + 1);
    const size_t read = fread(text, 1, (size_t)(bytes - first), file);
    text[read] = '\0';
    for (size_t i = 0; i < read; i++) {
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    fclose(file);
    return text;
}

static Status watch(const CommandSetup *setup, pid_t pid, const HeldSignals *held, int *wait_status, int *caught,
                    Error *error) {
    const double start_s = clock_s();
    while (waitpid(pid, wait_status, WNOHANG) == 0) {
        *caught = signals_wait(held, LOOK_S);
        FAIL_IF(*caught, error, STATUS_ENVIRONMENT, "interrupted by signal %d", *caught);
        const double elapsed_s = clock_s() - start_s;
        FAIL_IF(elapsed_s > setup->timeout_s, error, STATUS_ENVIRONMENT, "%s did not end within %.0f s", setup->argv[0],
                setup->timeout_s);
        FAIL_IF(!progress_update(setup->progress, "seconds", (int64_t)elapsed_s, (int64_t)setup->timeout_s), error,
                STATUS_ENVIRONMENT, "the command was cancelled");
    }
    return STATUS_OK;
}

// Asks first: torchrun starts its workers in their own sessions; it ends them, but a signal to its group does not.
static void group_end(pid_t pid, bool running) {
    const double end_s = clock_s() + END_S;
    int wait_status;
    if (running) {
        kill(-pid, SIGTERM);
    }
    while (running && clock_s() < end_s) {
        clock_nap(NAP_S);
        running = waitpid(pid, &wait_status, WNOHANG) == 0;
    }
    kill(-pid, SIGKILL);
    while (running && waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
    }
}

static Status ended(const CommandSetup *setup, int wait_status, const char *output, Arena *arena, Error *error) {
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
        return STATUS_OK;
    }
    const char *words = last_words(output, arena), *before = *words ? "; its last words: " : "";
    return error_set(error, STATUS_ENVIRONMENT, "%s %s%s%s", setup->argv[0], process_end_words(wait_status, arena),
                     before, words);
}

static Status run_in(const RunDirectory *directory, const CommandSetup *setup, const HeldSignals *held, int *caught,
                     Arena *arena, const char **output, Error *error) {
    const char *path = arena_format(arena, "%s/output", directory->path);
    pid_t pid;
    const int failed = spawn(setup, path, arena, &pid);
    FAIL_IF(failed, error, STATUS_ENVIRONMENT, "cannot start %s: %s", setup->argv[0], strerror(failed));
    int wait_status = 0;
    const Status status = watch(setup, pid, held, &wait_status, caught, error);
    group_end(pid, status != STATUS_OK);
    *output = output_read(path, arena);
    return status == STATUS_OK ? ended(setup, wait_status, *output, arena, error) : status;
}

Status command_run(const CommandSetup *setup, Arena *arena, const char **output, Error *error) {
    RunDirectory directory = {0};
    *output = "";
    TRY(run_directory_make(arena, &directory, error));
    HeldSignals held;
    signals_hold(&held);
    int caught = 0;
    const Status status = run_in(&directory, setup, &held, &caught, arena, output, error);
    run_directory_remove(&directory);
    signals_release(&held, caught);
    return status;
}
