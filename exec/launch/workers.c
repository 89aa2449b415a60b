// posix_spawn of one worker per rank, or of one launcher, with an environment suited to several BLAS processes on one
// machine.

#include "exec/launch/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/launch/environment.h"
#include "exec/launch/signals.h"
#include "exec/protocol/rendezvous_wire.h"
#include "sim/base/clock.h"

static const char WORKER_NAME[] = "ndtune-worker";

enum { SETTINGS_MOST = 8 };
static const double NAP_S = 0.02;
static const double END_S = 5;  // a launcher may take this long to end its ranks and clean up after them

Status worker_find(const char *wanted, Arena *arena, const char **path, Error *error) {
    const char *named = wanted ? wanted : getenv("NDTUNE_WORKER");
    if (named) {
        *path = named;
    } else {
        char self[PATH_MAX];
        const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        FAIL_IF(length < 0, error, STATUS_ENVIRONMENT, "cannot find the running executable: %s", strerror(errno));
        self[length] = '\0';
        char *slash = strrchr(self, '/');
        *slash = '\0';
        *path = arena_format(arena, "%s/%s", self, WORKER_NAME);
    }
    if (access(*path, X_OK) != 0) {
        error_set(error, STATUS_ENVIRONMENT, "no worker program at %s: %s", *path, strerror(errno));
        return error_hint(error, "build or install %s beside ndtune, or name it in NDTUNE_WORKER", WORKER_NAME);
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- environment

static char **worker_environment(const WorkersSetup *setup, Arena *arena) {
    const char *settings[SETTINGS_MOST] = {NULL};
    int count = 0;
    settings[count++] = arena_format(arena, "OMP_NUM_THREADS=%d", setup->plan.threads);
    settings[count++] = arena_format(arena, "OPENBLAS_NUM_THREADS=%d", setup->plan.threads);
    if (setup->plan.passive) {
        settings[count++] = "OMP_WAIT_POLICY=passive";
    }
    if (setup->argv) {
        settings[count++] = arena_format(arena, "%s=%s", RENDEZVOUS_VARIABLE, setup->rendezvous_setting);
    }
    if (setup->argv && geteuid() == 0) {  // mpirun refuses root otherwise; containers often have no other user
        settings[count++] = "OMPI_ALLOW_RUN_AS_ROOT=1";
        settings[count++] = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    }
    return environment_with(settings, arena);
}

// ---------------------------------------------------------------------------------------------- start

static int spawn_actions(const WorkersSetup *setup, const char *words_path, posix_spawn_file_actions_t *actions) {
    int failed = posix_spawn_file_actions_init(actions);
    failed = failed ? failed : posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    failed = failed ? failed
                    : posix_spawn_file_actions_addopen(actions, STDERR_FILENO, words_path, O_WRONLY | O_CREAT | O_TRUNC,
                                                       0600);
    failed = failed ? failed : posix_spawn_file_actions_adddup2(actions, STDERR_FILENO, STDOUT_FILENO);
    return failed || setup->argv ? failed
                                 : posix_spawn_file_actions_adddup2(actions, setup->segment_fd, WORKER_SEGMENT_FD);
}

// number: the rank, 0 for a launcher.
static Status process_spawn(const WorkersSetup *setup, int number, Arena *arena, pid_t *pid, Error *error) {
    const char *request = setup->argv ? "" : setup->request_path;
    char *const own[] = {arena_text(arena, WORKER_NAME), arena_text(arena, "run"), arena_text(arena, request),
                         arena_format(arena, "%d", number), NULL};
    const char *words_path = arena_format(arena, "%s/rank-%d.err", setup->plan.directory, number);
    char **environment = worker_environment(setup, arena);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = signals_of_child(setup->argv != NULL, &attributes);
    failed = failed ? failed : spawn_actions(setup, words_path, &actions);
    if (!failed) {
        failed = setup->argv ? posix_spawnp(pid, setup->argv[0], &actions, &attributes, setup->argv, environment)
                             : posix_spawn(pid, setup->plan.worker, &actions, &attributes, own, environment);
        posix_spawn_file_actions_destroy(&actions);
    }
    posix_spawnattr_destroy(&attributes);
    return failed ? error_set(error, STATUS_ENVIRONMENT, "cannot start %s: %s",
                              setup->argv ? setup->argv[0] : setup->plan.worker, strerror(failed))
                  : STATUS_OK;
}

Status workers_start(const WorkersSetup *setup, Arena *arena, Workers *workers, Error *error) {
    const int count = setup->argv ? 1 : setup->plan.world;
    *workers = (Workers){
        .count = count, .first_failed = -1, .group = setup->argv != NULL, .of_rank = ARENA_ARRAY(arena, Worker, count)};
    for (int number = 0; number < count; number++) {
        const Status status = process_spawn(setup, number, arena, &workers->of_rank[number].pid, error);
        if (status != STATUS_OK) {
            workers->of_rank[number].pid = 0;
            workers_kill(workers);
            return status;
        }
        workers->running++;
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- watch and end

static void worker_reaped(Workers *workers, int rank, int wait_status) {
    workers->of_rank[rank] = (Worker){.pid = 0, .wait_status = wait_status};
    workers->running--;
    const bool well = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    if (!well && workers->first_failed < 0) {
        workers->first_failed = rank;
    }
}

void workers_poll(Workers *workers) {
    for (int rank = 0; rank < workers->count; rank++) {
        int wait_status;
        Worker *worker = &workers->of_rank[rank];
        if (worker->pid <= 0 || waitpid(worker->pid, &wait_status, WNOHANG | WUNTRACED | WCONTINUED) <= 0) {
            continue;
        }
        if (WIFSTOPPED(wait_status) || WIFCONTINUED(wait_status)) {
            worker->stopped = WIFSTOPPED(wait_status);
        } else {
            worker_reaped(workers, rank, wait_status);
        }
    }
}

// Asks the launcher to exit, and kills its group if it does not.
static void group_end(Workers *workers) {
    const pid_t pid = workers->count > 0 ? workers->of_rank[0].pid : 0;
    if (pid <= 0) {
        return;
    }
    kill(pid, SIGTERM);
    for (double waited_s = 0; waited_s < END_S && workers->running > 0; waited_s += NAP_S) {
        clock_nap(NAP_S);
        workers_poll(workers);
    }
    kill(-pid, SIGKILL);
}

void workers_kill(Workers *workers) {
    if (workers->group) {
        group_end(workers);
    }
    for (int rank = 0; rank < workers->count; rank++) {
        if (workers->of_rank[rank].pid > 0) {
            kill(workers->of_rank[rank].pid, SIGKILL);
        }
    }
    for (int rank = 0; rank < workers->count; rank++) {
        int wait_status = 0;
        if (workers->of_rank[rank].pid > 0) {
            while (waitpid(workers->of_rank[rank].pid, &wait_status, 0) < 0 && errno == EINTR) {
            }
            worker_reaped(workers, rank, wait_status);
        }
    }
}

const char *process_end_words(int wait_status, Arena *arena) {
    if (WIFSIGNALED(wait_status)) {
        const int number = WTERMSIG(wait_status);
        return arena_format(arena, "was killed by signal %d (%s)", number, strsignal(number));
    }
    return arena_format(arena, "exited with code %d", WEXITSTATUS(wait_status));
}
