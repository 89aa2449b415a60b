// posix_spawn with output into unlinked temporary files (no pipe can fill up) and its own process group (so that a
// timeout ends the children too).

#include "tests/support/run_program.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/clock.h"

extern char **environ;

static int capture_open(void) {
    char name[] = "/tmp/ndtune-test-XXXXXX";
    const int descriptor = mkstemp(name);
    cr_assert_geq(descriptor, 0, "cannot create a temporary file: %s", strerror(errno));
    unlink(name);
    return descriptor;
}

static char *capture_text(int descriptor) {
    const off_t size = lseek(descriptor, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    const ssize_t got = pread(descriptor, text, (size_t)size, 0);
    text[got > 0 ? got : 0] = '\0';
    close(descriptor);
    return text;
}

static int name_length(const char *setting) {
    return (int)strcspn(setting, "=") + 1;
}

// The test's environment overridden by the settings; the caller frees the array.
static char **environment_with(const char *const *settings) {
    size_t count = 0;
    size_t extra = 0;
    for (; environ[count]; count++) {
    }
    for (; settings && settings[extra]; extra++) {
    }
    char **merged = calloc(count + extra + 1, sizeof *merged);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        bool replaced = false;
        for (size_t k = 0; k < extra; k++) {
            replaced |= strncmp(environ[i], settings[k], (size_t)name_length(settings[k])) == 0;
        }
        if (!replaced) {
            merged[used++] = environ[i];
        }
    }
    for (size_t k = 0; k < extra; k++) {
        merged[used++] = (char *)settings[k];
    }
    return merged;
}

static pid_t start(const char *const *words, const char *const *settings, int out, int err) {
    char path[1024];
    snprintf(path, sizeof path, strchr(words[0], '/') ? "%s%s" : "%s/%s", strchr(words[0], '/') ? "" : NDTUNE_BIN_DIR,
             words[0]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t usual;  // a suite in the background ignores interrupts; the programs under test should not
    sigemptyset(&usual);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGTERM);
    sigaddset(&usual, SIGHUP);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    char **merged = environment_with(settings);
    pid_t child = 0;
    const int failure = posix_spawn(&child, path, &actions, &attributes, (char *const *)words, merged);
    free(merged);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    cr_assert_eq(failure, 0, "cannot start %s: %s", path, strerror(failure));
    return child;
}

ProgramRun program_run(const char *const *words, const char *const *environment, double timeout_s) {
    ProgramRun run = {0};
    const int out = capture_open();
    const int err = capture_open();
    const double begin_s = clock_s();
    const pid_t child = start(words, environment, out, err);
    int status = 0;
    pid_t ended = 0;
    while (ended == 0) {
        ended = waitpid(child, &status, run.timed_out ? 0 : WNOHANG);
        if (ended == 0 && clock_s() - begin_s > timeout_s) {
            run.timed_out = 1;
            kill(-child, SIGKILL);
        } else if (ended == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        }
    }
    run.seconds = clock_s() - begin_s;
    run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run.out = capture_text(out);
    run.err = capture_text(err);
    return run;
}

void program_run_free(ProgramRun *run) {
    free(run->out);
    free(run->err);
    *run = (ProgramRun){0};
}

char *temp_dir_make(void) {
    char *path = strdup("/tmp/ndtune-test-XXXXXX");
    cr_assert_not_null(mkdtemp(path), "cannot create a temporary directory: %s", strerror(errno));
    return path;
}

static void remove_below(const char *path) {
    DIR *dir = opendir(path);
    if (!dir) {
        return;
    }
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        char inner[2048];
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        struct stat info;
        if (lstat(inner, &info) == 0 && S_ISDIR(info.st_mode)) {
            remove_below(inner);
        } else {
            unlink(inner);
        }
    }
    closedir(dir);
    rmdir(path);
}

void temp_dir_remove(char *path) {
    remove_below(path);
    free(path);
}
