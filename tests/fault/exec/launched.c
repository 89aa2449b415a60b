// Ranks are found in /proc: by their command line, their launcher's variable, and a chain of parents that ends here.

#define _GNU_SOURCE  // setenv

#include "tests/fault/exec/launched.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/transport/transport.h"
#include "tests/parity/exec/mesh_case.h"
#include "tests/support/sizes.h"

static const char WORKER[] = NDTUNE_BIN_DIR "/ndtune-worker";

static Status request_run(const Launched *launched, RunRequest request, Arena *arena, Error *error) {
    if (transport_check(launched->transport, error) != STATUS_OK) {
        cr_skip_test("%s", error->message);
    }
    request.options.transport = launched->transport;
    request.options.timeout_s = launched->timeout_s;
    request.options.steps = launched->steps;
    if (launched->fault) {
        setenv("NDTUNE_FAULT", launched->fault, 1);
    } else {
        unsetenv("NDTUNE_FAULT");
    }
    const ExecOptions options = {.worker_path = getenv("NDTUNE_WORKER") ? NULL : WORKER,
                                 .progress = launched->progress};
    RunResult result;
    const Status status = exec_run(&request, &options, arena, &result, error);
    unsetenv("NDTUNE_FAULT");
    return status;
}

Status launched_run(const Launched *launched, Arena *arena, Error *error) {
    TrainPlan plan;
    const Mesh mesh = {.size = SIZES(1, 2, 1, 2)};
    const RunOptions options = case_options();
    case_plan(&mesh, 1, &plan);
    plan.zero = 3;
    return request_run(launched, case_request(&plan, &options), arena, error);
}

Status launched_experts_run(const Launched *launched, Arena *arena, Error *error) {
    TrainPlan plan;
    Mesh mesh = {.size = SIZES(1, LAUNCHED_RANKS, 1, 1)};
    mesh.size[AXIS_EP] = 2;
    mesh_plan(&mesh_twos_experts, &mesh, 1, &plan);
    plan.zero = 3;
    return request_run(launched, mesh_request(&mesh_twos_experts, &plan), arena, error);
}

Status launched_stages_run(const Launched *launched, Arena *arena, Error *error) {
    TrainPlan plan;
    Mesh mesh = {.size = SIZES(1, 2, 1, 1)};
    const RunOptions options = case_options();
    mesh.size[AXIS_PP] = 2;
    cr_assert(case_plan(&mesh, 4, &plan));
    plan_canonical(&plan);
    return request_run(launched, case_request(&plan, &options), arena, error);
}

// ---------------------------------------------------------------------------------------------- processes

static size_t read_proc(pid_t pid, const char *name, char *out, size_t out_bytes) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    FILE *file = fopen(path, "r");
    const size_t bytes = file ? fread(out, 1, out_bytes - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    out[bytes] = '\0';
    return bytes;
}

static pid_t parent_of(pid_t pid) {
    char line[512];
    long parent = 0;
    read_proc(pid, "stat", line, sizeof line);
    const char *after = strrchr(line, ')');
    return after && sscanf(after, ") %*c %ld", &parent) == 1 ? (pid_t)parent : 0;
}

static bool below(pid_t pid, pid_t ancestor) {
    for (pid_t at = parent_of(pid); at > 1; at = parent_of(at)) {
        if (at == ancestor) {
            return true;
        }
    }
    return false;
}

// "NAME=value" from a block of 0-terminated texts, or NULL.
static const char *find_setting(const char *block, size_t bytes, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = block; at < block + bytes; at += strlen(at) + 1) {
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            return at + length + 1;
        }
    }
    return NULL;
}

// A child of ndtune has its rank as its last argument, one of mpirun in its environment.
static int rank_of(pid_t pid, bool mpi) {
    char block[16384];
    if (mpi) {
        const size_t bytes = read_proc(pid, "environ", block, sizeof block);
        const char *rank = find_setting(block, bytes, "OMPI_COMM_WORLD_RANK");
        return rank ? (int)strtol(rank, NULL, 10) : -1;
    }
    const size_t bytes = read_proc(pid, "cmdline", block, sizeof block);
    const char *last = block + (bytes > 1 ? bytes - 2 : 0);
    while (last > block && last[-1] != '\0') {
        last--;
    }
    return bytes > 0 ? (int)strtol(last, NULL, 10) : -1;
}

static bool is_named(pid_t pid, const char *name) {
    char comm[64];
    read_proc(pid, "comm", comm, sizeof comm);
    return strncmp(comm, name, strlen(name)) == 0;
}

typedef bool Visit(pid_t pid, void *context);

// Every process below ancestor, until the visitor returns true.
static pid_t visit(pid_t ancestor, Visit *visitor, void *context) {
    DIR *all = opendir("/proc");
    pid_t found = 0;
    for (const struct dirent *entry = readdir(all); entry && !found; entry = readdir(all)) {
        const pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (pid > 0 && below(pid, ancestor) && visitor(pid, context)) {
            found = pid;
        }
    }
    closedir(all);
    return found;
}

typedef struct Wanted {
    bool mpi;
    int rank;
} Wanted;

static bool is_wanted(pid_t pid, void *context) {
    const Wanted *wanted = context;
    return is_named(pid, "ndtune-worker") && rank_of(pid, wanted->mpi) == wanted->rank;
}

pid_t launched_rank(const Launched *launched, int rank) {
    Wanted wanted = {.mpi = strcmp(launched->transport, "mpi") == 0, .rank = rank};
    return visit(getpid(), is_wanted, &wanted);
}

static bool count_one(pid_t pid, void *context) {
    char line[512];
    int *count = context;
    read_proc(pid, "stat", line, sizeof line);
    const char *state = strrchr(line, ')');
    *count += state && state[2] != 'Z' && (is_named(pid, "ndtune-worker") || is_named(pid, "mpirun"));
    return false;
}

int launched_processes(pid_t ancestor) {
    int count = 0;
    visit(ancestor, count_one, &count);
    return count;
}

// ---------------------------------------------------------------------------------------------- a launcher of its own

static bool is_alive(pid_t pid) {
    char line[512];
    read_proc(pid, "stat", line, sizeof line);
    const char *state = strrchr(line, ')');
    return state && state[2] != 'Z' && state[2] != 'X';
}

static bool add_to_crew(pid_t pid, void *context) {
    Crew *crew = context;
    if (crew->count < CREW_MOST && is_alive(pid)) {
        crew->pids[crew->count++] = pid;
    }
    return false;
}

// Starts it with a pipe as its standard output, on which it reports that steps are running.
static pid_t start_forever(const char *transport, double timeout_s, int *said) {
    char timeout[32];
    int ends[2];
    pid_t pid;
    snprintf(timeout, sizeof timeout, "%g", timeout_s);
    char *const words[] = {LAUNCH_FOREVER, (char *)(uintptr_t)WORKER, (char *)(uintptr_t)transport, timeout, NULL};
    posix_spawn_file_actions_t actions;
    cr_assert(pipe(ends) == 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    cr_assert(posix_spawn(&pid, LAUNCH_FOREVER, &actions, NULL, words, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *said = ends[0];
    return pid;
}

Crew crew_start(const char *transport, double timeout_s) {
    Error error = {0};
    Crew crew = {0};
    if (transport_check(transport, &error) != STATUS_OK) {
        cr_skip_test("%s", error.message);
    }
    int said;
    char word;
    crew.launcher = start_forever(transport, timeout_s, &said);
    const ssize_t got = read(said, &word, 1);
    cr_assert(got == 1, "the launcher ended before a step was made");
    close(said);
    crew.pids[crew.count++] = crew.launcher;
    visit(crew.launcher, add_to_crew, &crew);
    return crew;
}

void crew_signal(const Crew *crew, int number) {
    for (int i = 0; i < crew->count; i++) {
        kill(crew->pids[i], number);
    }
}

int crew_alive(const Crew *crew) {
    int count = 0;
    for (int i = 0; i < crew->count; i++) {
        count += is_alive(crew->pids[i]);
    }
    return count;
}
